/** OAuth from the outside: what clients find, what they get, and every trick that is refused as the RFCs say. */
import { randomBytes } from 'node:crypto'
import * as oauth from 'oauth4webapi'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Answer } from '../support/client.ts'
import { FormBrowser, formFields } from '../support/form-browser.ts'
import { mailedLink } from '../support/mailbox.ts'
import {
  anyAddress,
  attemptOf,
  consentAddress,
  decide,
  exchange,
  newAttempt,
  obtainCode,
  obtainTokens,
  PASSWORD,
  REDIRECT,
  refresh,
  registerClient,
  signedInPerson,
  tokenRequest,
  webFetch,
  type Attempt,
  type Person,
} from '../support/oauth-client.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

let stack: Stack
let person: Person
let stranger: Person

beforeAll(async () => {
  stack = await sharedStack()
  ;[person, stranger] = await Promise.all([signedInPerson(stack), signedInPerson(stack)])
})

const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }

function callMcp(token: string): Promise<Answer> {
  return stack.fetch('/mcp', { token, json: PING, headers: { accept: 'application/json, text/event-stream' } })
}

/** Status and error code of an endpoint's refusal. */
function refusal(answer: Answer): string {
  return `${answer.status} ${answer.json().error}`
}

/** The error that the client hears through the browser; state and issuer must be right. */
function redirectedError(answer: Answer): string {
  const location = new URL(answer.header('location')!)
  expect(answer.status).toBe(303)
  expect(location.href.startsWith(`${REDIRECT}?`)).toBe(true)
  expect(location.searchParams.get('state')).toBe('the state & more')
  expect(location.searchParams.get('iss')).toBe(stack.baseUrl)
  expect(location.searchParams.has('code')).toBe(false)
  return location.searchParams.get('error')!
}

describe('a strict client library', () => {
  test('goes the whole way: discovery, registration, consent, code, tokens, refresh, revocation', async () => {
    const options = { [oauth.customFetch]: webFetch(stack) }
    const resource = new URL(`${stack.baseUrl}/mcp`)
    const challenged = await webFetch(stack)(resource, { method: 'POST' })
    expect(challenged.headers.get('www-authenticate')).toBe(
      `Bearer resource_metadata="${stack.baseUrl}/.well-known/oauth-protected-resource/mcp", scope="mcp"`,
    )
    const metadata = await oauth.processResourceDiscoveryResponse(
      resource,
      await oauth.resourceDiscoveryRequest(resource, options),
    )
    const issuer = new URL(metadata.authorization_servers![0]!)
    const server = await oauth.processDiscoveryResponse(
      issuer,
      await oauth.discoveryRequest(issuer, { ...options, algorithm: 'oauth2' }),
    )
    const client = await oauth.processDynamicClientRegistrationResponse(
      await oauth.dynamicClientRegistrationRequest(server, { redirect_uris: [REDIRECT] }, options),
    )

    const verifier = oauth.generateRandomCodeVerifier()
    const state = oauth.generateRandomState()
    const query = {
      response_type: 'code',
      client_id: client.client_id,
      redirect_uri: REDIRECT,
      state,
      scope: 'mcp',
      resource: resource.href,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }
    expect(server.authorization_endpoint).toBe(`${stack.baseUrl}/oauth/authorize`)
    const returned = await decide(person, { clientId: client.client_id, verifier, query })
    const parameters = oauth.validateAuthResponse(server, client, returned, state)
    const exchanged = await oauth.processAuthorizationCodeResponse(
      server,
      client,
      await oauth.authorizationCodeGrantRequest(server, client, oauth.None(), parameters, REDIRECT, verifier, options),
    )
    expect(exchanged).toMatchObject({ token_type: 'bearer', scope: 'mcp', expires_in: 3600 })
    expect((await callMcp(exchanged.access_token)).status).toBe(200)

    const refreshed = await oauth.processRefreshTokenResponse(
      server,
      client,
      await oauth.refreshTokenGrantRequest(server, client, oauth.None(), exchanged.refresh_token!, options),
    )
    expect(refreshed.refresh_token).not.toBe(exchanged.refresh_token)
    expect((await callMcp(refreshed.access_token)).status).toBe(200)

    await oauth.processRevocationResponse(
      await oauth.revocationRequest(server, client, oauth.None(), refreshed.refresh_token!, options),
    )
    expect((await callMcp(refreshed.access_token)).status).toBe(401)
  })
})

