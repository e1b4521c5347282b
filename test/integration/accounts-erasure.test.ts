import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Actor } from '../../control/ground/actor.ts'
import { createAccountsFixture, PASSWORD, PERSONAL_DATA_KEPT_MS, VISIT } from '../support/accounts.ts'

const DAY_MS = 86_400_000

let fixture: Awaited<ReturnType<typeof createAccountsFixture>>
beforeAll(async () => {
  fixture = await createAccountsFixture()
})
afterAll(() => fixture?.close())

/** Where something that names someone stands, in the whole database. */
async function tracesOf(...names: string[]): Promise<string[]> {
  const tables = await fixture.sql<{ name: string }[]>`
    select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`
  const found: string[] = []
  for (const { name } of tables)
    for (const wanted of names) {
      const rows = await fixture.sql`
        select 1 from ${fixture.sql(name)} as entry where position(lower(${wanted}) in lower(entry::text)) > 0 limit 1`
      if (rows.length > 0) found.push(`${name}: ${wanted}`)
    }
  return found.toSorted()
}

/** Someone who left traces in an organisation of someone else's too, and whose address has changed once. */
async function busyPerson(): Promise<{ person: Actor; addresses: string[] }> {
  const [founder, person] = [await fixture.newAccount(), await fixture.newAccount()]
  const { id } = await fixture.organisations.create(founder, 'Quay')
  await fixture.organisations.invite(founder, id, { email: person.email, role: 'member' })
  const invitation = (await fixture.mailsTo(person.email)).find(({ template }) => template === 'invitation')!
  await fixture.organisations.accept(person, invitation.token)
  await fixture.organisations.changeRole(founder, id, person.userId, 'admin')
  const newEmail = person.email.replace('person', 'moved')
  await fixture.accounts.requestEmailChange(person, { newEmail, password: PASSWORD })
  const change = (await fixture.mailsTo(newEmail)).find(({ template }) => template === 'email_change')!
  await fixture.accounts.confirmEmailChange(change.token)
  return { person: { ...person, email: newEmail }, addresses: [person.email, newEmail] }
}

test('after the period nothing in the database names a person who deleted the account; before it the log does', async () => {
  const { person, addresses } = await busyPerson()
  await fixture.sql`update audit_log set ip = '203.0.113.99' where user_id = ${person.userId} and ip is not null`
  await fixture.accounts.deleteAccount(person, { password: PASSWORD })
  fixture.advance(PERSONAL_DATA_KEPT_MS - DAY_MS)
  await fixture.accounts.sweep()
  expect(await tracesOf(addresses[0]!)).toContain(`audit_log: ${addresses[0]}`)
  fixture.advance(2 * DAY_MS)
  await fixture.accounts.sweep()
  expect(await tracesOf(...addresses, '203.0.113.99')).toEqual([])
  // The deeds are still there, of no one.
  const deeds = await fixture.sql`select actor from audit_log where user_id = ${person.userId}`
  expect(deeds.length).toBeGreaterThan(2)
})

test('a person who signed up again with the same address keeps what is theirs', async () => {
  const { person, addresses } = await busyPerson()
  await fixture.accounts.deleteAccount(person, { password: PASSWORD })
  await fixture.accounts.signUp({ email: addresses[1]!, password: PASSWORD }, VISIT)
  const mails = await fixture.mailsTo(addresses[1]!)
  fixture.advance(PERSONAL_DATA_KEPT_MS + DAY_MS)
  await fixture.accounts.sweep()
  expect(await fixture.mailsTo(addresses[1]!)).toEqual(mails)
  expect(await tracesOf(addresses[0]!)).not.toContain(`audit_log: ${addresses[0]}`)
  const own = await fixture.sql`select 1 from audit_log where actor = ${addresses[1]!} and action = 'account.created'`
  expect(own).toHaveLength(1)
})

test('it happens once, and is found again by no one', async () => {
  await fixture.accounts.sweep()
  expect(await fixture.sql`select 1 from users where deleted_at is not null and erased_at is null`).toHaveLength(0)
})
