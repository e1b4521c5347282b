import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  accessScopesOf,
  clientDocumentSchema,
  decideGrant,
  DEVICE_GRANT,
  exchangeOf,
  isAcceptableRedirect,
  challengePattern,
  isClientDocumentUrl,
  isLoopbackRedirect,
  isRegisteredRedirect,
  isVerified,
  OAuthError,
  registrationSchema,
  requireParameters,
  requireSameResource,
  requireSingle,
  requireSubset,
  resourcesOf,
  returnPlace,
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
    ['https://user@client.example/', false],
    ['https://:secret@client.example/', false],
    ['web+app.one-2:/callback', true],
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
    ['about:blank', false],
    ['ftp://client.example/', false],
    ['ws://client.example/', false],
    ['wss://client.example/', false],
    ['view-source:https://client.example/', false],
    ['filesystem:https://client.example/', false],
    ['mailto:a@client.example', false],
    ['tel:1', false],
    ['sms:1', false],
    ['intent://x#', false],
    ['intent:x', false],
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

  test('a registered address that may no longer be one gets no answer', () => {
    expect(isRegisteredRedirect('http://client.example/cb', ['http://client.example/cb'])).toBe(false)
  })
  test.each([
    ['http://127.0.0.1', 'http://127.0.0.1:65535', true],
    ['http://127.0.0.1', 'http://127.0.0.1?a', false],
    ['http://127.0.0.1?a', 'http://127.0.0.1:1?a', true],
    ['http://127.0.0.1', 'http://127.0.0.1:', false],
    ['http://localhost/cb', 'http://127.0.0.1/cb', false],
  ])('who registered %s is answered at %s: %s', (registered_, uri, expected) =>
    expect(isRegisteredRedirect(uri, [registered_])).toBe(expected),
  )

  test.each([
    ['http://localhost:4711/cb', true],
    ['http://127.0.0.1/', true],
    ['http://[::1]:1', true],
    ['http://127.0.0.1:123456/', false],
    ['http://127a0b0c1/', false],
    ['http://127.0.0.12/', false],
    ['https://localhost/cb', false],
    ['xhttp://localhost/cb', false],
    ['http://localhost/cb\nx', false],
  ])('%s leads to the person’s own machine: %s', (uri, expected) => expect(isLoopbackRedirect(uri)).toBe(expected))

  test.each([
    ['https://client.example:8443/cb', { kind: 'site', host: 'client.example:8443' }],
    ['https://localhost/cb', { kind: 'own-machine' }],
    ['https://127.0.0.1/cb', { kind: 'own-machine' }],
    ['https://[::1]/cb', { kind: 'own-machine' }],
    ['http://localhost:4711/cb', { kind: 'own-machine' }],
    ['https.client.example://localhost/cb', { kind: 'app', scheme: 'https.client.example:' }],
    ['com.example.app:/cb', { kind: 'app', scheme: 'com.example.app:' }],
  ])('%s is told to the person as %j', (uri, place) => expect(returnPlace(uri)).toEqual(place))

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
    ['read', undefined, { ...mcp, scopes: ['read'] }],
    ['publish mcp', undefined, { ...mcp, scopes: ['mcp', 'publish'] }],
    ['publish read', `${BASE_URL}/api/v1`, { ...cli, scopes: ['read', 'publish'] }],
    ['manage', `${BASE_URL}/mcp`, { ...mcp, scopes: ['manage'] }],
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

test('who asks a resource for what it does not take hears what it takes', () => {
  expect(() => decideGrant({ scope: 'cli', resource: `${BASE_URL}/mcp` }, BASE_URL)).toThrow(
    'This resource takes the scopes mcp, read, publish, manage.',
  )
})

test.each([
  [['mcp'], null],
  [['cli', 'offline_access'], null],
  [['mcp', 'read'], ['read']],
  [
    ['manage', 'read'],
    ['read', 'manage'],
  ],
])('a grant of %j is narrowed to %j', (granted, scopes) => expect(accessScopesOf(granted)).toEqual(scopes))

