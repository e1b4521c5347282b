/**
 * What strangers can learn: from the work behind an answer, from its words, and from a stolen copy of the database. How long
 * answers take is measured in test/deep/account-timing.test.ts.
 */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { Writable } from 'node:stream'
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

/** How often passwords are hashed while this goes on: what an answer's time is made of. */
async function hashesDuring(work: () => Promise<unknown>): Promise<number> {
  const { argon2 } = crypto
  let calls = 0
  crypto.argon2 = ((...args: Parameters<typeof argon2>) => {
    calls += 1
    return argon2(...args)
  }) as typeof argon2
  syncBuiltinESMExports()
  try {
    await work().catch(() => {})
  } finally {
    crypto.argon2 = argon2
    syncBuiltinESMExports()
  }
  return calls
}

describe('whether an e-mail has an account', () => {
  test('sign-in does the same work for both', async () => {
    const { email } = await fixture.newAccount()
    const signIn = (address: string) => () =>
      fixture.accounts.signIn({ email: address, password: 'wrong password' }, VISIT)
    // The owner's password and that of a namesake, or two that are nobody's.
    expect(await hashesDuring(signIn(email))).toBe(2)
    expect(await hashesDuring(signIn('nobody@example.com'))).toBe(2)
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
    const signUp = async (address: string) => {
      const signedUp = await fixture.accounts.signUp({ email: address, password: 'another good one' }, VISIT)
      const { email: shown, emailVerified, role, plan } = await fixture.actorOf(signedUp)
      expect([signedUp.email, shown]).toEqual([address, address])
      return { names: Object.keys(signedUp), emailVerified, role, plan, claimed: signedUp.claimed }
    }
    expect(await signUp(email)).toEqual(await signUp('newcomer@example.com'))
    const reset = (address: string) => answerTo(fixture.accounts.requestReset(address, VISIT))
    expect(await reset(email)).toEqual(await reset('nobody@example.com'))
  })
})

describe('a sign-up with an address that has an account', () => {
  const THEIRS = 'what the stranger chose'
  const signUpAgain = async (email: string, password = THEIRS) =>
    fixture.accounts.signUp({ email, password }, { ...VISIT, ip: '203.0.113.77' })
  const templatesTo = async (email: string) => (await fixture.mailsTo(email)).map(({ template }) => template)

  test('costs as many hashes as any other', async () => {
    const { email } = await fixture.newAccount()
    expect(await hashesDuring(() => signUpAgain(email))).toBe(
      await hashesDuring(() => signUpAgain('first-here@example.com')),
    )
  })

  test('leaves the owner their account, and tells them; the other can sign in, and never verify', async () => {
    const owner = await fixture.newAccount()
    const { email } = owner
    const [one, two] = [await signUpAgain(email), await signUpAgain(email, 'and yet another one')]
    const ids = [owner.userId, one.userId, two.userId]
    const signIn = async (password: string) => (await fixture.accounts.signIn({ email, password }, VISIT)).userId
    expect([await signIn(PASSWORD), await signIn(THEIRS), await signIn('and yet another one')]).toEqual(ids)
    const stranger = await fixture.actorOf(one)
    await fixture.accounts.resendVerification(stranger)
    expect(await templatesTo(email)).toEqual(['verify', 'sign_up_again', 'sign_up_again', 'sign_up_again'])
    const again = (await fixture.mailsTo(email)).slice(1)
    expect(again.map(({ token }) => token)).toEqual(['', '', ''])
    expect(again[0]!.text).toContain(`${BASE_URL}/signin`)
    expect((await fixture.organisations.listMembers(stranger, stranger.orgId)).map((member) => member.email)).toEqual([
      email,
    ])
  })

  test('no mail about the other account reaches the owner, and the mailbox is not filled', async () => {
    const { email } = await fixture.newAccount()
    const stranger = await fixture.actorOf(await signUpAgain(email))
    const change = { currentPassword: THEIRS, newPassword: 'a third good one', endTokensAndApps: true }
    const changed = await fixture.accounts.changePassword(stranger, change, VISIT)
    expect(changed.email).toBe(email)
    expect((await fixture.accounts.signIn({ email, password: 'a third good one' }, VISIT)).userId).toBe(changed.userId)
    await fixture.accounts.deleteAccount(stranger, { password: 'a third good one' })
    for (let index = 0; index < 10; index++) await signUpAgain(email)
    const templates = await templatesTo(email)
    expect(templates.filter((template) => template !== 'sign_up_again')).toEqual(['verify'])
    expect(templates.length).toBeLessThanOrEqual(6)
  })

  test('with an address of its own it is an account like any other', async () => {
    const { email } = await fixture.newAccount()
    const stranger = await fixture.actorOf(await signUpAgain(email))
    await fixture.accounts.requestEmailChange(stranger, { newEmail: 'mine-alone@example.com', password: THEIRS })
    const [link] = await fixture.mailsTo('mine-alone@example.com')
    await fixture.accounts.confirmEmailChange(link!.token)
    const signedIn = await fixture.accounts.signIn({ email: 'mine-alone@example.com', password: THEIRS }, VISIT)
    expect(signedIn).toMatchObject({ userId: stranger.userId, emailVerified: true })
  })
})

test('neither the database nor the log holds a secret that was issued', async () => {
  const email = 'careful@example.com'
  const password = 'a password found nowhere'
  const signedUp = await fixture.accounts.signUp({ email, password }, VISIT)
  const [verify] = await fixture.mailsTo(email)
  await fixture.accounts.verifyEmail(verify!.token)
  const actor = await fixture.actorOf(signedUp)
  const issued = await fixture.tokens.create(actor, { name: 'ci' })
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
