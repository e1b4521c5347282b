/**
 * Passkeys (WebAuthn): keys that a person's devices hold. Signing in with one needs neither e-mail nor password, and counts
 * as the second factor too, because the device has checked who holds it.
 */
import {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
  type AuthenticationResponseJSON,
  type PublicKeyCredentialCreationOptionsJSON,
  type PublicKeyCredentialRequestOptionsJSON,
  type RegistrationResponseJSON,
} from '@simplewebauthn/server'
import { MINUTE_MS, type Clock } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { MAX_NAME_CHARS } from '../../../shared/contracts/limits.ts'
import { requireProved, type Actor } from '../../ground/actor.ts'
import { isUniqueViolation, type Pool } from '../../ground/database/sql.ts'
import { changeRoutes } from '../../ground/routing/changes.ts'
import { recordAudit } from '../audit/audit.ts'
import { endWithoutFactor } from '../organisations/personal.ts'
import * as queries from './passkey-queries.ts'
import type { FactorHooks, Factors } from './factors.ts'
import { markProved } from './queries.ts'

/** Time to find the key and to touch it. */
const CHALLENGE_MS = 5 * MINUTE_MS
/** A person has a few devices. */
const MAX_PASSKEYS = 20

export type PasskeyEntry = Omit<queries.PasskeyRow, 'userId' | 'publicKey' | 'counter' | 'transports'>

export interface Passkeys {
  /** What the browser needs to make one. */
  creationOptions(actor: Actor): Promise<PublicKeyCredentialCreationOptionsJSON>
  /** 400 when the browser's answer does not fit what it was asked. */
  add(actor: Actor, wanted: { name: string; credential: unknown }): Promise<PasskeyEntry>
  list(userId: string): Promise<PasskeyEntry[]>
  remove(actor: Actor, id: string): Promise<void>
  /** What the browser needs to sign in with any of its passkeys of ours. */
  requestOptions(): Promise<PublicKeyCredentialRequestOptionsJSON>
  /** The session that calls has shown a passkey of its person, which is proof for ten minutes; 401 as when signing in. */
  prove(actor: Actor, credential: unknown): Promise<void>
  /** Whose passkey answered; throws 401 `wrong_credentials` alike for every reason. */
  userOf(credential: unknown): Promise<string>
  sweep(): Promise<void>
}

export interface PasskeysDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly baseUrl: string
  /** What a device shows beside the key. */
  readonly serviceName: string
  readonly factors: Pick<Factors, 'endRecovery'>
  readonly hooks: FactorHooks
}

