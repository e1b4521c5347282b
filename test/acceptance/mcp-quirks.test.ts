/** What real clients do that no specification asks for: each is met with an answer that brings them on. */
import { beforeAll, describe, expect, test } from 'vitest'
import { attemptOf, registerClient, signedInPerson, type Person } from '../support/oauth-client.ts'
import { formFields } from '../support/form-browser.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack
let person: Person

beforeAll(async () => {
  stack = await sharedStack()
  person = await signedInPerson(stack)
})

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
const LEGACY = { 'mcp-protocol-version': '2025-06-18' }
const post = (headers: Record<string, string> = {}, json: unknown = LIST, path = '/mcp') =>
  stack.fetch(path, { json, headers })

async function tokensOf(clientId: string): Promise<{ access_token: string; refresh_token: string }> {
  const { query, verifier } = attemptOf(stack, clientId)
  const page = await person.browser.open(`/oauth/authorize?${new URLSearchParams(query)}`)
  const fields = formFields(page.text(), '/oauth/authorize')
  const answer = await person.browser.post('/oauth/authorize', new URLSearchParams({ ...fields, decision: 'allow' }))
  const code = new URL(answer.header('location')!).searchParams.get('code')!
  return exchange({
    grant_type: 'authorization_code',
    code,
    client_id: clientId,
    redirect_uri: query['redirect_uri']!,
    code_verifier: verifier,
    resource: `${stack.baseUrl}/mcp`,
  })
}

async function exchange(fields: Record<string, string>): Promise<{ access_token: string; refresh_token: string }> {
  const body = new URLSearchParams(fields).toString()
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  return (await stack.fetch('/oauth/token', { method: 'POST', body, headers })).json()
}

const newClientId = async (): Promise<string> => (await registerClient(stack)).json<{ client_id: string }>().client_id

test('a client that registers twice within seconds can go on with either registration', async () => {
  const [one, other] = [await newClientId(), await newClientId()]
  expect(one).not.toBe(other)
  for (const id of [one, other]) {
    const { access_token } = await tokensOf(id)
    expect((await post({ ...LEGACY, authorization: `Bearer ${access_token}` })).status).toBe(200)
  }
})

test('the first call after the token comes without it: the answer says where to begin, and the next call works', async () => {
  const { access_token } = await tokensOf(await newClientId())
  const forgotten = await post(LEGACY)
  expect(forgotten.status).toBe(401)
  expect(forgotten.header('www-authenticate')).toContain(
    `resource_metadata="${stack.baseUrl}/.well-known/oauth-protected-resource/mcp"`,
  )
  expect(forgotten.header('www-authenticate')).not.toContain('error=')
  expect((await post({ ...LEGACY, authorization: `Bearer ${access_token}` })).status).toBe(200)
})

test('a token from before a reconnect is refused as such, so that the client asks for a new one and goes on', async () => {
  const clientId = await newClientId()
  const first = await tokensOf(clientId)
  const second = await exchange({
    grant_type: 'refresh_token',
    refresh_token: first.refresh_token,
    client_id: clientId,
  })
  await stack.fetch('/oauth/revoke', {
    method: 'POST',
    body: new URLSearchParams({ token: first.access_token, client_id: clientId }).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })
  const stale = await post({ ...LEGACY, authorization: `Bearer ${first.access_token}` })
  expect([stale.status, stale.header('www-authenticate')?.includes('error="invalid_token"')]).toEqual([401, true])
  const again = await tokensOf(clientId)
  expect((await post({ ...LEGACY, authorization: `Bearer ${again.access_token}` })).status).toBe(200)
  expect(second.access_token).toBeTruthy()
})

describe('with a token', () => {
  let authorization: string
  beforeAll(() => {
    authorization = `Bearer ${person.account.token}`
  })

  test('a session of the older protocol that this server never opened is no obstacle', async () => {
    const answer = await post({ ...LEGACY, authorization, 'mcp-session-id': 'from-another-life' })
    expect([answer.status, answer.text().includes('service_publish')]).toEqual([200, true])
    expect([200, 202, 204, 405]).toContain(
      (await stack.fetch('/mcp', { method: 'DELETE', headers: { authorization, 'mcp-session-id': 'x' } })).status,
    )
  })

  test.each([undefined, '*/*', 'application/json, text/event-stream'])('Accept: %s', async (accept) => {
    const answer = await post({ ...LEGACY, authorization, ...(accept === undefined ? {} : { accept }) })
    expect([answer.status, answer.text().includes('service_publish')]).toEqual([200, true])
  })

  test('a client of 2024-11-05 that opens a stream of events hears in words what to use instead', async () => {
    for (const path of ['/mcp', '/mcp/', '/sse', '/mcp/sse']) {
      const answer = await stack.fetch(path, { headers: { authorization, accept: 'text/event-stream' } })
      expect([path, answer.status, answer.json<{ error: string }>().error]).toEqual([path, 405, 'method_not_allowed'])
      expect(answer.json<{ detail: string }>().detail).toContain(`POST ${stack.baseUrl}/mcp`)
    }
  })
})

describe('the orders in which clients look for the way in', () => {
  const RESOURCE = ['/.well-known/oauth-protected-resource/mcp', '/.well-known/oauth-protected-resource']
  const SERVER = ['/.well-known/oauth-authorization-server/mcp', '/.well-known/oauth-authorization-server']
  const OPENID = [
    '/.well-known/openid-configuration/mcp',
    '/mcp/.well-known/openid-configuration',
    '/.well-known/openid-configuration',
  ]

  /** As their public code does it: the first document that answers counts, and what is not there must say 404. */
  const ORDERS: Readonly<Record<string, readonly string[]>> = {
    'claude.ai, after the 401': [RESOURCE[0]!, SERVER[1]!],
    ChatGPT: [RESOURCE[0]!, RESOURCE[1]!, SERVER[1]!, OPENID[2]!],
    'VS Code': [RESOURCE[0]!, RESOURCE[1]!, SERVER[1]!, OPENID[2]!],
    Cursor: [RESOURCE[0]!, RESOURCE[1]!, SERVER[0]!, SERVER[1]!, ...OPENID],
    Gemini: [RESOURCE[1]!, RESOURCE[0]!, SERVER[1]!, OPENID[2]!],
    Goose: [SERVER[0]!, SERVER[1]!, ...OPENID],
  }

  test.each(Object.entries(ORDERS))('%s', async (_client, addresses) => {
    const answers = await Promise.all(addresses.map((address) => stack.fetch(address)))
    for (const answer of answers) {
      expect([200, 404]).toContain(answer.status)
      expect(answer.header('content-type')).toContain('application/json')
    }
    const documents = answers
      .filter(({ status }) => status === 200)
      .map((answer) => answer.json<{ resource?: string; registration_endpoint?: string }>())
    const resource = documents.find((document) => document.resource !== undefined)
    if (addresses.some((address) => address.includes('protected-resource')))
      expect(resource?.resource).toBe(`${stack.baseUrl}/mcp`)
    const server = documents.find((document) => document.registration_endpoint !== undefined)
    expect(server?.registration_endpoint).toBe(`${stack.baseUrl}/oauth/register`)
  })
})
