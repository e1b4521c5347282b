/** OAuth 2.1 for a program on the user's machine: discovery, registration, code with PKCE on a loopback redirect. */
import { createHash, randomBytes } from 'node:crypto'
import { toFailure } from './api-client.ts'
import type { Credentials } from './credentials.ts'
import { CliError, exitCodes, notSignedIn } from './failure.ts'
import { readText, type HttpClient } from './http-client.ts'

const SCOPE = 'cli'
/** Any port of the loopback address may follow (RFC 8252 §7.3). */
const REGISTERED_REDIRECT = 'http://127.0.0.1/callback'

export interface ServerMetadata {
  readonly issuer: string
  readonly authorization_endpoint: string
  readonly token_endpoint: string
  readonly registration_endpoint: string
  readonly revocation_endpoint?: string
}

export interface Attempt {
  readonly clientId: string
  readonly redirectUri: string
  readonly verifier: string
  readonly state: string
  /** What the user opens. */
  readonly url: string
}

export type OAuth = ReturnType<typeof createOAuth>

export function createOAuth({ origin, http }: { origin: string; http: HttpClient }) {
  async function requestJson<Result>(url: string, body?: string, type?: string): Promise<Result> {
    const headers = { accept: 'application/json', ...(type === undefined ? {} : { 'content-type': type }) }
    const reply = await http.send(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers,
      ...(body === undefined ? {} : { body }),
    })
    const text = await readText(reply)
    if (reply.status < 200 || reply.status >= 300) throw oauthFailure(reply.status, text)
    return (text === '' ? undefined : JSON.parse(text)) as Result
  }

  const post = <Result>(url: string, fields: Record<string, string>): Promise<Result> =>
    requestJson<Result>(url, new URLSearchParams(fields).toString(), 'application/x-www-form-urlencoded')

  async function exchange(
    metadata: { token_endpoint: string; revocation_endpoint?: string | undefined },
    clientId: string,
    fields: Record<string, string>,
  ): Promise<Credentials> {
    const tokens = await post<{ access_token: string; refresh_token?: string; expires_in?: number }>(
      metadata.token_endpoint,
      {
        client_id: clientId,
        ...fields,
      },
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

  return {
    async discover(): Promise<ServerMetadata> {
      const metadata = await requestJson<ServerMetadata>(`${origin}/.well-known/oauth-authorization-server`)
      // RFC 8414 §3.3: an issuer that differs is somebody else's document.
      if (metadata.issuer !== origin)
        throw notSignedIn(`${origin} names "${metadata.issuer}" as its issuer. Set DROPWAY_URL to that address.`)
      return metadata
    },

    async register(metadata: ServerMetadata): Promise<string> {
      const client = await requestJson<{ client_id: string }>(
        metadata.registration_endpoint,
        JSON.stringify({
          client_name: 'Dropway command line',
          redirect_uris: [REGISTERED_REDIRECT],
          grant_types: ['authorization_code', 'refresh_token'],
          response_types: ['code'],
          token_endpoint_auth_method: 'none',
          scope: SCOPE,
        }),
        'application/json',
      )
      return client.client_id
    },

    begin(metadata: ServerMetadata, clientId: string, port: number): Attempt {
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
    },

    async complete(metadata: ServerMetadata, attempt: Attempt, answer: URLSearchParams): Promise<Credentials> {
      const code = acceptAnswer(metadata, attempt, answer)
      return exchange(metadata, attempt.clientId, {
        grant_type: 'authorization_code',
        code,
        redirect_uri: attempt.redirectUri,
        code_verifier: attempt.verifier,
      })
    },

    refresh(credentials: Credentials): Promise<Credentials> {
      return exchange(credentials, credentials.client_id, {
        grant_type: 'refresh_token',
        refresh_token: credentials.refresh_token!,
      })
    },

    async revoke(credentials: Credentials): Promise<void> {
      if (credentials.revocation_endpoint === undefined) return
      await post(credentials.revocation_endpoint, {
        client_id: credentials.client_id,
        token: credentials.refresh_token ?? credentials.access_token,
      })
    },
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
        'There is no Dropway service at this address. Check DROPWAY_URL.',
        exitCodes.unreachable,
        'not_a_service',
      )
  }
  return toFailure(status, text)
}
