/**
 * The line to the provider: OpenID Connect by `openid-client`, with discovery, PKCE, state and nonce, and signatures that
 * are always checked. The library is loaded when a provider is configured and first needed.
 */
import type * as OpenIdClient from 'openid-client'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { errors } from '../../../shared/contracts/errors.ts'
import { MINUTE_MS, type Clock } from '../../../shared/running/clock.ts'
import { patiently } from '../../../shared/settings/patience.ts'
import type { ProviderSettings } from '../../ground/terms/provider.ts'
import {
  givesOffline,
  groupsOf,
  howToCheck,
  logoutOf,
  personOf,
  type ProvedPerson,
  type ProviderGrant,
} from './rules.ts'

/** People wait for it. */
const TIMEOUT_SECONDS = patiently(5)
/** What a provider says about itself is believed so long. Its keys are asked for with each sign-in: they may rotate. */
const DISCOVERED_MS = 10 * MINUTE_MS
/** Who shows again who they are has done so within this time: a provider that ignores the wish is found out. */
const ANEW_SECONDS = 120
/** A logout token is used at once. */
const LOGOUT_TOKEN_AGE = '5m'
const SIGNATURES = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

export interface Asked {
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

export type Checked =
  | { readonly kind: 'valid'; readonly grant: ProviderGrant; readonly groups: readonly string[] | undefined }
  /** The provider says no: the person is no longer welcome. */
  | { readonly kind: 'removed' }
  /** Nothing is left to ask with, and nobody has said no. */
  | { readonly kind: 'run_out' }
  /** The provider is away, or its answer says nothing about the person. */
  | { readonly kind: 'unknown'; readonly cause: unknown }

export interface ProviderClient {
  /**
   * Where the browser goes. `silently`: no page of the provider appears; who is not signed in there comes back at once.
   * `anew`: the person has to show again who they are, although they are signed in there.
   */
  authorizationUrl(asked: Asked, options?: { readonly silently?: boolean; readonly anew?: boolean }): Promise<string>
  /** What the browser came back with. Throws 401 `provider_refused` for what is forged, broken or denied, 503 when it is away. */
  finish(
    callback: URL,
    asked: Asked,
    options?: { readonly anew?: boolean },
  ): Promise<{ readonly person: ProvedPerson; readonly grant: ProviderGrant }>
  check(grant: ProviderGrant, subject: string): Promise<Checked>
  /** Whose session has ended; undefined for what is no logout token of the provider. */
  readLogoutToken(token: string): Promise<{ subject?: string; sid?: string } | undefined>
}

type Configuration = OpenIdClient.Configuration
type Tokens = Awaited<ReturnType<typeof OpenIdClient.refreshTokenGrant>>

interface Line {
  readonly client: typeof OpenIdClient
  readonly configuration: Configuration
}

/** The line to the provider as it is now. A new one for each use: the keys that it fetches are those of now. */
function createConfigure(settings: ProviderSettings, clock: Clock): () => Promise<Line> {
  const library = (): Promise<typeof OpenIdClient> => import('openid-client')
  let known: { readonly at: number; readonly server: OpenIdClient.ServerMetadata } | undefined

  function prepared(client: typeof OpenIdClient, configuration: Configuration): Configuration {
    client.enableNonRepudiationChecks(configuration)
    configuration.timeout = TIMEOUT_SECONDS
    return configuration
  }

  const isPlain = settings.issuer.startsWith('http:')
  const authOf = (client: typeof OpenIdClient, server: OpenIdClient.ServerMetadata): OpenIdClient.ClientAuth => {
    if (settings.clientSecret === undefined) return client.None()
    const known = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    return known.includes('client_secret_basic')
      ? client.ClientSecretBasic(settings.clientSecret)
      : client.ClientSecretPost(settings.clientSecret)
  }

  return async () => {
    const client = await library()
    const { issuer, clientId, clientSecret } = settings
    if (!known || clock.now() - known.at > DISCOVERED_MS) {
      const found = await client.discovery(new URL(issuer), clientId, clientSecret, undefined, {
        timeout: TIMEOUT_SECONDS,
        execute: isPlain ? [client.allowInsecureRequests] : [],
      })
      known = { at: clock.now(), server: found.serverMetadata() }
    }
    const configuration = new client.Configuration(known.server, clientId, undefined, authOf(client, known.server))
    if (isPlain) client.allowInsecureRequests(configuration)
    return { client, configuration: prepared(client, configuration) }
  }
}

export function createProviderClient(settings: ProviderSettings, clock: Clock): ProviderClient {
  const configure = createConfigure(settings, clock)

  const grantOf = (
    tokens: OpenIdClient.TokenEndpointResponse,
    before: Pick<ProviderGrant, 'refreshToken' | 'isOffline'>,
  ): ProviderGrant => ({
    // Without a new one the old one goes on (RFC 6749 §6).
    refreshToken: tokens.refresh_token ?? before.refreshToken,
    accessToken: tokens.access_token,
    accessEndsAt: tokens.expires_in === undefined ? null : clock.now() + tokens.expires_in * 1000,
    isOffline: before.isOffline ?? false,
  })

  /** Nothing is asked where groups mean nothing. What is not said changes nothing: a new grant must not be lost over it. */
  async function groupsNow(line: Line, tokens: Tokens, subject: string): Promise<string[] | undefined> {
    if (settings.groups.size === 0) return undefined
    const said = tokens.claims()?.['groups'] ?? (await groupsAtUserInfo(line, tokens.access_token, subject))
    return said === undefined ? undefined : groupsOf(said)
  }

  return {
    async authorizationUrl({ redirectUri, state, nonce, verifier }, { silently = false, anew = false } = {}) {
      const { client, configuration } = await configure().catch(asAway)
      const url = client.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: scopesFor(configuration).join(' '),
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        // Nothing else is asked for: a provider that wants to ask the person something does so by itself.
        ...(silently ? { prompt: 'none' } : {}),
        ...(anew ? { prompt: 'login', max_age: String(ANEW_SECONDS) } : {}),
      })
      return url.href
    },