describe('a workflow’s token for one of ours', () => {
  const jwt = 'urn:ietf:params:oauth:token-type:jwt'
  const asked = { subject_token: 'a.b.c', subject_token_type: jwt, site: 'docs' }
  const ask = (change: Record<string, string>) => exchangeOf(new URLSearchParams({ ...asked, ...change }))
  const taken = { token: 'a.b.c', site: 'docs', preview: null }
  test.each<[Record<string, string>, ReturnType<typeof exchangeOf>]>([
    [{}, taken],
    [{ subject_token_type: 'urn:ietf:params:oauth:token-type:id_token' }, taken],
    [{ scope: 'publish', audience: BASE_URL }, taken],
    [{ scope: '', preview: '' }, taken],
    [{ preview: 'pr-12' }, { ...taken, preview: 'pr-12' }],
  ])('asked for with %j: %j', (change, exchange) => expect(ask(change)).toEqual(exchange))

  test.each([
    [{ subject_token: '' }, 'invalid_request', 'subject_token is missing.'],
    [{ subject_token_type: '' }, 'invalid_request', 'subject_token_type is missing.'],
    [{ site: '' }, 'invalid_request', 'site is missing.'],
    [{ subject_token_type: 'jwt' }, 'invalid_request', `subject_token_type is one of ${jwt}, urn:ietf`],
    [{ scope: 'manage' }, 'invalid_scope', 'An exchange gives the scope publish.'],
    [{ scope: 'publish read' }, 'invalid_scope', 'An exchange gives the scope publish.'],
    [{ preview: 'PR 12' }, 'invalid_request', 'preview is the name of a preview'],
  ])('refused with %j: %s', (change, code, words) => {
    expect(codeOf(() => ask(change))).toBe(code)
    expect(() => ask(change)).toThrow(words)
  })
})

describe('what was granted binds what follows', () => {
  const form = (text: string) => new URLSearchParams(text)
  test.each([
    ['', 'accepted'],
    [`resource=${BASE_URL}/mcp`, 'accepted'],
    [`resource=${BASE_URL}/api/v1`, 'invalid_target'],
    ['resource=', 'invalid_target'],
  ])('a token for the one resource, asked for with %j: %s', (text, code) =>
    expect(codeOf(() => requireSameResource(form(text), `${BASE_URL}/mcp`))).toBe(code),
  )
  test.each([
    [null, ['mcp'], 'accepted'],
    ['mcp', ['mcp'], 'accepted'],
    ['mcp offline_access', ['mcp'], 'accepted'],
    ['cli', ['mcp'], 'invalid_scope'],
    ['mcp cli', ['mcp'], 'invalid_scope'],
    ['mcp cli', ['mcp', 'cli'], 'accepted'],
  ])('a refresh for %j of %j: %s', (scope, granted, code) =>
    expect(codeOf(() => requireSubset(scope, granted))).toBe(code),
  )
  test.each([
    ['code=1&redirect_uri=2', 'accepted'],
    ['code=1', 'invalid_request'],
    ['code=1&redirect_uri=', 'invalid_request'],
    ['redirect_uri=2', 'invalid_request'],
  ])('the parameters of %j: %s', (text, code) =>
    expect(codeOf(() => requireParameters(form(text), ['code', 'redirect_uri']))).toBe(code),
  )
  test('the first parameter that is missing is named', () => {
    expect(() => requireParameters(form(''), ['code', 'redirect_uri'])).toThrow('code is missing.')
  })
  test('each resource takes its own scope', () => {
    expect([...resourcesOf(BASE_URL)]).toEqual([
      [`${BASE_URL}/mcp`, 'mcp'],
      [`${BASE_URL}/api/v1`, 'cli'],
    ])
  })
  test('an error is the client’s unless said otherwise', () => {
    expect(new OAuthError('invalid_request', 'No.')).toMatchObject({ code: 'invalid_request', status: 400 })
  })
})

