/** What strangers can learn: from how long an answer takes, from its words, and from a stolen copy of the database. */
import { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCsrf } from '../../control/people/access/csrf.ts'
import { SESSION_COOKIE } from '../../control/people/access/sessions.ts'
import type { ApiError } from '../../shared/contracts/errors.ts'
import { BASE_URL, createAccountsFixture, fakeRequest, PASSWORD, secretOf, VISIT } from '../support/accounts.ts'

let fixture: Awaited<ReturnType<typeof createAccountsFixture>>
let logged = ''

beforeAll(async () => {
  const sink = new Writable({
    write(chunk, _, done) {
      logged += String(chunk)
      done()
    },
  })
  fixture = await createAccountsFixture(pino({ level: 'trace' }, sink))
})
afterAll(() => fixture.close())

async function durationOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work().catch(() => {})
  return performance.now() - start
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

/** In turns, so that a busy machine slows both alike. */
async function ratioOf(
  rounds: number,
  one: (round: number) => Promise<unknown>,
  other: (round: number) => Promise<unknown>,
): Promise<number> {
  const durations: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round++) {
    durations[0].push(await durationOf(() => one(round)))
    durations[1].push(await durationOf(() => other(round)))
    // What goes on behind an answer belongs to neither.
    await sleep(5)
  }
  return median(durations[0]) / median(durations[1])
}

describe('whether an e-mail has an account', () => {
  // Each from a network of its own, so that no attempt is refused before it is judged.
  const from = (round: number, kind: number) => ({ ...VISIT, ip: `10.${kind}.0.${round}` })

  test('sign-in does not tell by its time', async () => {
    const { email } = await fixture.newAccount()
    const ratio = await ratioOf(
      15,
      (round) => fixture.accounts.signIn({ email, password: 'wrong password' }, from(round, 1)),
      (round) =>
        fixture.accounts.signIn({ email: `nobody${round}@example.com`, password: 'wrong password' }, from(round, 2)),
    )
    // Without the work for unknown e-mails it is above 10.
    expect(ratio).toBeGreaterThan(1 / 2.5)
    expect(ratio).toBeLessThan(2.5)
  })

  test('reset does not tell by its time', async () => {
    const people = await Promise.all(
      Array.from({ length: 25 }, (_, index) => fixture.newAccount(`reset${index}@example.com`)),
    )
    await fixture.sql`delete from throttles`
    const ratio = await ratioOf(
      people.length,
      (round) => fixture.accounts.requestReset(people[round]!.email, from(round, 3)),
      (round) => fixture.accounts.requestReset(`nobody${round}@example.com`, from(round, 4)),
    )
    expect(ratio).toBeGreaterThan(1 / 2.5)
    expect(ratio).toBeLessThan(2.5)
    await expect
      .poll(async () => (await fixture.sql`select 1 from mails where template = 'reset'`).length)
      .toBe(people.length)
  })

  test('neither tells by its words', async () => {
    const { email } = await fixture.newAccount()
    const answerTo = async (work: Promise<unknown>) =>
      work.then(
        (value) => ({ value }),
        (error: ApiError) => ({ status: error.status, body: error.toBody(), headers: error.headers }),
      )
    const signIn = (address: string) =>
      answerTo(fixture.accounts.signIn({ email: address, password: 'wrong password' }, VISIT))
    expect(await signIn(email)).toEqual(await signIn('nobody@example.com'))
    const reset = (address: string) => answerTo(fixture.accounts.requestReset(address, VISIT))
    expect(await reset(email)).toEqual(await reset('nobody@example.com'))
  })
})

test('neither the database nor the log holds a secret that was issued', async () => {
  const email = 'careful@example.com'
  const password = 'a password found nowhere'
  const signedUp = await fixture.accounts.signUp({ email, password }, VISIT)
  const [verify] = await fixture.mailsTo(email)
  await fixture.accounts.verifyEmail(verify!.token)
  const actor = await fixture.actorOf(signedUp)
  const issued = await fixture.tokens.create(actor, 'ci')
  const organisation = await fixture.organisations.create(actor, 'Acme')
  await fixture.organisations.invite(actor, organisation.id, { email: 'guest@example.com', role: 'member' })
  await fixture.accounts.requestEmailChange(actor, { newEmail: 'careful2@example.com', password })
  await fixture.accounts.requestReset(email, VISIT)
  await expect.poll(() => fixture.mailsTo(email)).toHaveLength(2)
  const signedIn = await fixture.accounts.signIn({ email, password }, VISIT)
  await fixture.access.authenticate(fakeRequest({ headers: { authorization: `Bearer ${issued.token}` } }))
  const csrf = createCsrf({ secrets: fixture.secrets, baseUrl: BASE_URL })
  const links = await Promise.all([email, 'guest@example.com', 'careful2@example.com'].map(fixture.mailsTo))

  const secrets = [
    password,
    PASSWORD,
    secretOf(signedUp),
    secretOf(signedIn),
    issued.token,
    csrf.csrfToken(fakeRequest({ cookies: { [SESSION_COOKIE]: secretOf(signedIn) } })).token,
    ...links.flat().map((mail) => mail.token),
  ]
  expect(secrets).toHaveLength(10)
  expect(secrets.every((secret) => secret.length >= 10)).toBe(true)

  const dump = await dumpDatabase()
  expect(dump).toContain(email)
  for (const secret of secrets) {
    expect(dump).not.toContain(secret)
    expect(dump).not.toContain(Buffer.from(secret).toString('base64url').slice(0, -2))
    expect(logged).not.toContain(secret)
  }
})

async function dumpDatabase(): Promise<string> {
  const tables = await fixture.sql<{ name: string }[]>`
    select table_name as name from information_schema.tables where table_schema = 'public'`
  const parts = await Promise.all(tables.map(({ name }) => fixture.sql`select * from ${fixture.sql(name)}`))
  return JSON.stringify(parts)
}
