/** What clients get for a code or a refresh token, where it works, and how it ends. */
import { beforeAll, describe, expect, test } from 'vitest'
import { refusal } from '../support/client.ts'
import { formFields } from '../support/form-browser.ts'
import { connectWithToken } from '../support/mcp-client.ts'
import {
  attemptOf,
  callMcp,
  consentAddress,
  exchange,
  newAttempt,
  obtainCode,
  obtainTokens,
  refresh,
  registerClient,
  signedInPerson,
  tokenRequest,
  type Attempt,
  type Person,
  type Tokens,
} from '../support/oauth-client.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack
let person: Person
let stranger: Person

beforeAll(async () => {
  stack = await sharedStack()
  ;[person, stranger] = await Promise.all([signedInPerson(stack), signedInPerson(stack)])
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
    expect((await callMcp(stack, access_token)).status).toBe(401)
  })

  test('two refreshes at once, or one again after a lost answer, keep the client signed in', async () => {
    const attempt = await newAttempt(stack)
    const first = await obtainTokens(stack, person, attempt)
    const answers = await Promise.all([1, 2, 3].map(() => refresh(stack, attempt, first.refresh_token)))
    const lost = await refresh(stack, attempt, first.refresh_token)
    for (const answer of [...answers, lost]) {
      expect(answer.status).toBe(200)
      expect(answer.json().refresh_token).toBe(lost.json().refresh_token)
      expect((await callMcp(stack, answer.json().access_token)).status).toBe(200)
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
    expect((await callMcp(stack, third.access_token)).status).toBe(200)
    expect(refusal(await refresh(stack, attempt, first.refresh_token))).toBe('400 invalid_grant')
    expect((await callMcp(stack, third.access_token)).status).toBe(401)
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

test.each(['mcp read', 'read'])(
  'scope "%s": the page names it in words, the answer says what was granted, and the tools are those that read',
  async (scope) => {
    const attempt = await newAttempt(stack, { scope })
    expect((await person.browser.open(consentAddress(attempt))).text()).toContain('change nothing <code>read</code>')
    const tokens = (await exchange(stack, attempt, await obtainCode(person, attempt))).json<
      Tokens & { scope: string }
    >()
    expect(tokens.scope.split(' ')).toContain('read')
    const client = await connectWithToken(stack, tokens.access_token, 'modern')
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect(names.toSorted()).toEqual(['service_list', 'service_read', 'service_search', 'service_threads'])
    const refused = await client.callTool({ name: 'service_publish', arguments: { content: '<p>x</p>' } })
    expect(JSON.stringify(refused)).toContain('insufficient_scope')
    await client.close()
  },
)

describe('audience and revocation', () => {
  test('a token works at its resource alone', async () => {
    const mcp = await obtainTokens(stack, person, await newAttempt(stack))
    const forApi = await newAttempt(stack, { scope: 'cli', resource: undefined })
    const cli = await obtainTokens(stack, person, forApi)
    const api = (token: string) => stack.fetch('/api/v1/me', { token })
    const [mcpAtMcp, mcpAtApi] = [await callMcp(stack, mcp.access_token), await api(mcp.access_token)]
    const [cliAtMcp, cliAtApi] = [await callMcp(stack, cli.access_token), await api(cli.access_token)]
    expect([mcpAtMcp, mcpAtApi, cliAtMcp, cliAtApi].map((answer) => answer.status)).toEqual([200, 401, 401, 200])
    for (const refused of [mcpAtApi, cliAtMcp])
      expect(refused.header('www-authenticate')).toContain('error="invalid_token"')
    for (const wrong of [mcp.refresh_token, 'dwo_unknown', 'unknown'])
      expect((await callMcp(stack, wrong)).status).toBe(401)
  })

  test('only the client that a token was issued to revokes it; an unknown token is no error', async () => {
    const attempt = await newAttempt(stack)
    const { access_token } = await obtainTokens(stack, person, attempt)
    const revoke = (fields: Record<string, string>) => tokenRequest(stack, fields, '/oauth/revoke')
    const other = (await newAttempt(stack)).clientId
    expect(refusal(await revoke({ token: access_token, client_id: other }))).toBe('400 invalid_grant')
    expect(refusal(await revoke({ client_id: attempt.clientId }))).toBe('400 invalid_request')
    expect((await callMcp(stack, access_token)).status).toBe(200)
    expect((await revoke({ token: 'unknown', client_id: attempt.clientId })).status).toBe(200)
    expect((await revoke({ token: access_token, client_id: attempt.clientId })).status).toBe(200)
    expect((await callMcp(stack, access_token)).status).toBe(401)
  })

  test('a connected app is listed in the dashboard, and is out with the next request after "Revoke"', async () => {
    const registered = await registerClient(stack, { client_name: 'Revocable editor' })
    const attempt = attemptOf(stack, registered.json().client_id)
    const tokens = await obtainTokens(stack, person, attempt)
    expect((await callMcp(stack, tokens.access_token)).status).toBe(200)
    const page = (await person.browser.open('/account/apps')).text()
    const entry = page.split('<li class="card">').find((part) => part.includes('Revocable editor'))!
    const question = /\/account\/apps\/revoke\?id=\w+/.exec(entry)![0]
    const fields = formFields((await person.browser.open(question)).text(), '/account/apps/revoke')
    // Someone else knows the id: that is not enough.
    const theirs = (await stranger.browser.open('/account')).text()
    const csrf = formFields(theirs, /<form[^>]*action="([^"]+)"/.exec(theirs)![1]!)['csrf']!
    const stolen = await stranger.browser.post('/account/apps/revoke', new URLSearchParams({ ...fields, csrf }))
    expect(stolen.header('location') ?? '').not.toContain('done=revoked')
    expect((await callMcp(stack, tokens.access_token)).status).toBe(200)

    await person.browser.post('/account/apps/revoke', new URLSearchParams(fields))
    expect((await callMcp(stack, tokens.access_token)).status).toBe(401)
    expect(refusal(await refresh(stack, attempt, tokens.refresh_token))).toBe('400 invalid_grant')
    expect((await person.browser.open('/account/apps')).text()).not.toContain('Revocable editor')
  })
})
