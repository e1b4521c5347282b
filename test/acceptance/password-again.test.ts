/** Setting the password that a drop has already locks no one out; another one locks everyone out at once. */
import { beforeAll, expect, test } from 'vitest'
import { apiFor, fileForm } from '../support/api.ts'
import { connectWithToken } from '../support/mcp-client.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let account: Account
let api: ReturnType<typeof apiFor>

beforeAll(async () => {
  stack = await sharedStack()
  account = await stack.createAccount('plus')
  api = apiFor(stack, account)
})

async function unlock(slug: string, password: string): Promise<string> {
  const answer = await stack.visit(slug, '/.dropway/unlock', {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ password }).toString(),
  })
  return answer.cookies.map((cookie) => cookie.split(';')[0]).join('; ')
}

const ways: readonly [string, (drop: { id: string; slug: string }, password: string) => Promise<unknown>][] = [
  ['PATCH', ({ id }, password) => api.patch(id, { password })],
  [
    'MCP',
    async ({ slug }, password) => {
      const client = await connectWithToken(stack, account.token, 'modern')
      return client.callTool({ name: 'service_publish', arguments: { slug, password, content: '<p>inside</p>' } })
    },
  ],
]

test.each(ways)('%s', async (_, set) => {
  const drop = (await api.create()).json<{ id: string; slug: string }>()
  await api.upload(drop.id, fileForm('index.html', '<p>inside</p>'))
  await api.patch(drop.id, { password: 'open sesame' })
  const cookie = await unlock(drop.slug, 'open sesame')
  const look = async () => (await stack.visit(drop.slug, '/', { headers: { cookie } })).status
  expect(await look()).toBe(200)
  await set(drop, 'open sesame')
  expect(await look()).toBe(200)
  await set(drop, 'another')
  expect(await look()).toBe(401)
  // Back to the first: what was unlocked before the change stays locked.
  await set(drop, 'open sesame')
  expect(await look()).toBe(401)
})
