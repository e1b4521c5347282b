/** Authorization requests: what is wrong with one is told to the client where that is safe, and shown here otherwise. */
import { beforeAll, describe, expect, test } from 'vitest'
import { nextAddress } from '../support/addresses.ts'
import { refusal, type Answer } from '../support/client.ts'
import { FormBrowser } from '../support/form-browser.ts'
import {
  attemptOf,
  consentAddress,
  newAttempt,
  obtainTokens,
  REDIRECT,
  registerClient,
  signedInPerson,
  tokenRequest,
  type Attempt,
  type Person,
} from '../support/oauth-client.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack
let person: Person
let stranger: Person

beforeAll(async () => {
  stack = await sharedStack()
  ;[person, stranger] = await Promise.all([signedInPerson(stack), signedInPerson(stack)])
})

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
    for (const browser of [stranger.browser, new FormBrowser(stack, nextAddress())]) {
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
    const answer = await new FormBrowser(stack, nextAddress()).open(wrong)
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

describe('a client that we do not know', () => {
  test.each([
    ['a made-up id', () => 'cli_unknown'],
    ['the id of an earlier release that was deleted', () => 'cli_01jc3m8q4r5s6t7v8w9x0y'],
    ['an id whose redirect was changed', (id: string) => forgedId(id)],
    ['an id with another signature', (id: string) => `${id.slice(0, -4)}AAAA`],
  ])('%s: the person reads it here, and a button tells the program on this machine', async (_, forge) => {
    const clientId = forge((await registerClient(stack)).json().client_id)
    const redirect_uri = 'http://localhost:3334/oauth/callback'
    const answer = await person.browser.open(consentAddress(attemptOf(stack, clientId, { redirect_uri })))
    // RFC 6749 §4.1.2.1: the browser never goes there by itself.
    expect([answer.status, answer.header('location'), answer.header('refresh')]).toEqual([400, undefined, undefined])
    expect(answer.text()).toContain('We do not know this program')
    const button = /<a class="button primary" href="([^"]+)"/.exec(answer.text())?.[1] ?? ''
    const location = new URL(button.replaceAll('&amp;', '&'))
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
