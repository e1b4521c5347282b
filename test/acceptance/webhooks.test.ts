/** Webhooks over the API: what is made, refused and seen by whom. What they send is in test/integration/webhooks.test.ts. */
import { beforeAll, expect, test } from 'vitest'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let account: Account

beforeAll(async () => {
  stack = await sharedStack()
  account = await stack.createAccount('plus')
})

// A number leads there without a question to a name server, and nothing is sent before something happens.
const URL_ = 'https://93.184.215.14/hook'
const create = (json: object, { token } = account) => stack.fetch('/api/v1/webhooks', { token, json })

test('one is made with a secret that is shown once, and is seen by its own organisation alone', async () => {
  const made = await create({ url: URL_, events: ['drop.published'], description: 'the news' })
  expect(made.status, made.text()).toBe(201)
  const { id, secret } = made.json<{ id: string; secret: string }>()
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]+={0,2}$/)
  const bytes = Buffer.from(secret.slice('whsec_'.length), 'base64').length
  expect(bytes >= 24 && bytes <= 64).toBe(true)
  const listed = await stack.fetch('/api/v1/webhooks', { token: account.token })
  expect(listed.text()).toContain(id)
  expect(listed.text()).not.toContain(secret)
  const other = await stack.createAccount('plus')
  const calls: [method: string, path: string][] = [
    ['DELETE', ''],
    ['POST', '/rotate'],
    ['POST', '/test'],
    ['GET', '/deliveries'],
    ['POST', '/deliveries/wd_1/redeliver'],
  ]
  for (const [method, path] of calls) {
    const answer = await stack.fetch(`/api/v1/webhooks/${id}${path}`, { method, token: other.token })
    expect([method, path, answer.status]).toEqual([method, path, 404])
  }
  expect((await stack.fetch(`/api/v1/webhooks/${id}`, { method: 'DELETE', token: account.token })).status).toBe(204)
})

test.each<[string, object]>([
  ['no events', { url: URL_, events: [] }],
  ['an unknown event', { url: URL_, events: ['drop.eaten'] }],
  ['no address', { events: ['drop.published'] }],
  ['http', { url: 'http://93.184.215.14/hook', events: ['drop.published'] }],
  ['loopback, although the service itself is at localhost', { url: 'https://localhost/x', events: ['drop.published'] }],
  ['loopback as one number', { url: 'https://2130706433/x', events: ['drop.published'] }],
  ['a private IPv6 address', { url: 'https://[fd00::1]/x', events: ['drop.published'] }],
])('%s: 400, and none is made', async (_case, wanted) => {
  expect(new URL(stack.baseUrl).hostname).toBe('localhost')
  expect((await create(wanted)).status).toBe(400)
  expect((await stack.fetch('/api/v1/webhooks', { token: account.token })).json()).toEqual([])
})
