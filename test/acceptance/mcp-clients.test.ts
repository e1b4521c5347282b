/** Other people's clients, as they come from npm: the SDK of the protocol's first years, and the AI SDK. */
import { createMCPClient } from '@ai-sdk/mcp'
import { UnauthorizedError, type OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { beforeAll, describe, expect, test } from 'vitest'
import { formFields } from '../support/form-browser.ts'
import { signedInPerson, webFetch, type Person } from '../support/oauth-client.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

const REDIRECT = 'http://localhost:3334/oauth/callback'

let stack: Stack
let person: Person

beforeAll(async () => {
  stack = await sharedStack()
  person = await signedInPerson(stack)
})

type OAuthTokens = Parameters<OAuthClientProvider['saveTokens']>[0]
type OAuthClientInformationMixed = Parameters<NonNullable<OAuthClientProvider['saveClientInformation']>>[0]

interface Remembered {
  client?: OAuthClientInformationMixed | undefined
  tokens?: OAuthTokens | undefined
}

/** What a desktop client keeps, and where it sends its person. */
class MemoryProvider implements OAuthClientProvider {
  readonly redirectUrl = REDIRECT
  readonly clientMetadata = { client_name: 'SDK 1.x', redirect_uris: [REDIRECT], scope: 'mcp offline_access' }
  readonly remembered: Remembered
  verifier = ''
  asked: URL | undefined

  constructor(remembered: Remembered = {}) {
    this.remembered = remembered
  }
  clientInformation = () => this.remembered.client
  saveClientInformation = (client: OAuthClientInformationMixed) => void (this.remembered.client = client)
  tokens = () => this.remembered.tokens
  saveTokens = (tokens: OAuthTokens) => void (this.remembered.tokens = tokens)
  redirectToAuthorization = (url: URL) => void (this.asked = url)
  saveCodeVerifier = (verifier: string) => void (this.verifier = verifier)
  codeVerifier = () => this.verifier
  invalidateCredentials(scope: 'all' | 'client' | 'tokens' | 'verifier' | 'discovery') {
    if (scope === 'all' || scope === 'client') this.remembered.client = undefined
    if (scope === 'all' || scope === 'tokens') this.remembered.tokens = undefined
  }
}

const open = (options: ConstructorParameters<typeof StreamableHTTPClientTransport>[1]) =>
  new StreamableHTTPClientTransport(new URL(`${stack.baseUrl}/mcp`), { fetch: webFetch(stack), ...options })

async function allow(address: URL): Promise<string> {
  const page = await person.browser.open(address.href)
  const fields = formFields(page.text(), '/oauth/authorize')
  const answer = await person.browser.post('/oauth/authorize', new URLSearchParams({ ...fields, decision: 'allow' }))
  return new URL(answer.header('location')!).searchParams.get('code')!
}

/** Connects as the SDK does: is refused, asks the person, comes back with the code. */
async function connect(provider: MemoryProvider): Promise<Client> {
  const client = new Client({ name: 'sdk-1', version: '1' })
  const transport = open({ authProvider: provider })
  await expect(client.connect(transport as never)).rejects.toThrow(UnauthorizedError)
  await transport.finishAuth(await allow(provider.asked!))
  await client.connect(open({ authProvider: provider }) as never)
  return client
}

describe('SDK 1.x', () => {
  test('signs in, lists, publishes, reads resources', async () => {
    const client = await connect(new MemoryProvider())
    const { tools } = await client.listTools()
    expect(tools.map((tool) => tool.name)).toContain('service_edit_files')
    const result = await client.callTool({ name: 'service_publish', arguments: { content: '<h1>From 1.x</h1>' } })
    const { slug } = result.structuredContent as { slug: string }
    expect((await stack.visit(slug)).text()).toContain('<h1>From 1.x</h1>')
    const { contents } = await client.readResource({ uri: `dropway://drops/${slug}/files/index.html` })
    expect(contents[0]).toMatchObject({ text: '<h1>From 1.x</h1>' })
    await client.close()
  })

  test('with a client id that we do not know any more it registers anew, without waiting for anyone', async () => {
    const client = { client_id: 'cli_01jc3m8q4r5s6t7v8w9x0y', redirect_uris: [REDIRECT] }
    const tokens = { access_token: 'dwo_gone', refresh_token: 'dwr_gone', token_type: 'Bearer' }
    const provider = new MemoryProvider({ client, tokens })
    const connected = await connect(provider)
    expect(provider.remembered.client?.client_id).not.toBe(client.client_id)
    expect((await connected.listTools()).tools.length).toBeGreaterThan(0)
    await connected.close()
  })

  test('two processes that share their tokens refresh at once, and both go on', async () => {
    const provider = new MemoryProvider()
    await (await connect(provider)).close()
    const { client, tokens } = provider.remembered
    const expired = () => new MemoryProvider({ client, tokens: { ...tokens!, access_token: 'dwo_expired' } })
    const both = [expired(), expired()]
    await Promise.all(
      both.map(async (each) => {
        const process = new Client({ name: 'sdk-1', version: '1' })
        await process.connect(open({ authProvider: each }) as never)
        expect((await process.listTools()).tools.length).toBeGreaterThan(0)
        await process.close()
      }),
    )
    expect(both[0]!.remembered.tokens!.refresh_token).toBe(both[1]!.remembered.tokens!.refresh_token)
  })
})

test('the AI SDK lists the tools, and a model’s call publishes', async () => {
  const client = await createMCPClient({ transport: open(bearer()) as never })
  const tools = await client.tools()
  expect(Object.keys(tools)).toContain('service_publish')
  const options = { toolCallId: '1', messages: [] }
  const result = await tools['service_publish']!.execute({ content: '# From the AI SDK' }, options as never)
  const slug = /"slug":"([^"]+)"/.exec(JSON.stringify(result).replaceAll('\\', ''))![1]!
  expect((await stack.visit(slug)).text()).toContain('From the AI SDK')
  await client.close()
})

function bearer() {
  return { requestInit: { headers: { authorization: `Bearer ${person.account.token}` } } }
}
