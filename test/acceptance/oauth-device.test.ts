/** Signing in a machine without a browser (RFC 8628), as a strict library does it and as a person sees it. */
import { randomBytes } from 'node:crypto'
import * as oauth from 'oauth4webapi'
import { beforeAll, describe, expect, test } from 'vitest'
import { nextAddress } from '../support/addresses.ts'
import { refusal, type Answer } from '../support/client.ts'
import { FormBrowser, formFields } from '../support/form-browser.ts'
import {
  DEVICE_GRANT,
  PASSWORD,
  registerClient,
  signedInPerson,
  tokenRequest,
  webFetch,
  type Person,
} from '../support/oauth-client.ts'
import { enrolGenerator } from '../support/second-factor.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack
let person: Person

beforeAll(async () => {
  stack = await sharedStack()
  person = await signedInPerson(stack)
})

interface Started {
  readonly clientId: string
  readonly device_code: string
  readonly user_code: string
  readonly verification_uri: string
  readonly verification_uri_complete: string
  readonly expires_in: number
  readonly interval: number
}

async function newClient(): Promise<string> {
  const metadata = { client_name: 'Terminal', redirect_uris: undefined, grant_types: [DEVICE_GRANT, 'refresh_token'] }
  return (await registerClient(stack, metadata)).json().client_id
}

function ask(fields: Record<string, string>, from = nextAddress()): Promise<Answer> {
  return stack.fetch('/oauth/device_authorization', {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(fields).toString(),
    from,
  })
}

async function start(fields: Record<string, string> = { scope: 'cli' }): Promise<Started> {
  const clientId = await newClient()
  return { clientId, ...(await ask({ client_id: clientId, ...fields })).json<Omit<Started, 'clientId'>>() }
}

function poll({ clientId, device_code }: Started, changes: Record<string, string> = {}): Promise<Answer> {
  return tokenRequest(stack, { grant_type: DEVICE_GRANT, client_id: clientId, device_code, ...changes })
}

/** Types the code, and answers the question that follows. */
async function decide({ browser }: Person, userCode: string, decision: 'allow' | 'deny'): Promise<Answer> {
  const page = await browser.send('/device', { user_code: userCode })
  if (page.status !== 200) return page
  return browser.post('/device', new URLSearchParams({ ...formFields(page.text(), '/device'), decision }))
}

describe('a strict client library', () => {
  test('goes the whole way: discovery, registration, code, decision, tokens, refresh', async () => {
    const options = { [oauth.customFetch]: webFetch(stack) }
    const issuer = new URL(stack.baseUrl)
    const discovery = await oauth.discoveryRequest(issuer, { ...options, algorithm: 'oauth2' })
    const server = await oauth.processDiscoveryResponse(issuer, discovery)
    expect(server.device_authorization_endpoint).toBe(`${stack.baseUrl}/oauth/device_authorization`)
    expect(server.grant_types_supported).toContain(DEVICE_GRANT)
    const client = { client_id: await newClient() }
    const started = await oauth.processDeviceAuthorizationResponse(
      server,
      client,
      await oauth.deviceAuthorizationRequest(server, client, oauth.None(), { scope: 'cli' }, options),
    )
    expect(started.user_code).toMatch(/^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/)
    expect((await decide(person, started.user_code, 'allow')).text()).toContain('Your device is signed in')
    const tokens = await oauth.processDeviceCodeResponse(
      server,
      client,
      await oauth.deviceCodeGrantRequest(server, client, oauth.None(), started.device_code, options),
    )
    expect(tokens).toMatchObject({ token_type: 'bearer', scope: 'cli' })
    const me = await stack.fetch('/api/v1/me', { token: tokens.access_token })
    expect(JSON.stringify(me.json())).toContain(person.account.email)
    const refreshed = await oauth.processRefreshTokenResponse(
      server,
      client,
      await oauth.refreshTokenGrantRequest(server, client, oauth.None(), tokens.refresh_token!, options),
    )
    expect((await stack.fetch('/api/v1/me', { token: refreshed.access_token })).status).toBe(200)
    expect((await person.browser.open('/account/apps')).text()).toContain('Terminal')
  })
})

