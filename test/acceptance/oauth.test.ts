/** OAuth from the outside: what clients find, how they register, and the whole way of one that follows the RFCs. */
import * as oauth from 'oauth4webapi'
import { beforeAll, describe, expect, test } from 'vitest'
import { nextAddress } from '../support/addresses.ts'
import { refusal, type Answer } from '../support/client.ts'
import {
  callMcp,
  decide,
  DEVICE_GRANT,
  REDIRECT,
  registerClient,
  signedInPerson,
  tokenRequest,
  webFetch,
  type Person,
} from '../support/oauth-client.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack
let person: Person

beforeAll(async () => {
  stack = await sharedStack()
  person = await signedInPerson(stack)
})

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
    expect((await callMcp(stack, exchanged.access_token)).status).toBe(200)

    const refreshed = await oauth.processRefreshTokenResponse(
      server,
      client,
      await oauth.refreshTokenGrantRequest(server, client, oauth.None(), exchanged.refresh_token!, options),
    )
    expect(refreshed.refresh_token).not.toBe(exchanged.refresh_token)
    expect((await callMcp(stack, refreshed.access_token)).status).toBe(200)

    await oauth.processRevocationResponse(
      await oauth.revocationRequest(server, client, oauth.None(), refreshed.refresh_token!, options),
    )
    expect((await callMcp(stack, refreshed.access_token)).status).toBe(401)
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
      scopes_supported: ['mcp', 'cli', 'read', 'publish', 'manage'],
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
    expect(refusal(await stack.fetch('/oauth/register', { json, from: nextAddress() }))).toBe(expected)
  })

  test('broken JSON is refused as metadata, a huge body by its size', async () => {
    const headers = { 'content-type': 'application/json' }
    const send = (body: string) => stack.fetch('/oauth/register', { headers, body, from: nextAddress() })
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
    const from = nextAddress()
    const json = { redirect_uris: [REDIRECT] }
    const answers: Answer[] = []
    const begun = Date.now()
    for (let batch = 0; batch < 11; batch++)
      answers.push(
        ...(await Promise.all(Array.from({ length: 10 }, () => stack.fetch('/oauth/register', { json, from })))),
      )
    // A hundred an hour: a slow machine is given one more every 36 seconds.
    const regained = Math.floor((Date.now() - begun) / 36_000)
    const accepted = answers.filter(({ status }) => status === 201)
    expect(accepted.length).toBeGreaterThanOrEqual(100)
    expect(accepted.length).toBeLessThanOrEqual(100 + regained)
    const refused = answers.filter(({ status }) => status === 429)
    expect(accepted.length + refused.length).toBe(110)
    expect(refusal(refused[0]!)).toBe('429 temporarily_unavailable')
    expect(Number(refused[0]!.header('retry-after'))).toBeGreaterThan(0)
    expect((await registerClient(stack)).status).toBe(201)
  })
})
