/**
 * The device authorization grant (RFC 8628), for programs on a machine without a browser:
 * 1. the program asks for a code and shows the short half of it, with the address of our page;
 * 2. a person who is signed in anywhere types it in, sees who asks, and says yes or no;
 * 3. the program asks again and again with the long half until it hears the answer.
 */
import { MINUTE_MS, type Clock } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { limitKeyOfIp } from '../../../shared/http/ip.ts'
import { hashSecret, randomSecret, type Secrets } from '../../../shared/secrets/secrets.ts'
import type { Actor } from '../../ground/actor.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import { changeRoutes } from '../../ground/routing/changes.ts'
import type { RateLimiter } from '../../ground/http/limits/rate-limit.ts'
import type { Clients } from './clients.ts'
import * as queries from './device-queries.ts'
import { decidePoll, formatUserCode, newUserCode, normalUserCode, POLL_INTERVAL_SECONDS } from './device-rules.ts'
import { decideGrant, OAuthError, requireParameters, requireSingle, requireSameResource } from './rules.ts'
import type { SignInHooks, TokenReply, Tokens } from './tokens.ts'

/** Long enough to walk to another device and sign in there; a short code must not stay open for guessing. */
const LIFETIME_MS = 10 * MINUTE_MS
/** As many as registrations: an office behind one address signs in some dozens of machines. */
const REQUESTS = { points: 100, windowSeconds: 3600 }
/** RFC 8628 §5.1: 34 bits of a code that lives for ten minutes, against this many guesses per person and network. */
const GUESSES = { points: 60, windowSeconds: 600 }

export const DEVICE_PAGE = '/device'

/** RFC 8628 §3.2. */
export interface DeviceAuthorization {
  readonly device_code: string
  readonly user_code: string
  readonly verification_uri: string
  readonly verification_uri_complete: string
  readonly expires_in: number
  readonly interval: number
}

/** What the person decides about. */
export interface DeviceRequest {
  /** As it is shown: `BCDF-GHJK`. */
  readonly userCode: string
  readonly clientName: string
  readonly scopes: readonly string[]
  readonly askedFrom: string
  readonly askedAt: Date
}

export interface DeviceGrants {
  /** RFC 8628 §3.1. */
  authorize(form: URLSearchParams, ip: string): Promise<DeviceAuthorization>
  /** The request behind a code that a person typed; undefined when it is unknown, too old or decided. Guesses are limited. */
  find(actor: Actor, typed: string): Promise<DeviceRequest | undefined>
  /** False when there is nothing left to decide. */
  decide(actor: Actor, typed: string, decision: 'allow' | 'deny'): Promise<boolean>
  /** RFC 8628 §3.4: tokens, or why there are none yet. */
  poll(form: URLSearchParams): Promise<TokenReply>
}

interface DeviceDependencies {
  sql: Pool
  clock: Clock
  secrets: Pick<Secrets, 'sign'>
  baseUrl: string
  limiter: RateLimiter
  clients: Pick<Clients, 'find'>
  tokens: Pick<Tokens, 'grant' | 'issue' | 'repeat' | 'end'>
  hooks: Pick<SignInHooks, 'propagate'>
}

