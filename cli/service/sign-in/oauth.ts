/**
 * OAuth 2.1 for a program on the user's machine: discovery and registration, then a code with PKCE on a loopback
 * redirect where there is a browser (RFC 8252), or the device grant where there is none (RFC 8628).
 */
import { createHash, randomBytes } from 'node:crypto'
import { ApiFailure, toFailure } from '../api-failure.ts'
import type { Credentials } from './credentials.ts'
import { CliError, exitCodes, notSignedIn } from '../../terminal/failure.ts'
import type { HttpClient } from '../http-client.ts'

const SCOPE = 'cli'
/** Any port of the loopback address may follow (RFC 8252 §7.3). */
const REGISTERED_REDIRECT = 'http://127.0.0.1/callback'
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
/** RFC 8628 §3.2, when the service does not say. */
const DEFAULT_INTERVAL_SECONDS = 5
/** RFC 8628 §3.5. */
const SLOW_DOWN_SECONDS = 5

export interface ServerMetadata {
  readonly issuer: string
  readonly authorization_endpoint: string
  readonly token_endpoint: string
  readonly registration_endpoint: string
  readonly device_authorization_endpoint?: string
  readonly revocation_endpoint?: string
}

/** A sign-in in a browser on this machine. */
export interface Attempt {
  readonly clientId: string
  readonly redirectUri: string
  readonly verifier: string
  readonly state: string
  /** What the user opens. */
  readonly url: string
}

/** RFC 8628 §3.2. */
export interface DeviceAuthorization {
  readonly device_code: string
  readonly user_code: string
  readonly verification_uri: string
  readonly verification_uri_complete?: string
  readonly expires_in: number
  readonly interval?: number
}

export interface OAuth {
  discover(): Promise<ServerMetadata>
  /** The id of a new client. */
  register(metadata: ServerMetadata): Promise<string>
  begin(metadata: ServerMetadata, clientId: string, port: number): Attempt
  /** False when the service no longer knows the client: its page would be a dead end for the user. */
  isAcceptable(attempt: Attempt): Promise<boolean>
  complete(metadata: ServerMetadata, attempt: Attempt, answer: URLSearchParams): Promise<Credentials>
  beginDevice(metadata: ServerMetadata, clientId: string): Promise<DeviceAuthorization>
  /** Asks until the person has decided. */
  completeDevice(metadata: ServerMetadata, clientId: string, device: DeviceAuthorization): Promise<Credentials>
  refresh(credentials: Credentials, refreshToken: string): Promise<Credentials>
  revoke(credentials: Credentials): Promise<void>
}

interface OAuthDependencies {
  readonly origin: string
  readonly http: HttpClient
  readonly pause?: (ms: number) => Promise<void>
}

export function createOAuth({ origin, http, pause = sleep }: OAuthDependencies): OAuth {
  return {
    async discover() {
      const metadata = await requestJson<ServerMetadata>(http, `${origin}/.well-known/oauth-authorization-server`)
      // RFC 8414 §3.3: an issuer that differs is another one's document.
      if (metadata.issuer !== origin)
        throw notSignedIn(`${origin} names "${metadata.issuer}" as its issuer. Sign in at that address.`)
      return metadata
    },

    async register(metadata) {
      const body = JSON.stringify(registrationFor(metadata))
      const client = await requestJson<{ client_id: string }>(http, metadata.registration_endpoint, {
        body,
        type: 'application/json',
      })
      return client.client_id
    },

    begin: attemptAt,

    async isAcceptable(attempt) {
      const reply = await http.send(attempt.url, { method: 'GET', headers: { accept: 'text/html' } })
      await reply.text()
      // The person was not asked yet: an answer that already goes back to us is a refusal.
      return reply.status < 400 && !(reply.headers.location ?? '').startsWith(attempt.redirectUri)
    },

    async complete(metadata, attempt, answer) {
      const code = acceptAnswer(metadata, attempt, answer)
      return exchange(http, metadata, attempt.clientId, {
        grant_type: 'authorization_code',
        code,
        redirect_uri: attempt.redirectUri,
        code_verifier: attempt.verifier,
      })
    },

    beginDevice(metadata, clientId) {
      if (metadata.device_authorization_endpoint === undefined)
        throw notSignedIn(
          'This service cannot sign in a machine without a browser. Set DROPWAY_TOKEN to an API token from the dashboard settings.',
        )
      return post(http, metadata.device_authorization_endpoint, { client_id: clientId, scope: SCOPE })
    },

    completeDevice(metadata, clientId, device) {
      const fields = { grant_type: DEVICE_GRANT, device_code: device.device_code }
      return askUntilDecided(device, pause, () => exchange(http, metadata, clientId, fields))
    },

    refresh(credentials, refreshToken) {
      const fields = { grant_type: 'refresh_token', refresh_token: refreshToken }
      return exchange(http, credentials, credentials.client_id, fields)
    },

    async revoke(credentials) {
      if (credentials.revocation_endpoint === undefined) return
      const token = credentials.refresh_token ?? credentials.access_token
      await post(http, credentials.revocation_endpoint, { client_id: credentials.client_id, token })
    },
  }
}

