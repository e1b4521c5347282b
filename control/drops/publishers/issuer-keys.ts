/**
 * The keys that issuers publish (OpenID Connect Discovery 1.0 §4). Per issuer:
 *   fresh, 30 s    what was fetched is used; a key that is not in it is unknown
 *   older          fetched again, whichever key is asked for: a withdrawn one is refused from then on
 *   failing        nothing is trusted; the next caller tries again
 * One fetch per issuer at a time, and only of issuers that the installation trusts.
 */
import { LRUCache } from 'lru-cache'
import { createLocalJWKSet, errors as joseErrors, jwtVerify, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'
import { SECOND_MS, type Clock } from '../../../shared/running/clock.ts'
import type { Claims, RefusalReason } from './rules.ts'

const FRESH_MS = 30 * SECOND_MS
/** Forges publish a handful of keys. */
const DOCUMENT_LIMITS = { maxBytes: 128 * 1024, timeoutMs: 3 * SECOND_MS }
const MAX_ISSUERS = 200
/** No forge's clock is that wrong; one that is off by more cannot be told from a stale token. */
const CLOCK_TOLERANCE_SECONDS = 60
/** Asymmetric ones alone: with a shared secret the published key would be the secret. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']

const discoverySchema = z.object({ issuer: z.string(), jwks_uri: z.url().max(500) })
const keySetSchema = z.object({ keys: z.array(z.looseObject({ kty: z.string() })).max(50) })

/** Reads a document of an issuer, guarded as that issuer is trusted. */
export type FetchOfIssuer = (
  issuer: string,
  url: string,
  limits: { maxBytes: number; timeoutMs: number },
) => Promise<Buffer>

export type Verification = { readonly claims: Claims } | { readonly reason: RefusalReason }

export interface IssuerKeys {
  /** The claims of a token that this issuer signed for this audience and that is good now; else why not. */
  verify(token: string, expected: { issuer: string; audience: string }): Promise<Verification>
}

interface Known {
  readonly fetchedAt: number
  readonly keys: JWTVerifyGetKey
}

class KeysUnavailable extends Error {}

export function createIssuerKeys({ clock, fetch }: { clock: Clock; fetch: FetchOfIssuer }): IssuerKeys {
  const known = new LRUCache<string, Known>({ max: MAX_ISSUERS })
  const underWay = new Map<string, Promise<Known>>()

  async function load(issuer: string): Promise<Known> {
    const configuration = discoverySchema.safeParse(
      await readJson(issuer, `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`),
    )
    if (!configuration.success || configuration.data.issuer !== issuer) throw new KeysUnavailable()
    const keySet = keySetSchema.safeParse(await readJson(issuer, configuration.data.jwks_uri))
    if (!keySet.success) throw new KeysUnavailable()
    return { fetchedAt: clock.now(), keys: createLocalJWKSet(keySet.data as JSONWebKeySet) }
  }

  async function readJson(issuer: string, url: string): Promise<unknown> {
    try {
      return JSON.parse((await fetch(issuer, url, DOCUMENT_LIMITS)).toString())
    } catch (error) {
      throw new KeysUnavailable('an issuer could not be read', { cause: error })
    }
  }

  async function keysOf(issuer: string): Promise<Known> {
    const present = known.get(issuer)
    if (present && Math.abs(clock.now() - present.fetchedAt) < FRESH_MS) return present
    const running = underWay.get(issuer) ?? load(issuer).finally(() => underWay.delete(issuer))
    underWay.set(issuer, running)
    const loaded = await running
    known.set(issuer, loaded)
    return loaded
  }

  return {
    async verify(token, { issuer, audience }) {
      try {
        const { keys } = await keysOf(issuer)
        const { payload } = await jwtVerify(token, keys, {
          issuer,
          algorithms: ALGORITHMS,
          requiredClaims: ['exp', 'aud'],
          clockTolerance: CLOCK_TOLERANCE_SECONDS,
          currentDate: new Date(clock.now()),
        })
        // A token that is for others too could be taken from any of them.
        if ([payload.aud].flat().some((one) => one !== audience)) return { reason: 'audience' }
        const latest = clock.now() / SECOND_MS + CLOCK_TOLERANCE_SECONDS
        if (payload.iat !== undefined && payload.iat > latest) return { reason: 'not_yet_valid' }
        return { claims: payload }
      } catch (error) {
        return { reason: reasonOf(error) }
      }
    },
  }
}

function reasonOf(error: unknown): RefusalReason {
  if (error instanceof KeysUnavailable) return 'keys_unavailable'
  if (error instanceof joseErrors.JWTExpired) return 'expired'
  if (error instanceof joseErrors.JWTClaimValidationFailed) return reasonOfClaim(error.claim)
  if (error instanceof joseErrors.JWKSNoMatchingKey || error instanceof joseErrors.JWKSMultipleMatchingKeys)
    return 'unknown_key'
  if (error instanceof joseErrors.JOSEAlgNotAllowed) return 'algorithm'
  if (error instanceof joseErrors.JWSSignatureVerificationFailed) return 'signature'
  // A key of another kind than the algorithm wants, a header that names what we do not know, a token that is none.
  return 'malformed'
}

function reasonOfClaim(claim: string): RefusalReason {
  if (claim === 'nbf' || claim === 'iat') return 'not_yet_valid'
  if (claim === 'aud') return 'audience'
  if (claim === 'iss') return 'issuer'
  return claim === 'exp' ? 'expired' : 'malformed'
}