describe('discovery', () => {
  test('both forms of the resource document are one, and the issuer is the base URL byte by byte', async () => {
    const [root, suffixed, server] = await Promise.all(
      ['protected-resource', 'protected-resource/mcp', 'authorization-server'].map((name) =>
        stack.fetch(`/.well-known/oauth-${name}`),
      ),
    )
    expect(root!.json()).toEqual(suffixed!.json())
    expect(root!.json()).toMatchObject({ resource: `${stack.baseUrl}/mcp`, authorization_servers: [stack.baseUrl] })
    expect(server!.json()).toMatchObject({
      issuer: stack.baseUrl,
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'],
      scopes_supported: ['mcp', 'cli'],
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: true,
    })
    for (const answer of [root, suffixed, server]) {
      expect(answer!.header('content-type')).toMatch(/^application\/json/)
      expect(answer!.header('access-control-allow-origin')).toBe('*')
    }
  })

  test.each([
    '/.well-known/oauth-authorization-server',
    '/.well-known/oauth-protected-resource',
    '/.well-known/oauth-protected-resource/mcp',
    '/oauth/register',
    '/oauth/token',
    '/oauth/revoke',
    '/oauth/device_authorization',
  ])('a browser-based client may call %s', async (path) => {
    const headers = { origin: 'https://client.example', 'access-control-request-method': 'POST' }
    const answer = await stack.fetch(path, { method: 'OPTIONS', headers })
    expect(answer.status).toBe(204)
    expect(answer.header('access-control-allow-origin')).toBe('*')
    expect(answer.header('access-control-allow-headers')).toContain('mcp-protocol-version')
    expect(answer.header('access-control-allow-credentials')).toBeUndefined()
  })

  test('errors reach a browser-based client, too', async () => {
    const answer = await tokenRequest(stack, {})
    expect(refusal(answer)).toBe('400 invalid_request')
    expect(answer.header('access-control-allow-origin')).toBe('*')
    expect(answer.header('cache-control')).toBe('no-store')
  })
})