describe('PKCE', () => {
  // RFC 7636, appendix B.
  const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
  const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
  test('the example of the RFC', () => expect(isVerified(verifier, challenge)).toBe(true))
  test.each([`${verifier}x`, verifier.toLowerCase(), '', challenge, `${verifier} `])('wrong: %j', (wrong) =>
    expect(isVerified(wrong, challenge)).toBe(false),
  )
  const challengeOf = (text: string) => createHash('sha256').update(text).digest('base64url')
  test.each([
    [42, false],
    [43, true],
    [128, true],
    [129, false],
  ])('a verifier of %d characters: %s', (chars, expected) => {
    const text = 'a'.repeat(chars)
    expect(isVerified(text, challengeOf(text))).toBe(expected)
  })
  test.each(['~._-AZaz09', ' ', 'é', '+', '/', '='])('a verifier with %j', (piece) => {
    const [before, after] = [`${piece}${verifier}`, `${verifier}${piece}`]
    const isUnreserved = /^[\w.~-]+$/.test(piece)
    expect(isVerified(before, challengeOf(before))).toBe(isUnreserved)
    expect(isVerified(after, challengeOf(after))).toBe(isUnreserved)
  })
  test.each([challenge, `${challenge}A`, challenge.slice(1), `${challenge.slice(1)}=`, ` ${challenge.slice(1)}`])(
    'a challenge is the hash of a verifier, as base64url: %j',
    (text) => expect(challengePattern.test(text)).toBe(text === challenge),
  )
  test('a verifier that is too short is none, whatever its hash', () => expect(isVerified('', '')).toBe(false))
})

describe('client documents', () => {
  test.each([
    ['https://app.example/oauth/client.json', true],
    ['https://app.example/a', true],
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

  test('a document without redirect addresses describes no one', () =>
    expect(clientDocumentSchema.safeParse({ client_id: 'https://a.example/c', redirect_uris: [] }).success).toBe(false))
})

describe('registration', () => {
  const name = (client_name: string) =>
    registrationSchema.parse({ redirect_uris: ['https://c.example/cb'], client_name }).client_name
  test('a name shows nothing invisible and nothing that turns the text around', () => {
    expect(name(' Editor \u202egnp\u200b.exe\u0000\n')).toBe('Editor gnp.exe')
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
    { redirect_uris: [`https://c.example/${'x'.repeat(483)}`] },
    { redirect_uris: ['https://c.example/cb'], client_name: 'x'.repeat(201) },
    { redirect_uris: ['https://c.example/cb'], grant_types: ['authorization_code', 'x'.repeat(201)] },
    { redirect_uris: ['https://c.example/cb'], grant_types: Array<string>(21).fill('authorization_code') },
    { redirect_uris: [], grant_types: ['authorization_code', DEVICE_GRANT] },
    { grant_types: ['authorization_code'] },
  ])('refused: %j', (body) => expect(registrationSchema.safeParse(body).success).toBe(false))

  test.each([
    { redirect_uris: [`https://c.example/${'x'.repeat(482)}`] },
    { redirect_uris: Array.from({ length: 10 }, (_, index) => `https://c.example/${index}`) },
    { redirect_uris: ['https://c.example/cb'], response_types: [] },
    { redirect_uris: ['https://c.example/cb'], response_types: ['token', 'code'] },
    { redirect_uris: ['https://c.example/cb'], grant_types: ['authorization_code', 'refresh_token'] },
    { redirect_uris: ['https://c.example/cb'], grant_types: Array<string>(20).fill('authorization_code') },
    { redirect_uris: ['https://c.example/cb'], grant_types: ['authorization_code', 'x'.repeat(200)] },
    { grant_types: ['urn:ietf:params:oauth:grant-type:device_code'] },
    { redirect_uris: [], grant_types: [DEVICE_GRANT, 'refresh_token'] },
  ])('accepted: %j', (body) => expect(registrationSchema.safeParse(body).success).toBe(true))

  test('who has no address to come back to hears which field is missing', () => {
    expect(registrationSchema.safeParse({}).error?.issues).toMatchObject([{ path: ['redirect_uris'] }])
  })
})

test('a parameter that is given twice is refused', () => {
  expect(codeOf(() => requireSingle(new URLSearchParams('scope=mcp&scope=cli')))).toBe('invalid_request')
  expect(codeOf(() => requireSingle(new URLSearchParams('scope=mcp&state=mcp')))).toBe('accepted')
})
