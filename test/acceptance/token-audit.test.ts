/** A token is in the audit log of its organisation, whoever made it and by whichever way in; the operator ends all of them. */
import { beforeAll, expect, test } from 'vitest'
import { FormBrowser } from '../support/form-browser.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

const PASSWORD = 'correct horse battery'

interface Entry {
  readonly at: string
  readonly actor: string
  readonly action: string
  readonly subject: string
  readonly detail: { readonly name?: string }
}

interface Token {
  readonly id: string
  readonly name: string
  readonly created_at: string
}

let stack: Stack
let account: Account
let browser: FormBrowser

beforeAll(async () => {
  stack = await sharedStack()
  // The operator's command makes the first one.
  account = await stack.createAccount('free', { password: PASSWORD })
  browser = new FormBrowser(stack, '198.51.100.61')
  expect((await browser.send('/signin', { email: account.email, password: PASSWORD })).status).toBe(303)
})

const entriesOf = async (action: string): Promise<Entry[]> =>
  (await browser.api('/audit-log?limit=200'))
    .json<{ entries: Entry[] }>()
    .entries.filter((entry) => entry.action === action)

test('made by the operator, on the page and over the API', async () => {
  expect((await browser.send('/account/tokens', { name: 'by page' })).status).toBe(201)
  expect((await browser.api('/tokens', { json: { name: 'by API' } })).status).toBe(201)
  const tokens = (await browser.api('/tokens')).json<Token[]>()
  const created = await entriesOf('token.created')
  const told = created.map(({ actor, subject, detail }) => ({ actor, subject, name: detail.name }))
  const idOf = (name: string) => tokens.find((token) => token.name === name)!.id
  expect(told).toEqual([
    { actor: account.email, subject: idOf('by API'), name: 'by API' },
    { actor: account.email, subject: idOf('by page'), name: 'by page' },
    { actor: 'operator', subject: idOf('operator'), name: 'operator' },
  ])
  // The entry and the token have one time: that of the service's clock.
  for (const { subject, at } of created) expect(at).toBe(tokens.find(({ id }) => id === subject)!.created_at)
})

test('revoked on the page and over the API', async () => {
  const [first, second] = (await browser.api('/tokens')).json<Token[]>()
  expect((await browser.send(`/account/tokens/revoke?id=${first!.id}`, {}, '/account/tokens/revoke')).status).toBe(303)
  expect((await browser.api(`/tokens/${second!.id}`, { method: 'DELETE' })).status).toBe(204)
  expect((await entriesOf('token.revoked')).map(({ subject }) => subject)).toEqual([second!.id, first!.id])
})

test('the operator ends every way in, and is told how many there were', async () => {
  const { email, token } = await stack.createAccount('free', { password: PASSWORD })
  const person = new FormBrowser(stack, '198.51.100.62')
  await person.send('/signin', { email, password: PASSWORD })
  const statuses = async () =>
    [await person.api('/me'), await stack.fetch('/api/v1/me', { token })].map(({ status }) => status)
  expect(await statuses()).toEqual([200, 200])
  const { code, stdout } = await stack.operate('end-access', '--email', email)
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { email, sessions: 1, tokens: 1 }])
  expect(await statuses()).toEqual([401, 401])
  expect((await person.send('/signin', { email, password: PASSWORD })).status).toBe(401)
  expect((await stack.operate('end-access', '--email', 'nobody@example.com')).code).not.toBe(0)
})
