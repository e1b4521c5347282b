/**
 * A provider of OpenID Connect, written from the specification and independent of any library for it: codes, PKCE, ID
 * tokens, refresh tokens, userinfo, logout tokens. It can lie on cue in every one of its answers.
 */
import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { keepIdleConnections } from './idle-connections.ts'

export interface StandInPerson {
  readonly sub: string
  readonly email?: string | undefined
  readonly email_verified?: unknown
  readonly groups?: unknown
}

interface Key {
  readonly kid: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

/** What it does instead of the truth, for the next sign-in. */
export interface Lies {
  /** Changes the claims of the ID token; a claim that becomes undefined is left out. */
  claims?: (claims: Record<string, unknown>) => Record<string, unknown>
  header?: Record<string, unknown>
  /** Signs with this key instead. */
  key?: Key
  /** Changes the whole token. */
  idToken?: (token: string) => string
  /** Changes the answer of the token endpoint. */
  tokens?: (answer: Record<string, unknown>) => Record<string, unknown>
  tokenStatus?: number
  /** Sent as it is instead of JSON. */
  tokenBody?: string
  userInfo?: (claims: Record<string, unknown>) => Record<string, unknown>
  /** Changes what the browser comes back with. */
  callback?: (query: URLSearchParams) => void
}

const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

export function newKey(): Key {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { kid: randomBytes(6).toString('hex'), privateKey, publicKey }
}

export function signToken(claims: unknown, { kid, privateKey }: Key, header: Record<string, unknown> = {}): string {
  const text = `${base64url({ alg: 'RS256', typ: 'JWT', kid, ...header })}.${base64url(claims)}`
  return `${text}.${sign('RSA-SHA256', Buffer.from(text), privateKey).toString('base64url')}`
}

export type OpenIdStandIn = Awaited<ReturnType<typeof startOpenIdStandIn>>

export async function startOpenIdStandIn({ clientId = 'dropway', clientSecret = 'stand-in secret' } = {}) {
  let key = newKey()
  let person: StandInPerson | undefined
  let lies: Lies = {}
  let isDown = false
  let givesRefreshTokens = true
  let offersOffline = true
  let tellsOfLogouts = false
  let stumblesAt: string | undefined
  let refreshes = 0
  let thinking: { readonly asked: () => void; readonly over: Promise<void> } | undefined
  const codes = new Map<
    string,
    { challenge: string; nonce: string; redirectUri: string; person: StandInPerson; isAskedWhen: boolean }
  >()
  const refreshTokens = new Map<string, StandInPerson>()
  const accessTokens = new Map<string, StandInPerson>()
  const asked: URL[] = []
  const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()))
  keepIdleConnections(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const now = (): number => Math.floor(Date.now() / 1000)
  const claimsOf = (of: StandInPerson, extra: Record<string, unknown> = {}): Record<string, unknown> => ({
    iss: issuer,
    aud: clientId,
    iat: now(),
    exp: now() + 300,
    sid: `session of ${of.sub}`,
    ...of,
    ...extra,
  })
  const send = (response: ServerResponse, status: number, body: unknown): void => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }

  function tokensFor(of: StandInPerson, nonce: string | undefined, isAskedWhen = false): Record<string, unknown> {
    const access = randomBytes(16).toString('hex')
    const refresh = randomBytes(16).toString('hex')
    accessTokens.set(access, of)
    if (givesRefreshTokens) refreshTokens.set(refresh, of)
    // OpenID Connect Core §3.1.2.1: who asks with max_age is told when the person signed in.
    const when = isAskedWhen ? { auth_time: now() } : {}
    const claims = claimsOf(of, nonce === undefined ? {} : { nonce, ...when })
    const made = signToken(lies.claims ? lies.claims(claims) : claims, lies.key ?? key, lies.header)
    const tokens = {
      access_token: access,
      token_type: 'Bearer',
      expires_in: 3600,
      id_token: lies.idToken ? lies.idToken(made) : made,
      ...(givesRefreshTokens ? { refresh_token: refresh } : {}),
    }
    return lies.tokens ? lies.tokens(tokens) : tokens
  }

  function grant(form: URLSearchParams): [status: number, body: unknown] {
    if (form.get('grant_type') === 'refresh_token') {
      const token = form.get('refresh_token') ?? ''
      const of = refreshTokens.get(token)
      if (of && of.sub === stumblesAt) return [500, { error: 'server_error' }]
      refreshTokens.delete(token)
      return of ? [200, tokensFor(of, undefined)] : [400, { error: 'invalid_grant' }]
    }
    const code = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    if (!code || code.challenge !== challenge || code.redirectUri !== form.get('redirect_uri'))
      return [400, { error: 'invalid_grant' }]
    return [200, tokensFor(code.person, code.nonce, code.isAskedWhen)]
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (isDown) return void response.destroy()
    const url = new URL(request.url ?? '/', issuer)
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        return send(response, 200, {
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/keys`,
          userinfo_endpoint: `${issuer}/userinfo`,
          response_types_supported: ['code'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['RS256'],
          scopes_supported: ['openid', 'email', 'groups', ...(offersOffline ? ['offline_access'] : [])],
          code_challenge_methods_supported: ['S256'],
          ...(tellsOfLogouts ? { backchannel_logout_supported: true } : {}),
        })
      case '/keys':
        return send(response, 200, {
          keys: [{ ...key.publicKey.export({ format: 'jwk' }), kid: key.kid, alg: 'RS256', use: 'sig' }],
        })
      case '/authorize': {
        asked.push(url)
        const query = new URLSearchParams({ state: url.searchParams.get('state') ?? '' })
        if (person) {
          const code = randomBytes(16).toString('hex')
          codes.set(code, {
            challenge: url.searchParams.get('code_challenge') ?? '',
            nonce: url.searchParams.get('nonce') ?? '',
            redirectUri: url.searchParams.get('redirect_uri') ?? '',
            person,
            isAskedWhen: url.searchParams.has('max_age'),
          })
          query.set('code', code)
        } else query.set('error', url.searchParams.get('prompt') === 'none' ? 'login_required' : 'access_denied')
        lies.callback?.(query)
        response.writeHead(302, { location: `${url.searchParams.get('redirect_uri')}?${query}` })
        return void response.end()
      }
      case '/token': {
        const chunks: Buffer[] = []
        for await (const chunk of request) chunks.push(chunk as Buffer)
        const given = Buffer.from((request.headers.authorization ?? '').slice('Basic '.length), 'base64').toString()
        const decoded = given.split(':').map((part) => decodeURIComponent(part.replaceAll('+', ' ')))
        if (decoded.join(':') !== `${clientId}:${clientSecret}`) return send(response, 401, { error: 'invalid_client' })
        const form = new URLSearchParams(Buffer.concat(chunks).toString())
        if (form.get('grant_type') === 'refresh_token') {
          refreshes++
          thinking?.asked()
          await thinking?.over
        }
        const [status, body] = grant(form)
        return send(response, lies.tokenStatus ?? status, lies.tokenBody ?? body)
      }
      case '/userinfo': {
        const of = accessTokens.get((request.headers.authorization ?? '').slice('Bearer '.length))
        if (!of) {
          response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' })
          return void response.end()
        }
        return send(response, 200, lies.userInfo ? lies.userInfo({ ...of }) : of)
      }
      default:
        return send(response, 404, {})
    }
  }

  return {
    issuer,
    clientId,
    clientSecret,
    /** What browsers came with, in order. */
    asked,
    /** Who is signed in there. */
    signIn: (who: StandInPerson | undefined) => void (person = who),
    lie: (about: Lies) => void (lies = about),
    /** Nothing of theirs works any more. */
    remove(sub: string): void {
      for (const map of [refreshTokens, accessTokens])
        for (const [token, of] of map) if (of.sub === sub) map.delete(token)
    },
    /** They log out: what is bound to their session ends with it (OpenID Connect Back-Channel Logout 1.0 §2.7). */
    endSession(sub: string): void {
      for (const map of offersOffline ? [accessTokens] : [accessTokens, refreshTokens])
        for (const [token, of] of map) if (of.sub === sub) map.delete(token)
    },
    /** Refresh tokens live as long as the session in which they were given. */
    withoutOfflineAccess: () => void (offersOffline = false),
    /** How often a refresh token was presented. */
    get refreshes(): number {
      return refreshes
    },
    /** Refresh tokens that are presented from now on are judged when `decide` is called; `asked` resolves at the first. */
    think(): { readonly asked: Promise<void>; decide(): void } {
      const asked = Promise.withResolvers<void>()
      const over = Promise.withResolvers<void>()
      thinking = { asked: asked.resolve, over: over.promise }
      return { asked: asked.promise, decide: over.resolve }
    },
    /** It fails at every question about this person, and at no other. */
    stumbleAt: (sub: string | undefined) => void (stumblesAt = sub),
    /** Their groups change, for what asks from now on. */
    change(changed: StandInPerson): void {
      for (const map of [refreshTokens, accessTokens])
        for (const [token, of] of map) if (of.sub === changed.sub) map.set(token, changed)
    },
    rotateKey: () => void (key = newKey()),
    goDown: (down: boolean) => void (isDown = down),
    withoutRefreshTokens: () => void (givesRefreshTokens = false),
    logoutToken: (claims: Record<string, unknown>, header: Record<string, unknown> = {}, by: Key = key): string =>
      signToken(
        {
          iss: issuer,
          aud: clientId,
          iat: now(),
          exp: now() + 120,
          jti: randomBytes(8).toString('hex'),
          events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
          ...claims,
        },
        by,
        { typ: 'logout+jwt', ...header },
      ),
    announceLogouts: () => void (tellsOfLogouts = true),
    async stop() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