describe('authorization requests', () => {
  /** A client that `person` has let in, and `stranger` has not. */
  let known: Attempt
  beforeAll(async () => {
    known = await newAttempt(stack)
    await obtainTokens(stack, person, known)
  })

  test.each<[string, Record<string, string | undefined>, string]>([
    ['no PKCE', { code_challenge: undefined, code_challenge_method: undefined }, 'invalid_request'],
    ['plain', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['a challenge without a method, which means plain', { code_challenge_method: undefined }, 'invalid_request'],
    ['a challenge that is no hash', { code_challenge: 'short' }, 'invalid_request'],
    ['no response type', { response_type: undefined }, 'invalid_request'],
    ['an implicit grant', { response_type: 'token' }, 'unsupported_response_type'],
    ['a scope of another resource', { scope: 'cli' }, 'invalid_scope'],
    ['a resource elsewhere', { resource: 'https://evil.example/mcp' }, 'invalid_target'],
    ['a resource with a slash too many', { resource: 'trailing' }, 'invalid_target'],
  ])('%s: the client is told %s', async (_, changes, code) => {
    const resource = changes['resource'] === 'trailing' ? { resource: `${stack.baseUrl}/mcp/` } : {}
    const wrong = consentAddress(attemptOf(stack, known.clientId, { ...changes, ...resource }))
    expect(redirectedError(await person.browser.open(wrong))).toBe(code)
    // Anyone can register a client: to a person who never let it in, the error is shown here and leads nowhere.
    for (const browser of [stranger.browser, new FormBrowser(stack, anyAddress())]) {
      const shown = await browser.open(wrong)
      expect([shown.status, shown.header('location')]).toEqual([400, undefined])
    }
  })

  test('a parameter that is given twice is refused', async () => {
    const address = `${consentAddress(attemptOf(stack, known.clientId))}&scope=cli`
    expect(redirectedError(await person.browser.open(address))).toBe('invalid_request')
    expect((await stranger.browser.open(address)).header('location')).toBeUndefined()
  })

  test('a program on the person’s own machine hears what was wrong at once', async () => {
    const redirect_uri = 'http://127.0.0.1:4711/callback'
    const { client_id } = (await registerClient(stack, { redirect_uris: [redirect_uri] })).json()
    const wrong = consentAddress(attemptOf(stack, client_id, { redirect_uri, response_type: 'token' }))
    const answer = await new FormBrowser(stack, anyAddress()).open(wrong)
    expect(answer.status).toBe(303)
    expect(answer.header('location')).toMatch(
      /^http:\/\/127\.0\.0\.1:4711\/callback\?.*error=unsupported_response_type/,
    )
  })

  test.each([
    ['another host', 'https://evil.example/callback'],
    ['a longer host', 'https://client.example.evil.example/callback'],
    ['another path', `${REDIRECT}/../evil`],
    ['another query', `${REDIRECT}?next=https://evil.example`],
    ['a user name', 'https://client.example@evil.example/callback'],
    ['a fragment', `${REDIRECT}#x`],
    ['another scheme', 'http://client.example/callback'],
    ['a script', 'javascript:alert(1)'],
    ['nothing', ''],
  ])('a redirect to %s is refused here, and the browser stays', async (_, redirect_uri) => {
    const answer = await person.browser.open(consentAddress(await newAttempt(stack, { redirect_uri })))
    expect(answer.status).toBe(400)
    expect(answer.header('location')).toBeUndefined()
    expect(answer.text()).toContain('not registered for this client')
  })

  test.each([
    ['unknown', 'cli_unknown'],
    ['a document on a loopback address', 'https://127.0.0.1/client.json'],
    ['a document on a private address', 'https://10.0.0.1/client.json'],
    ['a document of the cloud machine', 'https://169.254.169.254/latest/meta-data/client.json'],
    ['a document on a name for loopback', 'https://localhost/client.json'],
    ['a document by plain http', 'http://client.example/client.json'],
  ])('a client that is %s is refused here', async (_, clientId) => {
    const answer = await person.browser.open(consentAddress(attemptOf(stack, clientId)))
    expect(answer.status).toBe(400)
    expect(answer.header('location')).toBeUndefined()
    expect(answer.text()).toMatch(/not registered|is not a public address/)
  })
})

describe('consent', () => {
  test('signing in comes first, and leads back to the question', async () => {
    const browser = new FormBrowser(stack, anyAddress())
    const address = consentAddress(await newAttempt(stack))
    const first = await browser.open(address)
    expect(first.status).toBe(303)
    const fields = { email: person.account.email, password: PASSWORD }
    const signedIn = await browser.send(first.header('location')!, fields, '/signin')
    expect(signedIn.header('location')).toBe(address)
  })

  test('shows who asks, where it leads, for whom and for what, and cannot be framed', async () => {
    const registered = await registerClient(stack, { client_name: '<b>Editor</b>' })
    const page = await person.browser.open(consentAddress(attemptOf(stack, registered.json().client_id)))
    expect(page.status).toBe(200)
    const text = page.text()
    for (const shown of ['&lt;b&gt;Editor', 'client.example', person.account.email, '<code>mcp</code>', 'Organisation'])
      expect(text).toContain(shown)
    expect(page.header('content-security-policy')).toContain("frame-ancestors 'none'")
    expect(page.header('x-frame-options')).toBe('DENY')
    expect(page.header('cache-control')).toBe('no-store')
  })

  test('an address that is not verified yet cannot allow anything', async () => {
    const browser = new FormBrowser(stack, anyAddress())
    const email = `new-${randomBytes(5).toString('hex')}@example.test`
    await browser.send('/signup', { email, password: PASSWORD })
    const answer = await browser.open(consentAddress(await newAttempt(stack)))
    expect(answer.status).toBe(403)
    expect(answer.text()).not.toContain('decision')
  })

  test('denied: the client hears access_denied and gets no code', async () => {
    const location = await decide(person, await newAttempt(stack), 'deny')
    expect(Object.fromEntries(location.searchParams)).toMatchObject({
      error: 'access_denied',
      state: 'the state & more',
      iss: stack.baseUrl,
    })
    expect(location.searchParams.has('code')).toBe(false)
  })

  const UNSAID = { origin: '', 'sec-fetch-site': '' }
  test.each<[string, (fields: Record<string, string>) => Record<string, string>, Record<string, string>]>([
    ['without the token of the form', (fields) => ({ ...fields, csrf: '' }), UNSAID],
    ['with a token of its own', (fields) => ({ ...fields, csrf: 'x'.repeat(43) }), UNSAID],
    ['from another origin', (fields) => fields, { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }],
    ['from a drop next door', (fields) => fields, { origin: 'https://evil.localhost', 'sec-fetch-site': 'same-site' }],
  ])('a forged decision %s is refused', async (_, forge, headers) => {
    const attempt = await newAttempt(stack)
    const page = await person.browser.open(consentAddress(attempt))
    const fields = forge(formFields(page.text(), '/oauth/authorize'))
    const body = new URLSearchParams({ ...fields, decision: 'allow' })
    const answer = await person.browser.post('/oauth/authorize', body, headers)
    expect(answer.status).toBe(403)
    expect(answer.header('location')).toBeUndefined()
  })

  test.each<[string, (fields: Record<string, string>) => Record<string, string>]>([
    ['without a token', (fields) => ({ ...fields, csrf: '' })],
    ['with another token', (fields) => ({ ...fields, csrf: 'x'.repeat(43) })],
  ])('a decision on our own page %s lets no one in: the question is asked again', async (_, forge) => {
    const page = await person.browser.open(consentAddress(await newAttempt(stack)))
    await expectAskedAgain(forge(formFields(page.text(), '/oauth/authorize')))
  })

  test('the token of one person’s form is worth nothing in the session of another', async () => {
    const page = await stranger.browser.open(consentAddress(await newAttempt(stack)))
    await expectAskedAgain(formFields(page.text(), '/oauth/authorize'))
  })

  async function expectAskedAgain(fields: Record<string, string>): Promise<void> {
    const answer = await person.browser.post('/oauth/authorize', new URLSearchParams({ ...fields, decision: 'allow' }))
    const location = new URL(answer.header('location')!, stack.baseUrl)
    expect([answer.status, location.origin, location.pathname]).toEqual([303, stack.baseUrl, '/oauth/authorize'])
    expect(location.searchParams.has('code')).toBe(false)
    expect((await person.browser.open(`${location.pathname}${location.search}`)).text()).toContain('name="decision"')
  }

  test('when another organisation was chosen since, the question is asked again', async () => {
    const attempt = await newAttempt(stack)
    const page = await person.browser.open(consentAddress(attempt))
    const fields = formFields(page.text(), '/oauth/authorize')
    const body = new URLSearchParams({ ...fields, organisation: stranger.account.org_id, decision: 'allow' })
    const answer = await person.browser.post('/oauth/authorize', body)
    expect(answer.header('location')).toMatch(/^\/oauth\/authorize\?/)
    const changed = await person.browser.post(
      '/oauth/authorize',
      new URLSearchParams({ ...fields, redirect_uri: 'https://evil.example/', decision: 'allow' }),
    )
    expect([changed.status, changed.header('location')]).toEqual([400, undefined])
  })
})

describe('consent cannot be spoofed', () => {
  test.each<[string, string, string[], string[]]>([
    ['a site', 'https://claude.ai/cb?x=1', ['the site <strong>claude.ai</strong>', 'https://claude.ai/cb?x=1'], []],
    [
      'a scheme of its own before a familiar name',
      'evilapp://claude.ai/cb',
      ['answers to <strong>evilapp:</strong> (not a site)', '<code class="whole">evilapp://claude.ai/cb</code>'],
      ['the site <strong>'],
    ],
    ['a name as path', 'com.evil:/claude.ai', ['<strong>com.evil:</strong> (not a site)', 'com.evil:/claude.ai'], []],
    ['a name as subdomain', 'https://claude.ai.evil.example/cb', ['<strong>claude.ai.evil.example</strong>'], []],
    ['a name as port of loopback', 'http://localhost:1234/claude.ai', ['a program on your own computer'], []],
    ['a name in the query', 'https://evil.example/?https://claude.ai/', ['the site <strong>evil.example</strong>'], []],
    ['letters that look alike', 'https://xn--cla-fka7a.example/', ['<strong>xn--cla-fka7a.example</strong>'], []],
    [
      'a very long address',
      `https://evil.example/${'a'.repeat(400)}?claude.ai`,
      [`${'a'.repeat(400)}?claude.ai</code>`, 'the site <strong>evil.example</strong>'],
      [],
    ],
  ])('%s', async (_, redirect, shown, hidden) => {
    const clientId = (await registerClient(stack, { client_name: 'Claude', redirect_uris: [redirect] })).json()
      .client_id
    const text = (
      await person.browser.open(consentAddress(attemptOf(stack, clientId, { redirect_uri: redirect })))
    ).text()
    for (const part of shown) expect(text).toContain(part)
    for (const part of hidden) expect(text).not.toContain(part)
    expect(text).toContain('It named itself; we do not know who made it.')
    expect(text).not.toContain('verified)')
  })

  test('a name cannot carry markup, line breaks or text that turns around', async () => {
    const client_name = 'Claude\u202E (verified)\n<dt>Made by</dt><dd>claude.ai</dd>'
    const clientId = (await registerClient(stack, { client_name })).json().client_id
    const text = (await person.browser.open(consentAddress(attemptOf(stack, clientId)))).text()
    expect(text).toContain('<dt>Made by</dt><dd>unknown</dd>')
    expect(text).not.toMatch(/\u202E|<dd>claude/)
  })
})

describe('what clients ask for besides', () => {
  test.each(['mcp offline_access', 'offline_access', 'openid profile mcp', 'admin'])(
    'scope "%s": what we do not know is left out, and the answer says what was granted',
    async (scope) => {
      const attempt = await newAttempt(stack, { scope })
      const page = await person.browser.open(consentAddress(attempt))
      expect(page.text()).toContain('<code>mcp</code>')
      const tokens = await exchange(stack, attempt, await obtainCode(person, attempt))
      expect(tokens.json()).toMatchObject({ scope: 'mcp' })
      const again = { grant_type: 'refresh_token', client_id: attempt.clientId, scope }
      expect((await tokenRequest(stack, { ...again, refresh_token: tokens.json().refresh_token })).status).toBe(200)
    },
  )
})

describe('a client that we do not know', () => {
  test.each([
    ['a made-up id', () => 'cli_unknown'],
    ['the id of an earlier release that was deleted', () => 'cli_01jc3m8q4r5s6t7v8w9x0y'],
    ['an id whose redirect was changed', (id: string) => forgedId(id)],
    ['an id with another signature', (id: string) => `${id.slice(0, -4)}AAAA`],
  ])('%s: the program on this machine hears it at once and registers anew', async (_, forge) => {
    const clientId = forge((await registerClient(stack)).json().client_id)
    const redirect_uri = 'http://localhost:3334/oauth/callback'
    const answer = await person.browser.open(consentAddress(attemptOf(stack, clientId, { redirect_uri })))
    const location = new URL(answer.header('location')!)
    expect(`${location.origin}${location.pathname}`).toBe(redirect_uri)
    expect(Object.fromEntries(location.searchParams)).toMatchObject({
      error: 'invalid_client',
      state: 'the state & more',
    })
    const fields = { grant_type: 'refresh_token', client_id: clientId, refresh_token: 'dwr_x' }
    expect(refusal(await tokenRequest(stack, fields))).toBe('401 invalid_client')
  })

  test('no one is sent to another address on its word', async () => {
    for (const redirect_uri of [
      'https://evil.example/cb',
      'evilapp://cb',
      'http://localhost.evil.example/',
      'http://localhost:1/\u{1F4A9}',
      '',
    ]) {
      const answer = await person.browser.open(consentAddress(attemptOf(stack, 'cli_unknown', { redirect_uri })))
      expect([answer.status, answer.header('location')], redirect_uri).toEqual([400, undefined])
    }
  })
})

/** The same id with a redirect of the forger's choice. */
function forgedId(id: string): string {
  const [carried, signature] = id.slice('cli_'.length).split('.')
  const changed = Buffer.from(carried!, 'base64url').toString().replace('client.example', 'evil.example')
  return `cli_${Buffer.from(changed).toString('base64url')}.${signature}`
}

describe('signing up in the middle', () => {
  test('comes back to the question: at once after the mail, in the waiting tab and behind its link', async () => {
    const browser = new FormBrowser(stack, anyAddress())
    const attempt = await newAttempt(stack)
    const address = consentAddress(attempt)
    const toSignIn = (await browser.open(address)).header('location')!
    const signUp = /href="(\/signup\?next=[^"]+)"/.exec((await browser.open(toSignIn)).text())![1]!
    const email = `new-${randomBytes(5).toString('hex')}@example.test`
    const signedUp = await browser.send(signUp.replaceAll('&amp;', '&'), { email, password: PASSWORD }, '/signup')
    expect(signedUp.header('location')).toBe(address)
    const waiting = await browser.open(address)
    expect([waiting.status, waiting.header('refresh')]).toEqual([403, '4'])
    expect(waiting.text()).toContain(email)

    // A tab of the same browser opens the mail; another browser knows nothing of what waits.
    const link = await mailedLink(stack, email, '/verify')
    const verified = (await browser.confirm(link)).text()
    expect(verified).toContain(`href="${address.replaceAll('&', '&amp;')}"`)
    const elsewhere = await new FormBrowser(stack, anyAddress()).open(link)
    expect(elsewhere.text()).not.toContain('/oauth/authorize')
    expect((await browser.open(address)).text()).toContain('value="allow"')
    expect((await callMcp((await obtainTokens(stack, { ...person, browser }, attempt)).access_token)).status).toBe(200)
  })
})