    async finish(callback, { state, nonce, verifier }, { anew = false } = {}) {
      const { client, configuration } = await configure().catch(asAway)
      try {
        const tokens = await client.authorizationCodeGrant(configuration, callback, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
          // The library wants to be told when they signed in, and that it was not longer ago.
          ...(anew ? { maxAge: ANEW_SECONDS } : {}),
        })
        const claims = tokens.claims()
        const isWhole = claims?.['email'] !== undefined && claims['groups'] !== undefined
        const hasUserInfo = configuration.serverMetadata().userinfo_endpoint !== undefined
        const info =
          isWhole || !hasUserInfo || !claims
            ? undefined
            : await client.fetchUserInfo(configuration, tokens.access_token, claims.sub)
        const found = personOf(claims, info)
        if (found.kind === 'refused') throw errors.providerRefused(found.why)
        const isOffline = givesOffline(tokens, scopesFor(configuration))
        return { person: found.person, grant: grantOf(tokens, { refreshToken: undefined, isOffline }) }
      } catch (error) {
        throw refusalOf(error)
      }
    },

    async check(grant, subject) {
      try {
        const line = await configure()
        const { client, configuration } = line
        const tellsOfLogouts = configuration.serverMetadata()['backchannel_logout_supported'] === true
        switch (howToCheck(grant, clock.now(), tellsOfLogouts)) {
          case 'refresh': {
            const tokens = await client.refreshTokenGrant(configuration, grant.refreshToken ?? '')
            const claims = tokens.claims()
            if (claims && claims.sub !== subject) return { kind: 'removed' }
            return { kind: 'valid', grant: grantOf(tokens, grant), groups: await groupsNow(line, tokens, subject) }
          }
          case 'userinfo': {
            const info = await client.fetchUserInfo(configuration, grant.accessToken, subject)
            return { kind: 'valid', grant, groups: info['groups'] === undefined ? undefined : groupsOf(info['groups']) }
          }
          case 'trust':
            return { kind: 'valid', grant, groups: undefined }
          case 'run_out':
            return { kind: 'run_out' }
        }
      } catch (error) {
        return endsGrant(error) ? { kind: 'removed' } : { kind: 'unknown', cause: error }
      }
    },

    async readLogoutToken(token) {
      const { configuration } = await configure().catch(asAway)
      const { jwks_uri: keys, issuer } = configuration.serverMetadata()
      if (keys === undefined) return undefined
      try {
        const { payload } = await jwtVerify(
          token,
          createRemoteJWKSet(new URL(keys), { timeoutDuration: TIMEOUT_SECONDS * 1000 }),
          {
            issuer,
            audience: settings.clientId,
            algorithms: SIGNATURES,
            requiredClaims: ['iat', 'jti'],
            maxTokenAge: LOGOUT_TOKEN_AGE,
            clockTolerance: 30,
            currentDate: new Date(clock.now()),
          },
        )
        return logoutOf(payload)
      } catch (error) {
        if (isAway(error)) throw errors.providerAway()
        return undefined
      }
    },
  }
}

