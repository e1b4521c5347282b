/** An OAuth client and the person who decides about it, by plain requests against the real stack. */
import { createHash, randomBytes } from 'node:crypto'
import { nextAddress } from './addresses.ts'
import type { Answer } from './client.ts'
import { FormBrowser, formFields } from './form-browser.ts'
import type { Account, Stack } from './stack.ts'

export const PASSWORD = 'correct horse battery staple'
export const REDIRECT = 'https://client.example/callback'
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const AUTHORIZE = '/oauth/authorize'

export interface Attempt {
  readonly clientId: string
  readonly verifier: string
  readonly query: Record<string, string>
}

export interface Person {
  readonly account: Account
  readonly browser: FormBrowser
}

/** Each test comes from addresses of its own, so that limits per address do not meet. */

export async function signedInPerson(stack: Stack, plan: 'free' | 'plus' = 'plus'): Promise<Person> {
  const account = await stack.createAccount(plan, { password: PASSWORD })
  const browser = new FormBrowser(stack, nextAddress())
  const answer = await browser.send('/signin', { email: account.email, password: PASSWORD })
  if (answer.status !== 303) throw new Error(`signing in failed: ${answer.status}`)
  return { account, browser }
}

export async function registerClient(stack: Stack, metadata: Record<string, unknown> = {}): Promise<Answer> {
  const json = { client_name: 'Test client', redirect_uris: [REDIRECT], ...metadata }
  return stack.fetch('/oauth/register', { json, from: nextAddress() })
}

/** A registered client and the parameters of a right authorization request; each can be replaced or left out. */
export async function newAttempt(stack: Stack, changes: Record<string, string | undefined> = {}): Promise<Attempt> {
  const { client_id: clientId } = (await registerClient(stack)).json()
  return attemptOf(stack, clientId, changes)
}

export function attemptOf(stack: Stack, clientId: string, changes: Record<string, string | undefined> = {}): Attempt {
  const verifier = randomBytes(32).toString('base64url')
  const query: Record<string, string | undefined> = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: REDIRECT,
    state: 'the state & more',
    scope: 'mcp',
    resource: `${stack.baseUrl}/mcp`,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...changes,
  }
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return { clientId, verifier, query: Object.fromEntries(given) }
}

export const consentAddress = ({ query }: Attempt): string => `${AUTHORIZE}?${new URLSearchParams(query)}`

/** Where the person's browser is sent after the decision. */
export async function decide(
  { browser }: Person,
  attempt: Attempt,
  decision: 'allow' | 'deny' = 'allow',
): Promise<URL> {
  const page = await browser.open(consentAddress(attempt))
  if (page.status !== 200) throw new Error(`no consent page: ${page.status} ${page.header('location')}`)
  const fields = formFields(page.text(), AUTHORIZE)
  const answer = await browser.post(AUTHORIZE, new URLSearchParams({ ...fields, decision }))
  return new URL(answer.header('location') ?? '')
}

export async function obtainCode(person: Person, attempt: Attempt): Promise<string> {
  return (await decide(person, attempt)).searchParams.get('code')!
}

export function tokenRequest(stack: Stack, fields: Record<string, string>, endpoint = '/oauth/token'): Promise<Answer> {
  return stack.fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(fields).toString(),
  })
}

export function exchange(
  stack: Stack,
  attempt: Attempt,
  code: string,
  changes: Record<string, string> = {},
): Promise<Answer> {
  return tokenRequest(stack, {
    grant_type: 'authorization_code',
    client_id: attempt.clientId,
    code,
    redirect_uri: attempt.query['redirect_uri']!,
    code_verifier: attempt.verifier,
    ...changes,
  })
}

export interface Tokens {
  readonly access_token: string
  readonly refresh_token: string
}

export async function obtainTokens(stack: Stack, person: Person, attempt: Attempt): Promise<Tokens> {
  return (await exchange(stack, attempt, await obtainCode(person, attempt))).json<Tokens>()
}

export function refresh(stack: Stack, { clientId }: Attempt, refreshToken: string): Promise<Answer> {
  return tokenRequest(stack, { grant_type: 'refresh_token', client_id: clientId, refresh_token: refreshToken })
}

/** The smallest call that needs a token for MCP. */
export function callMcp(stack: Stack, token: string): Promise<Answer> {
  const json = { jsonrpc: '2.0', id: 1, method: 'ping' }
  return stack.fetch('/mcp', { token, json, headers: { accept: 'application/json, text/event-stream' } })
}

/** `fetch` for libraries: the real stack, with its own certificate authority. */
export function webFetch(stack: Stack): typeof globalThis.fetch {
  return async (input, init) => {
    const request = new Request(input as URL, init as RequestInit)
    const body = Buffer.from(await request.arrayBuffer())
    const answer = await stack.fetch(request.url, {
      method: request.method,
      headers: Object.fromEntries(request.headers),
      ...(body.length > 0 ? { body } : {}),
    })
    const headers = new Headers()
    for (const [name, value] of Object.entries(answer.headers)) headers.set(name, String(value))
    const isEmpty = [101, 204, 205, 304].includes(answer.status)
    return new Response(isEmpty ? null : new Uint8Array(answer.body), { status: answer.status, headers })
  }
}