describe('the token endpoint', () => {
  test.each<[string, (attempt: Attempt) => Record<string, string>, string]>([
    ['a wrong verifier', () => ({ code_verifier: 'x'.repeat(43) }), '400 invalid_grant'],
    ['no verifier', () => ({ code_verifier: '' }), '400 invalid_request'],
    ['the challenge as verifier', ({ query }) => ({ code_verifier: query['code_challenge']! }), '400 invalid_grant'],
    ['another redirect', () => ({ redirect_uri: 'https://evil.example/callback' }), '400 invalid_grant'],
    ['another resource', () => ({ resource: `${stack.baseUrl}/api/v1` }), '400 invalid_target'],
    ['no client', () => ({ client_id: '' }), '400 invalid_request'],
    ['an unknown client', () => ({ client_id: 'cli_unknown' }), '401 invalid_client'],
    ['no code', () => ({ code: '' }), '400 invalid_request'],
    ['a made-up code', () => ({ code: 'x'.repeat(43) }), '400 invalid_grant'],
    ['another grant type', () => ({ grant_type: 'password' }), '400 unsupported_grant_type'],
  ])('%s is refused', async (_, changes, expected) => {
    const attempt = await newAttempt(stack)
    const code = await obtainCode(person, attempt)
    expect(refusal(await exchange(stack, attempt, code, changes(attempt)))).toBe(expected)
  })

  test('the code of another client is refused, and stays good for its own', async () => {
    const [own, other] = [await newAttempt(stack), await newAttempt(stack)]
    const code = await obtainCode(person, own)
    expect(refusal(await exchange(stack, { ...own, clientId: other.clientId }, code))).toBe('400 invalid_grant')
    expect((await exchange(stack, own, code)).status).toBe(200)
  })

  test('a code that is used again is refused, and takes the tokens with it', async () => {
    const attempt = await newAttempt(stack)
    const code = await obtainCode(person, attempt)
    const { access_token } = (await exchange(stack, attempt, code)).json()
    expect(refusal(await exchange(stack, attempt, code))).toBe('400 invalid_grant')
    expect((await callMcp(access_token)).status).toBe(401)
  })

  test('two refreshes at once, or one again after a lost answer, keep the client signed in', async () => {
    const attempt = await newAttempt(stack)
    const first = await obtainTokens(stack, person, attempt)
    const answers = await Promise.all([1, 2, 3].map(() => refresh(stack, attempt, first.refresh_token)))
    const lost = await refresh(stack, attempt, first.refresh_token)
    for (const answer of [...answers, lost]) {
      expect(answer.status).toBe(200)
      expect(answer.json().refresh_token).toBe(lost.json().refresh_token)
      expect((await callMcp(answer.json().access_token)).status).toBe(200)
    }
    expect((await refresh(stack, attempt, lost.json().refresh_token)).status).toBe(200)
  })

  test('a refresh token whose successor was used is refused, and takes everything with it', async () => {
    const attempt = await newAttempt(stack)
    const first = await obtainTokens(stack, person, attempt)
    const other = await newAttempt(stack)
    expect(refusal(await refresh(stack, other, first.refresh_token))).toBe('400 invalid_grant')
    const second = (await refresh(stack, attempt, first.refresh_token)).json()
    const third = (await refresh(stack, attempt, second.refresh_token)).json()
    expect((await callMcp(third.access_token)).status).toBe(200)
    expect(refusal(await refresh(stack, attempt, first.refresh_token))).toBe('400 invalid_grant')
    expect((await callMcp(third.access_token)).status).toBe(401)
    expect(refusal(await refresh(stack, attempt, third.refresh_token))).toBe('400 invalid_grant')
  })

  test('JSON, a client secret in a header and a repeated parameter are refused with words', async () => {
    const json = await stack.fetch('/oauth/token', { json: { grant_type: 'refresh_token' } })
    expect(refusal(json)).toBe('400 invalid_request')
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const secret = await stack.fetch('/oauth/token', {
      headers: { ...form, authorization: `Basic ${Buffer.from('a:b').toString('base64')}` },
      body: 'grant_type=refresh_token',
    })
    expect(refusal(secret)).toBe('401 invalid_client')
    expect(secret.header('www-authenticate')).toMatch(/^Basic/)
    const twice = await stack.fetch('/oauth/token', { headers: form, body: 'grant_type=a&grant_type=b' })
    expect(refusal(twice)).toBe('400 invalid_request')
  })
})