async function requestJson<Result>(
  http: HttpClient,
  url: string,
  sent?: { readonly body: string; readonly type: string },
): Promise<Result> {
  const headers = { accept: 'application/json', ...(sent === undefined ? {} : { 'content-type': sent.type }) }
  const reply = await http.send(url, {
    method: sent === undefined ? 'GET' : 'POST',
    headers,
    ...(sent === undefined ? {} : { body: sent.body }),
  })
  const text = await reply.text()
  if (reply.status < 200 || reply.status >= 300) throw oauthFailure(reply.status, text)
  return (text === '' ? undefined : JSON.parse(text)) as Result
}

function post<Result>(http: HttpClient, url: string, fields: Record<string, string>): Promise<Result> {
  const body = new URLSearchParams(fields).toString()
  return requestJson<Result>(http, url, { body, type: 'application/x-www-form-urlencoded' })
}

/** Exchanges what a grant consists of for tokens. */
async function exchange(
  http: HttpClient,
  metadata: { readonly token_endpoint: string; readonly revocation_endpoint?: string | undefined },
  clientId: string,
  fields: Record<string, string>,
): Promise<Credentials> {
  const tokens = await post<{ access_token: string; refresh_token?: string; expires_in?: number }>(
    http,
    metadata.token_endpoint,
    { client_id: clientId, ...fields },
  )
  return {
    client_id: clientId,
    access_token: tokens.access_token,
    ...(tokens.refresh_token === undefined ? {} : { refresh_token: tokens.refresh_token }),
    expires_at: Date.now() + (tokens.expires_in ?? 3600) * 1000,
    token_endpoint: metadata.token_endpoint,
    ...(metadata.revocation_endpoint === undefined ? {} : { revocation_endpoint: metadata.revocation_endpoint }),
  }
}

/** What this client says about itself (RFC 7591 §2). */
function registrationFor(metadata: ServerMetadata): Record<string, unknown> {
  const hasDevice = metadata.device_authorization_endpoint !== undefined
  return {
    client_name: 'Command line (dropway)',
    redirect_uris: [REGISTERED_REDIRECT],
    grant_types: ['authorization_code', 'refresh_token', ...(hasDevice ? [DEVICE_GRANT] : [])],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    scope: SCOPE,
  }
}

/** A new attempt with a verifier and a state of its own (RFC 7636 §4). */
function attemptAt(metadata: ServerMetadata, clientId: string, port: number): Attempt {
  const verifier = randomBytes(32).toString('base64url')
  const state = randomBytes(16).toString('base64url')
  const redirectUri = `http://127.0.0.1:${port}/callback`
  const url = new URL(metadata.authorization_endpoint)
  const parameters = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    scope: SCOPE,
    state,
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return { clientId, redirectUri, verifier, state, url: url.href }
}

async function askUntilDecided(
  device: DeviceAuthorization,
  pause: (ms: number) => Promise<void>,
  ask: () => Promise<Credentials>,
): Promise<Credentials> {
  const until = Date.now() + device.expires_in * 1000
  let interval = device.interval ?? DEFAULT_INTERVAL_SECONDS
  for (;;) {
    await pause(interval * 1000)
    try {
      return await ask()
    } catch (error) {
      const verdict = judgePoll(error)
      if (verdict === 'slower') interval += SLOW_DOWN_SECONDS
      if (Date.now() > until)
        throw notSignedIn('The code was not entered in time. Run "dropway login" again for a new one.')
    }
  }
}

/** RFC 8628 §3.5: what to do after an answer without tokens. Throws when there is no point in asking again. */
function judgePoll(error: unknown): 'wait' | 'slower' {
  // The line broke or the service restarts: the code is still good.
  if (!(error instanceof ApiFailure)) {
    if (error instanceof CliError && error.code === 'unreachable') return 'slower'
    throw error
  }
  switch (error.code) {
    case 'authorization_pending':
      return 'wait'
    case 'slow_down':
      return 'slower'
    case 'access_denied':
      throw notSignedIn('Access was denied in the browser. Run "dropway login" again to allow it.')
    case 'expired_token':
      throw notSignedIn('The code has expired. Run "dropway login" again for a new one.')
    default:
      if (error.status >= 500 || error.status === 429) return 'slower'
      throw error
  }
}

/** The code from the redirect, once state and issuer prove that it answers this attempt. */
function acceptAnswer(metadata: ServerMetadata, attempt: Attempt, answer: URLSearchParams): string {
  if (answer.get('state') !== attempt.state)
    throw notSignedIn('The browser came back with another sign-in. Run "dropway login" again.')
  const issuer = answer.get('iss')
  if (issuer !== null && issuer !== metadata.issuer)
    throw notSignedIn('The answer came from another service. Run "dropway login" again.')
  const error = answer.get('error')
  if (error === 'access_denied')
    throw notSignedIn('Access was denied in the browser. Run "dropway login" again to allow it.')
  if (error !== null) throw notSignedIn(`Signing in failed: ${answer.get('error_description') ?? error}.`)
  const code = answer.get('code')
  if (code === null) throw notSignedIn('The browser came back without a code. Run "dropway login" again.')
  return code
}

/** OAuth words its errors as error/error_description. */
function oauthFailure(status: number, text: string): CliError {
  try {
    const body = JSON.parse(text) as { error?: string; error_description?: string }
    if (body.error_description !== undefined)
      return toFailure(status, JSON.stringify({ error: body.error, detail: body.error_description }))
  } catch {
    if (status === 404)
      return new CliError(
        'There is no Dropway service at this address. Check it and try again.',
        exitCodes.unreachable,
        'not_a_service',
      )
  }
  return toFailure(status, text)
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