export function createDeviceGrants({
  sql,
  clock,
  secrets,
  baseUrl,
  limiter,
  clients,
  tokens,
  hooks,
}: DeviceDependencies): DeviceGrants {
  const now = (): Date => new Date(clock.now())
  const userCodeHash = (code: string): string => secrets.sign('device-code', code)

  /** Two programs get the same short code once in a billion times: the second draws again. */
  async function insert(code: Omit<Parameters<typeof queries.insertDeviceCode>[1], 'user_code_hash'>): Promise<string> {
    for (;;) {
      const userCode = newUserCode()
      if (await queries.insertDeviceCode(sql, { ...code, user_code_hash: userCodeHash(userCode) })) return userCode
    }
  }

  async function countGuess(actor: Actor): Promise<void> {
    await limiter.consume('device-code-person', actor.userId, GUESSES)
    await limiter.consume('device-code', limitKeyOfIp(actor.ip), GUESSES)
  }

  async function undecided(sql: Sql, typed: string): Promise<queries.DeviceCodeRow | undefined> {
    const code = normalUserCode(typed)
    return code === undefined ? undefined : queries.findUndecided(sql, userCodeHash(code), now())
  }

  return {
    async authorize(form, ip) {
      requireSingle(form)
      const { client_id: clientId } = requireParameters(form, ['client_id'])
      await limiter.consume('device-authorization', limitKeyOfIp(ip), REQUESTS)
      const client = await clients.find(clientId, ip)
      if (!client)
        throw new OAuthError('invalid_client', 'This client is not registered, or its registration has expired.', 401)
      const deviceCode = randomSecret()
      const userCode = await insert({
        hash: hashSecret(deviceCode),
        client_id: client.id,
        client_name: client.name,
        asked_from: ip,
        created_at: now(),
        expires_at: new Date(clock.now() + LIFETIME_MS),
        interval_seconds: POLL_INTERVAL_SECONDS,
        ...decideGrant({ scope: form.get('scope') ?? undefined, resource: form.get('resource') ?? undefined }, baseUrl),
      })
      return authorizationOf(deviceCode, userCode, `${baseUrl}${DEVICE_PAGE}`)
    },

    async find(actor, typed) {
      await countGuess(actor)
      const code = normalUserCode(typed)
      const found = await undecided(sql, typed)
      return code === undefined || !found ? undefined : requestOf(code, found)
    },

    async decide(actor, typed, decision) {
      if (!actor.emailVerified) throw errors.emailNotVerified()
      await countGuess(actor)
      const { value: decided, changes } = await changeRoutes(sql, async (tx) => {
        const found = await undecided(tx, typed)
        if (!found) return false
        const changes =
          decision === 'allow' ? { grant_id: (await tokens.grant(tx, actor, found)).id } : { denied_at: now() }
        await queries.updateDeviceCode(tx, found.hash, changes)
        return true
      })
      if (decided) await hooks.propagate(changes)
      return decided
    },

    async poll(form) {
      const deviceCode = form.get('device_code') ?? ''
      const hash = hashSecret(deviceCode)
      const outcome = await transaction(sql, async (tx) => {
        const code = await queries.lockDeviceCode(tx, hash)
        if (!code || code.client_id !== form.get('client_id'))
          return new OAuthError('invalid_grant', 'The device code is unknown, or it belongs to another client.')
        requireSameResource(form, code.resource)
        const poll = decidePoll(code, now())
        if (poll.kind === 'refused') {
          await queries.updateDeviceCode(tx, hash, { polled_at: now(), interval_seconds: poll.intervalSeconds })
          return poll.error
        }
        const grant = await queries.findGrant(tx, poll.grantId)
        if (!grant || grant.revoked_at) return new OAuthError('access_denied', 'The access was taken back.')
        if (poll.kind === 'repeated')
          return (await tokens.repeat(tx, grant, deviceCode, poll.usedAt)) ?? { copied: grant.id }
        await queries.updateDeviceCode(tx, hash, { used_at: now() })
        return tokens.issue(tx, grant, deviceCode)
      })
      if (outcome instanceof OAuthError) throw outcome
      if (!('copied' in outcome)) return outcome
      await tokens.end(outcome.copied)
      throw new OAuthError(
        'invalid_grant',
        'The device code was used before. Everything that came from it has been revoked.',
      )
    },
  }
}

function authorizationOf(deviceCode: string, userCode: string, page: string): DeviceAuthorization {
  const shown = formatUserCode(userCode)
  return {
    device_code: deviceCode,
    user_code: shown,
    verification_uri: page,
    verification_uri_complete: `${page}?user_code=${shown}`,
    expires_in: LIFETIME_MS / 1000,
    interval: POLL_INTERVAL_SECONDS,
  }
}

function requestOf(userCode: string, row: queries.DeviceCodeRow): DeviceRequest {
  return {
    userCode: formatUserCode(userCode),
    clientName: row.client_name,
    scopes: row.scopes,
    askedFrom: row.asked_from,
    askedAt: row.created_at,
  }
}
