/** What agents find before they call: documents at the addresses where they look. */
import { beforeAll, expect, test } from 'vitest'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack
beforeAll(async () => {
  stack = await sharedStack()
})

test('/llms.txt leads to everything, and every address in it answers', async () => {
  const answer = await stack.fetch('/llms.txt')
  expect([answer.status, answer.header('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
  const addresses = [...answer.text().matchAll(/\]\((https:[^)]+)\)/g)].map(([, address]) => address!)
  expect(addresses).toContain(`${stack.baseUrl}/mcp/anonymous`)
  for (const address of addresses) {
    const { status } = await stack.fetch(address)
    const expected = address.endsWith('/mcp') ? 401 : address.endsWith('/mcp/anonymous') ? 405 : 200
    expect([address, status]).toEqual([address, expected])
  }
})

test('/llms-full.txt holds the guides, /auth.md the ways in', async () => {
  const full = (await stack.fetch('/llms-full.txt')).text()
  expect(full).toContain('# Assistants (MCP)')
  expect(full).not.toContain('{{')
  const auth = await stack.fetch('/auth.md')
  expect(auth.header('content-type')).toBe('text/markdown; charset=utf-8')
  for (const path of ['/oauth/register', '/.well-known/oauth-protected-resource/mcp', '/mcp/anonymous'])
    expect(auth.text()).toContain(`${stack.baseUrl}${path}`)
})

test('the server card says where the server is, and that it asks for a sign-in', async () => {
  const answer = await stack.fetch('/.well-known/mcp/server-card.json')
  expect(answer.json()).toMatchObject({
    transport: { type: 'streamable-http', endpoint: `${stack.baseUrl}/mcp` },
    authentication: { required: true, schemes: ['oauth2', 'bearer'] },
  })
  expect(answer.header('access-control-allow-origin')).toBe('*')
})