/** What is asked for: the optional ones where the provider knows them. */
function scopesFor(configuration: Configuration): string[] {
  const supported = configuration.serverMetadata().scopes_supported ?? []
  const optional = ['groups', 'offline_access'].filter((scope) => supported.includes(scope))
  return ['openid', 'email', 'profile', ...optional]
}

/** Some providers name groups there alone. */
async function groupsAtUserInfo(
  { client, configuration }: Line,
  accessToken: string,
  subject: string,
): Promise<unknown> {
  if (configuration.serverMetadata().userinfo_endpoint === undefined) return undefined
  const info = await client.fetchUserInfo(configuration, accessToken, subject).catch(() => undefined)
  return info?.['groups']
}

function asAway(): never {
  throw errors.providerAway()
}

interface LibraryError {
  readonly name?: string
  readonly code?: string
  readonly error?: string
  readonly status?: number
  readonly cause?: unknown
}

/** No answer, or one that says that the provider itself is in trouble. */
function isAway(error: unknown): boolean {
  const { name = '', code = '', status, cause } = error as LibraryError
  if (name === 'TimeoutError' || name === 'AbortError' || code === 'OAUTH_TIMEOUT' || code === 'ERR_JWKS_TIMEOUT')
    return true
  if (error instanceof TypeError && /fetch failed/.test(error.message)) return true
  if (status !== undefined && status >= 500) return true
  const response = cause instanceof Response ? cause : undefined
  return (
    (response !== undefined && response.status >= 500) || (cause instanceof Error && cause !== error && isAway(cause))
  )
}

/** The provider says that this grant is no more; a wrong client or a bad day of its own says nothing about the person. */
function endsGrant(error: unknown): boolean {
  if (isAway(error)) return false
  const { error: said, status, name } = error as LibraryError
  return said === 'invalid_grant' || (status === 401 && name === 'WWWAuthenticateChallengeError')
}

function refusalOf(error: unknown): Error {
  const { name = '', error: said } = error as LibraryError
  if (name === '' || (error as Error).constructor.name === 'ApiError') return error as Error
  if (isAway(error)) return errors.providerAway()
  if (said !== undefined && SILENT_REFUSALS.has(said)) return errors.providerAsks()
  if (said === 'access_denied') return errors.providerRefused('It did not let you in.')
  return errors.providerRefused('Its answer was not one that we can trust.')
}

/** OpenID Connect Core §3.1.2.6: what a request without pages is answered with. */
const SILENT_REFUSALS: ReadonlySet<string> = new Set([
  'login_required',
  'interaction_required',
  'consent_required',
  'account_selection_required',
])