describe('audience and revocation', () => {
  test('a token works at its resource alone', async () => {
    const mcp = await obtainTokens(stack, person, await newAttempt(stack))
    const forApi = await newAttempt(stack, { scope: 'cli', resource: undefined })
    const cli = await obtainTokens(stack, person, forApi)
    const api = (token: string) => stack.fetch('/api/v1/me', { token })
    const [mcpAtMcp, mcpAtApi] = [await callMcp(mcp.access_token), await api(mcp.access_token)]
    const [cliAtMcp, cliAtApi] = [await callMcp(cli.access_token), await api(cli.access_token)]
    expect([mcpAtMcp, mcpAtApi, cliAtMcp, cliAtApi].map((answer) => answer.status)).toEqual([200, 401, 401, 200])
    for (const refused of [mcpAtApi, cliAtMcp])
      expect(refused.header('www-authenticate')).toContain('error="invalid_token"')
    for (const wrong of [mcp.refresh_token, 'dwo_unknown', 'unknown']) expect((await callMcp(wrong)).status).toBe(401)
  })

  test('only the client that a token was issued to revokes it; an unknown token is no error', async () => {
    const attempt = await newAttempt(stack)
    const { access_token } = await obtainTokens(stack, person, attempt)
    const revoke = (fields: Record<string, string>) => tokenRequest(stack, fields, '/oauth/revoke')
    const other = (await newAttempt(stack)).clientId
    expect(refusal(await revoke({ token: access_token, client_id: other }))).toBe('400 invalid_grant')
    expect(refusal(await revoke({ client_id: attempt.clientId }))).toBe('400 invalid_request')
    expect((await callMcp(access_token)).status).toBe(200)
    expect((await revoke({ token: 'unknown', client_id: attempt.clientId })).status).toBe(200)
    expect((await revoke({ token: access_token, client_id: attempt.clientId })).status).toBe(200)
    expect((await callMcp(access_token)).status).toBe(401)
  })

  test('a connected app is listed in the dashboard, and is out with the next request after "Revoke"', async () => {
    const registered = await registerClient(stack, { client_name: 'Revocable editor' })
    const attempt = attemptOf(stack, registered.json().client_id)
    const tokens = await obtainTokens(stack, person, attempt)
    expect((await callMcp(tokens.access_token)).status).toBe(200)
    const page = (await person.browser.open('/account/apps')).text()
    const entry = page.split('<li class="card">').find((part) => part.includes('Revocable editor'))!
    const question = /\/account\/apps\/revoke\?id=\w+/.exec(entry)![0]
    const fields = formFields((await person.browser.open(question)).text(), '/account/apps/revoke')
    // Someone else knows the id: that is not enough.
    const theirs = (await stranger.browser.open('/account')).text()
    const csrf = formFields(theirs, /<form[^>]*action="([^"]+)"/.exec(theirs)![1]!)['csrf']!
    const stolen = await stranger.browser.post('/account/apps/revoke', new URLSearchParams({ ...fields, csrf }))
    expect(stolen.header('location') ?? '').not.toContain('done=revoked')
    expect((await callMcp(tokens.access_token)).status).toBe(200)

    await person.browser.post('/account/apps/revoke', new URLSearchParams(fields))
    expect((await callMcp(tokens.access_token)).status).toBe(401)
    expect(refusal(await refresh(stack, attempt, tokens.refresh_token))).toBe('400 invalid_grant')
    expect((await person.browser.open('/account/apps')).text()).not.toContain('Revocable editor')
  })
})

