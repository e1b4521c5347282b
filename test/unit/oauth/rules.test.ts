import { describe, expect, test } from 'vitest'
import {
  clientDocumentSchema,
  decideGrant,
  isAcceptableRedirect,
  isClientDocumentUrl,
  isRegisteredRedirect,
  isVerified,
  OAuthError,
  registrationSchema,
  requireSingle,
  withAnswer,
} from '../../../control/doors/oauth/rules.ts'

const BASE_URL = 'https://dropway.example'

function codeOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof OAuthError) return error.code
    throw error
  }
  return 'accepted'
}

describe('redirect addresses', () => {
  test.each([
    ['https://client.example/callback', true],
    ['https://client.example/callback?tenant=1', true],
    ['http://127.0.0.1:4711/callback', true],
    ['http://localhost/callback', true],
    ['http://[::1]:4711/', true],
    ['com.example.app:/callback', true],
    ['cursor://anysphere.cursor/oauth/callback', true],
    ['http://client.example/callback', false],
    ['http://127.0.0.1.evil.example/callback', false],
    ['http://localhost.evil.example/', false],
    ['https://client.example/callback#fragment', false],
    ['https://client.example/callback#', false],
    ['https://user:secret@client.example/', false],
    ['https://client.example\\@evil.example/', false],
    ['https://client.example/\r\nset-cookie:x=y', false],
    ['https://client.example/ callback', false],
    ['https://clïent.example/', false],
    ['javascript:alert(1)', false],
    ['JavaScript:alert(1)', false],
    ['java\nscript:alert(1)', false],
    ['data:text/html,hello', false],
    ['vbscript:x', false],
    ['file:///etc/passwd', false],
    ['blob:https://client.example/1', false],
    ['/callback', false],
    ['', false],
  ])('may be registered: %j %s', (uri, expected) => expect(isAcceptableRedirect(uri)).toBe(expected))

  const registered = ['https://client.example/callback', 'http://127.0.0.1/callback', 'http://[::1]:1/cb?a=b']
  test.each([
    ['https://client.example/callback', true],
    ['http://127.0.0.1/callback', true],
    ['http://127.0.0.1:51004/callback', true],
    ['http://[::1]:51004/cb?a=b', true],
    ['https://client.example/callback/', false],
    ['https://client.example/callback?x=1', false],
    ['https://client.example/Callback', false],
    ['https://client.example/callback/../callback', false],
    ['https://client.example/%63allback', false],
    ['https://client.example:443/callback', false],
    ['https://client.example:8443/callback', false],
    ['https://client.example.evil.example/callback', false],
    ['https://evil.example/?https://client.example/callback', false],
    ['http://client.example/callback', false],
    ['HTTPS://client.example/callback', false],
    ['http://localhost:51004/callback', false],
    ['http://127.0.0.1:51004/other', false],
    ['http://127.0.0.1:51004/callback/../callback', false],
    ['http://127.0.0.1:51004/callback?x=1', false],
    ['http://127.0.0.1:51004@evil.example/callback', false],
    ['http://127.0.0.1:51004.evil.example/callback', false],
    ['https://127.0.0.1:51004/callback', false],
    ['http://127.1:51004/callback', false],
    ['', false],
  ])('answers a request: %j %s', (uri, expected) => expect(isRegisteredRedirect(uri, registered)).toBe(expected))

  test('the query of the address stays as it is, and the answer comes behind it', () => {
    expect(withAnswer('https://c.example/cb?a=%20b', { code: 'x&y', state: undefined, iss: BASE_URL })).toBe(
      'https://c.example/cb?a=%20b&code=x%26y&iss=https%3A%2F%2Fdropway.example',
    )
    expect(withAnswer('com.example.app:/cb', { code: '1' })).toBe('com.example.app:/cb?code=1')
  })
})