export function createPasskeys({ sql, clock, baseUrl, serviceName, factors, hooks }: PasskeysDependencies): Passkeys {
  const rpID = new URL(baseUrl).hostname
  const now = (): Date => new Date(clock.now())

  async function keep(challenge: string, userId: string | null): Promise<void> {
    await queries.insertChallenge(sql, { challenge, userId, expiresAt: new Date(clock.now() + CHALLENGE_MS) })
  }

  const userOf = createRecognition({ sql, clock, baseUrl, factors })
  /** Each is good for one answer, by whom it was given to. */
  const take = (userId: string | null) => (challenge: string) => queries.takeChallenge(sql, challenge, userId, now())

  return {
    async creationOptions(actor) {
      requireProved(actor)
      const own = await queries.listPasskeys(sql, actor.userId)
      const options = await generateRegistrationOptions({
        rpName: serviceName,
        rpID,
        userName: actor.email,
        userID: new TextEncoder().encode(actor.userId),
        attestationType: 'none',
        excludeCredentials: own.map(({ id }) => ({ id })),
        authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      })
      await keep(options.challenge, actor.userId)
      return options
    },

    async add(actor, { name, credential }) {
      requireProved(actor)
      const label = name.trim().slice(0, MAX_NAME_CHARS) || 'Passkey'
      const verified = await verifyRegistrationResponse({
        response: credential as RegistrationResponseJSON,
        expectedChallenge: take(actor.userId),
        expectedOrigin: baseUrl,
        expectedRPID: rpID,
      }).catch(() => undefined)
      const info = verified?.verified === true ? verified.registrationInfo?.credential : undefined
      if (!info) throw errors.invalidRequest('credential: this answer does not fit what was asked. Try again.')
      const passkey = { id: info.id, name: label, createdAt: now(), lastUsedAt: null }
      const { changes } = await changeRoutes(sql, async (tx) => {
        if ((await queries.listPasskeys(tx, actor.userId)).length >= MAX_PASSKEYS)
          throw errors.limitReached(`You have ${MAX_PASSKEYS} passkeys. Remove one first.`)
        await queries.insertPasskey(tx, {
          ...passkey,
          userId: actor.userId,
          publicKey: Buffer.from(info.publicKey),
          counter: info.counter,
          transports: info.transports ?? [],
        })
        await hooks.onMemberBack(tx, actor.userId, now())
        await recordAudit(tx, {
          at: passkey.createdAt,
          orgId: actor.orgId,
          actor,
          action: 'account.passkey_added',
          subject: actor.userId,
          detail: { name: label },
        })
      }).catch((error: unknown) => {
        throw isUniqueViolation(error, 'passkeys_pkey')
          ? errors.invalidRequest('credential: it is known already')
          : error
      })
      await hooks.propagate(changes)
      return passkey
    },

    list: (userId) => queries.listPasskeys(sql, userId),

    async remove(actor, id) {
      requireProved(actor)
      const { changes } = await changeRoutes(sql, async (tx) => {
        const removed = await queries.deletePasskey(tx, actor.userId, id)
        if (!removed) throw errors.notFound('passkey')
        await endWithoutFactor(tx, hooks, actor.userId, now())
        await recordAudit(tx, {
          at: now(),
          orgId: actor.orgId,
          actor,
          action: 'account.passkey_removed',
          subject: actor.userId,
          detail: { name: removed.name },
        })
      })
      await hooks.propagate(changes)
    },

    async requestOptions() {
      const options = await generateAuthenticationOptions({ rpID, userVerification: 'required' })
      await keep(options.challenge, null)
      return options
    },

    userOf,

    async prove(actor, credential) {
      if (actor.via.kind !== 'session') throw errors.forbidden('Only a session of the dashboard can be proved.')
      if ((await userOf(credential)) !== actor.userId)
        throw errors.wrongCredentials('This passkey is of another account.')
      await markProved(sql, actor.via.sessionId, now())
    },

    sweep: () => queries.deleteOldChallenges(sql, now()),
  }
}

/** Knows people by the answers of their passkeys. */
function createRecognition({
  sql,
  clock,
  baseUrl,
  factors,
}: Pick<PasskeysDependencies, 'sql' | 'clock' | 'baseUrl' | 'factors'>): Passkeys['userOf'] {
  const rpID = new URL(baseUrl).hostname
  const now = (): Date => new Date(clock.now())
  return async (credential) => {
    const response = credential as AuthenticationResponseJSON
    const passkey = typeof response?.id === 'string' ? await queries.findPasskey(sql, response.id) : undefined
    if (!passkey) throw errors.wrongCredentials('This passkey opens no account here.')
    const { id, publicKey, counter, userId } = passkey
    // A counter that does not grow is that of a copy: the library refuses it.
    const verified = await verifyAuthenticationResponse({
      response,
      expectedChallenge: (challenge) => queries.takeChallenge(sql, challenge, null, now()),
      expectedOrigin: baseUrl,
      expectedRPID: rpID,
      credential: { id, publicKey: new Uint8Array(publicKey), counter },
    }).catch(() => undefined)
    const isGood =
      verified?.verified === true &&
      (await queries.usePasskey(sql, {
        id,
        before: counter,
        counter: verified.authenticationInfo.newCounter,
        now: now(),
      }))
    if (!isGood) throw errors.wrongCredentials('This passkey opens no account here.')
    await factors.endRecovery(userId, 'passkey')
    return userId
  }
}