describe('the program', () => {
  test('hears pending, then to slow down, then the answer at once', async () => {
    const started = await start({ scope: 'mcp', resource: `${stack.baseUrl}/mcp` })
    expect(started).toMatchObject({ expires_in: 600, interval: 5, verification_uri: `${stack.baseUrl}/device` })
    const begun = performance.now()
    expect(refusal(await poll(started))).toBe('400 authorization_pending')
    const again = refusal(await poll(started))
    // One who is slower than the interval has nothing to slow down.
    if (performance.now() - begun < 4000) expect(again).toBe('400 slow_down')
    await decide(person, started.user_code, 'allow')
    const { access_token } = (await poll(started)).json()
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    expect((await stack.fetch('/mcp', { token: access_token, json: ping })).status).toBe(200)
    // A lost answer: the same again within the grace, with the same refresh token.
    expect((await poll(started)).status).toBe(200)
  })

  test('hears that the person said no, for good', async () => {
    const started = await start()
    expect((await decide(person, started.user_code, 'deny')).text()).toContain('Denied')
    expect(refusal(await poll(started))).toBe('400 access_denied')
    expect((await decide(person, started.user_code, 'allow')).status).toBe(400)
    expect(refusal(await poll(started))).toBe('400 access_denied')
  })

  test.each<[string, (started: Started) => Record<string, string>, string]>([
    ['a made-up code', () => ({ device_code: 'x'.repeat(32) }), '400 invalid_grant'],
    ['the short code', ({ user_code }) => ({ device_code: user_code }), '400 invalid_grant'],
    ['no code', () => ({ device_code: '' }), '400 invalid_request'],
    ['an unknown client', () => ({ client_id: 'cli_unknown' }), '401 invalid_client'],
    ['another resource', () => ({ resource: `${stack.baseUrl}/mcp` }), '400 invalid_target'],
    ['another grant type', () => ({ grant_type: 'device_code' }), '400 unsupported_grant_type'],
  ])('%s gets no token, whatever the person said', async (_, changes, expected) => {
    const started = await start()
    await decide(person, started.user_code, 'allow')
    expect(refusal(await poll(started, changes(started)))).toBe(expected)
  })

  test('the code of another client is refused, and stays good for its own', async () => {
    const started = await start()
    await decide(person, started.user_code, 'allow')
    expect(refusal(await poll({ ...started, clientId: await newClient() }))).toBe('400 invalid_grant')
    expect((await poll(started)).status).toBe(200)
  })

  test.each<[string, Record<string, string>, string]>([
    ['no client', { scope: 'cli' }, '400 invalid_request'],
    ['an unknown client, which then registers anew', { client_id: 'cli_unknown' }, '401 invalid_client'],
    ['a resource elsewhere', { resource: 'https://evil.example/mcp' }, '400 invalid_target'],
  ])('is told at once: %s', async (_, fields, expected) => {
    const client: Record<string, string> = 'resource' in fields ? { client_id: await newClient() } : {}
    expect(refusal(await ask({ ...client, ...fields }))).toBe(expected)
  })

  test('a flood from one address is stopped, and others go on', async () => {
    const from = nextAddress()
    const clientId = await newClient()
    const statuses: number[] = []
    const begun = Date.now()
    for (let batch = 0; batch < 11; batch++) {
      const answers = await Promise.all(Array.from({ length: 10 }, () => ask({ client_id: clientId }, from)))
      statuses.push(...answers.map((answer) => answer.status))
    }
    // A hundred an hour: a slow machine is given one more every 36 seconds.
    const regained = Math.floor((Date.now() - begun) / 36_000)
    const accepted = statuses.filter((status) => status === 200)
    expect(accepted.length).toBeGreaterThanOrEqual(100)
    expect(accepted.length).toBeLessThanOrEqual(100 + regained)
    expect(statuses.filter((status) => status === 429)).toHaveLength(110 - accepted.length)
    expect((await ask({ client_id: clientId })).status).toBe(200)
  })
})