describe('registration', () => {
  test.each<[string, unknown, string]>([
    ['a script as redirect', { redirect_uris: ['javascript:alert(1)'] }, '400 invalid_redirect_uri'],
    ['plain http elsewhere', { redirect_uris: ['http://client.example/'] }, '400 invalid_redirect_uri'],
    ['no redirect', {}, '400 invalid_redirect_uri'],
    ['no redirect for codes', { grant_types: ['authorization_code', DEVICE_GRANT] }, '400 invalid_redirect_uri'],
    [
      'a grant that we do not have',
      { redirect_uris: [REDIRECT], grant_types: ['password'] },
      '400 invalid_client_metadata',
    ],
    ['a list', [], '400 invalid_client_metadata'],
  ])('%s is refused', async (_, json, expected) => {
    expect(refusal(await stack.fetch('/oauth/register', { json, from: anyAddress() }))).toBe(expected)
  })

  test('broken JSON is refused as metadata, a huge body by its size', async () => {
    const headers = { 'content-type': 'application/json' }
    const send = (body: string) => stack.fetch('/oauth/register', { headers, body, from: anyAddress() })
    expect(refusal(await send('{'))).toBe('400 invalid_client_metadata')
    expect((await send(`{"x":"${'x'.repeat(20_000)}"}`)).status).toBe(413)
  })

  test('a client that wants a secret is registered as a public one', async () => {
    const answer = await registerClient(stack, { token_endpoint_auth_method: 'client_secret_post' })
    expect(answer.status).toBe(201)
    expect(answer.json()).toMatchObject({ token_endpoint_auth_method: 'none', redirect_uris: [REDIRECT] })
    expect(answer.json()).not.toHaveProperty('client_secret')
  })

  test('a flood from one address is stopped, and others go on', async () => {
    const from = anyAddress()
    const json = { redirect_uris: [REDIRECT] }
    const answers: Answer[] = []
    for (let batch = 0; batch < 11; batch++)
      answers.push(
        ...(await Promise.all(Array.from({ length: 10 }, () => stack.fetch('/oauth/register', { json, from })))),
      )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(100)
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(10)
    expect(refusal(refused[0]!)).toBe('429 temporarily_unavailable')
    expect(Number(refused[0]!.header('retry-after'))).toBeGreaterThan(0)
    expect((await registerClient(stack)).status).toBe(201)
  })
})