describe('scopes and resources', () => {
  const mcp = { resource: `${BASE_URL}/mcp`, scopes: ['mcp'] }
  const cli = { resource: `${BASE_URL}/api/v1`, scopes: ['cli'] }
  test.each([
    [undefined, undefined, mcp],
    ['mcp', undefined, mcp],
    ['cli', undefined, cli],
    ['mcp cli', undefined, mcp],
    ['cli mcp', `${BASE_URL}/api/v1`, cli],
    [undefined, `${BASE_URL}/api/v1`, cli],
    ['offline_access', undefined, mcp],
    ['cli offline_access', undefined, cli],
    ['  mcp   openid ', undefined, mcp],
    ['admin', `${BASE_URL}/api/v1`, cli],
  ])('scope %j for %j is granted as one of them', (scope, resource, expected) =>
    expect(decideGrant({ scope, resource }, BASE_URL)).toEqual(expected),
  )
  test.each([
    ['cli', `${BASE_URL}/mcp`, 'invalid_scope'],
    ['mcp', `${BASE_URL}/api/v1`, 'invalid_scope'],
    ['mcp', BASE_URL, 'invalid_target'],
    ['mcp', `${BASE_URL}/mcp/`, 'invalid_target'],
    ['mcp', `${BASE_URL}/MCP`, 'invalid_target'],
    ['mcp', 'https://other.example/mcp', 'invalid_target'],
    ['mcp', '', 'invalid_target'],
  ])('scope %j for %j is refused: %s', (scope, resource, code) =>
    expect(codeOf(() => decideGrant({ scope, resource }, BASE_URL))).toBe(code),
  )
})

describe('PKCE', () => {
  // RFC 7636, appendix B.
  const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
  const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
  test('the example of the RFC', () => expect(isVerified(verifier, challenge)).toBe(true))
  test.each([`${verifier}x`, verifier.toLowerCase(), '', challenge, `${verifier} `])('wrong: %j', (wrong) =>
    expect(isVerified(wrong, challenge)).toBe(false),
  )
  test('a verifier that is too short is none, whatever its hash', () => expect(isVerified('', '')).toBe(false))
})

describe('client documents', () => {
  test.each([
    ['https://app.example/oauth/client.json', true],
    ['https://app.example/', false],
    ['https://app.example', false],
    ['http://app.example/client.json', false],
    ['https://app.example/client.json#x', false],
    ['https://user@app.example/client.json', false],
    ['https://:pw@app.example/client.json', false],
    ['https://app.example/a/../client.json', false],
    ['https://APP.example/client.json', false],
    ['cli_0123', false],
  ])('%s is an id: %s', (id, expected) => expect(isClientDocumentUrl(id)).toBe(expected))

  test('a document without redirect addresses describes nobody', () =>
    expect(clientDocumentSchema.safeParse({ client_id: 'https://a.example/c', redirect_uris: [] }).success).toBe(false))
})

describe('registration', () => {
  const name = (client_name: string) =>
    registrationSchema.parse({ redirect_uris: ['https://c.example/cb'], client_name }).client_name
  test('a name shows nothing invisible and nothing that turns the text around', () => {
    expect(name(' Editor \u202egnp.exe\u0000\n')).toBe('Editor gnp.exe')
    expect(name('\u200b')).toBeUndefined()
    expect(name('x'.repeat(200))).toHaveLength(80)
  })
  test.each([
    { redirect_uris: [] },
    {},
    { redirect_uris: ['javascript:alert(1)'] },
    { redirect_uris: ['https://c.example/cb'], grant_types: ['client_credentials'] },
    { redirect_uris: ['https://c.example/cb'], response_types: ['token'] },
    { redirect_uris: Array.from({ length: 11 }, (_, index) => `https://c.example/${index}`) },
    'text',
    null,
  ])('refused: %j', (body) => expect(registrationSchema.safeParse(body).success).toBe(false))
})

test('a parameter that is given twice is refused', () => {
  expect(codeOf(() => requireSingle(new URLSearchParams('scope=mcp&scope=cli')))).toBe('invalid_request')
  expect(codeOf(() => requireSingle(new URLSearchParams('scope=mcp&state=mcp')))).toBe('accepted')
})