describe('the person', () => {
  test('signs in first and comes back with the code; the page shows who asks, from where, and the code', async () => {
    const started = await start()
    const browser = new FormBrowser(stack, nextAddress())
    const here = started.verification_uri_complete.slice(stack.baseUrl.length)
    const sent = await browser.open(here)
    expect(sent.status).toBe(303)
    const fields = { email: person.account.email, password: PASSWORD }
    const back = await browser.send(sent.header('location')!, fields, '/signin')
    expect(back.header('location')).toBe(here)
    const form = (await browser.open(here)).text()
    expect(form).toContain(`value="${started.user_code}"`)
    const page = await browser.send(here, { user_code: started.user_code }, '/device')
    for (const shown of ['“Terminal”', started.user_code, '198.18.', person.account.email, '<code>cli</code>'])
      expect(page.text()).toContain(shown)
    expect(page.header('x-frame-options')).toBe('DENY')
    // Seen, not decided: a link that someone sent lets no one in.
    expect(refusal(await poll(started))).toBe('400 authorization_pending')
  })

  test.each([
    ['lower case without the hyphen', (code: string) => code.toLowerCase().replace('-', ''), 200],
    ['with spaces', (code: string) => ` ${code.replace('-', ' ')} `, 200],
    ['a letter wrong', (code: string) => `${code.slice(0, -1)}${code.endsWith('B') ? 'C' : 'B'}`, 400],
    ['half of it', (code: string) => code.slice(0, 4), 400],
    ['nothing', () => '', 400],
  ])('types it %s', async (_, type, status) => {
    const { user_code } = await start()
    expect((await person.browser.send('/device', { user_code: type(user_code) })).status).toBe(status)
  })

  test('cannot guess: after sixty codes even the right one has to wait', async () => {
    const guesser = await signedInPerson(stack)
    const { user_code } = await start()
    const csrf = formFields((await guesser.browser.open('/device')).text(), '/device')
    const guess = (code: string) => guesser.browser.post('/device', new URLSearchParams({ ...csrf, user_code: code }))
    const begun = performance.now()
    for (let attempt = 0; attempt < 60; attempt++) expect((await guess('BBBB-BBBB')).status).toBe(400)
    const { status } = await guess(user_code)
    // Sixty in ten minutes: a slow machine is given one more every ten seconds.
    if (performance.now() - begun < 10_000) expect(status).toBe(429)
  })

  test.each<[string, Record<string, string>, Record<string, string>]>([
    ['without the token of the form', { csrf: '' }, {}],
    ['from another origin', {}, { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }],
  ])('a forged decision %s is refused', async (_, changes, headers) => {
    const started = await start()
    const page = await person.browser.send('/device', { user_code: started.user_code })
    const body = new URLSearchParams({ ...formFields(page.text(), '/device'), ...changes, decision: 'allow' })
    expect((await person.browser.post('/device', body, headers)).status).toBe(403)
    expect(refusal(await poll(started))).toBe('400 authorization_pending')
  })

  test('when another organisation was chosen since, the question is asked again', async () => {
    const started = await start()
    const page = await person.browser.send('/device', { user_code: started.user_code })
    const fields = { ...formFields(page.text(), '/device'), organisation: 'org_other', decision: 'allow' }
    const again = await person.browser.post('/device', new URLSearchParams(fields))
    expect(again.text()).toContain('name="decision"')
    expect(refusal(await poll(started))).toBe('400 authorization_pending')
  })

  test('who has not verified the address is told to, on a page that leads on by itself, and lets no one in', async () => {
    const started = await start()
    const browser = new FormBrowser(stack, nextAddress())
    const email = `new-${randomBytes(5).toString('hex')}@example.test`
    await browser.send('/signup', { email, password: PASSWORD })
    const page = await browser.open('/device')
    expect(page.status).toBe(403)
    expect(page.header('refresh')).toBeDefined()
    const csrf = formFields(page.text(), '/verify/send')
    const body = new URLSearchParams({ ...csrf, user_code: started.user_code, decision: 'allow' })
    expect((await browser.post('/device', body)).status).toBe(403)
    expect(refusal(await poll(started))).toBe('400 authorization_pending')
  })
})

test('a person with a second factor shows it before a device gets everything, and types no code twice', async () => {
  const careful = await signedInPerson(stack)
  const [recoveryCode] = await enrolGenerator(careful.browser)
  const started = await start()
  const refused = await decide(careful, started.user_code, 'allow')
  const proof = refused.header('location')!
  expect(proof).toMatch(/^\/account\/prove\?next=/)
  expect(refusal(await poll(started))).toBe('400 authorization_pending')
  const proved = await careful.browser.send(proof, { code: recoveryCode! }, '/account/prove')
  const back = proved.header('location')!
  expect(back).toBe(`/device?user_code=${started.user_code}`)
  expect((await careful.browser.open(back)).text()).toContain(`value="${started.user_code}"`)
  expect((await decide(careful, started.user_code, 'allow')).text()).toContain('Your device is signed in')
})
