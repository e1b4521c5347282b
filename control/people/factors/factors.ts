/**
 * Second factors: what a person proves besides the password. A generator of codes or a passkey, recovery codes for the day
 * on which the generator is lost, and, when everything is lost, a day of waiting in which every mail offers to stop it.
 */
import { randomBytes } from 'node:crypto'
import { DAY_MS, MINUTE_MS, type Clock } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { hashSecret, randomSecret, type Secrets } from '../../../shared/secrets/secrets.ts'
import { isProved, requireProved, type Actor } from '../../ground/actor.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import { createThrottle, type Allowance } from '../../ground/http/limits/throttle.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import { changeRoutes, type RoutingTransaction } from '../../ground/routing/changes.ts'
import { hasIdentity } from '../access/provider-queries.ts'
import { recordAudit } from '../audit/audit.ts'
import type { OrganisationHooks } from '../organisations/dependencies.ts'
import { endWithoutFactor, findHomeOrganisation } from '../organisations/personal.ts'
import { deletePasskeysOf } from './passkey-queries.ts'
import * as queries from './queries.ts'
import { base32, matchingStep, otpauthUri, SECRET_BYTES } from './totp.ts'

const RECOVERY_CODES = 10
/** 50 bits each: ten of them against ten guesses per quarter of an hour. */
const RECOVERY_CODE_CHARS = 10
/** Long enough that the owner reads a mail, whatever the time zone. */
const RECOVERY_DELAY_MS = DAY_MS

/** Over all networks: who guesses from many places closes this door too, and passkeys and sessions stay open. */
const ALLOWANCES = {
  codePerAccount: { limit: 10, windowMs: 15 * MINUTE_MS },
  recoveryPerAccount: { limit: 5, windowMs: DAY_MS },
} as const satisfies Record<string, Allowance>

export interface NewGenerator {
  /** To be typed in. */
  readonly secret: string
  /** To be scanned. */
  readonly uri: string
}

export interface FactorState {
  readonly hasGenerator: boolean
  readonly recoveryCodesLeft: number
  /** When the factors are taken away, unless someone stops it. */
  readonly recoveryDueAt: Date | undefined
  /** The operator's sign-in provider knows the person. */
  readonly isOfProvider: boolean
}

/** How the one who says that everything is lost has come: by the password a moment ago, or in a session. */
export type RecoveryAsker = 'password' | 'session'

/** What stopped a recovery: the link in the mail, a session, or a factor that was shown. */
type RecoveryStop = 'mail' | 'session' | 'code' | 'passkey'

type Person = Pick<Actor, 'userId' | 'email' | 'orgId'>

export interface Factors {
  stateOf(userId: string): Promise<FactorState>
  /** Does signing in with the password ask for a code too? */
  isEnrolled(sql: Sql, userId: string): Promise<boolean>
  /**
   * A secret that counts once a code of it was given. 409 when there is a generator already. An account with passkeys asks
   * for one of them, here and when it is confirmed: a session that was left open must not prove itself by its own factor.
   */
  begin(actor: Actor): Promise<NewGenerator>
  /** What was begun and not confirmed yet; undefined for a session that has to prove itself first. */
  begun(actor: Actor): Promise<NewGenerator | undefined>
  /** The recovery codes, shown this once. */
  confirm(actor: Actor, code: string): Promise<readonly string[]>
  renewRecoveryCodes(actor: Actor): Promise<readonly string[]>
  remove(actor: Actor): Promise<void>
  /** Takes a code of the generator or a recovery code, each once; throws `wrong_code`, or 429 after too many. */
  takeCode(userId: string, code: string): Promise<void>
  /** The session that calls has proved itself, for ten minutes. */
  prove(actor: Actor, code: string): Promise<void>
  /**
   * The person can sign in, by the password or the operator's provider, and has nothing else. A day from now that alone
   * suffices, and passkeys are gone.
   */
  requestRecovery(person: Person, by: RecoveryAsker): Promise<{ dueAt: Date }>
  /** Behind the link in the mail. 400 `invalid_link` when there is nothing to stop. */
  cancelRecovery(token: string): Promise<void>
  /** In a session that has proved itself: who holds a stolen one must not keep the person waiting. */
  stopRecovery(actor: Actor): Promise<void>
  /** Whoever has just shown a factor has not lost everything. Says nothing where nothing was under way. */
  endRecovery(userId: string, by: 'code' | 'passkey'): Promise<void>
  /** In the transaction of a sign-in by password or provider: takes the factors away where the day is over. */
  applyRecovery(tx: RoutingTransaction, person: Person): Promise<boolean>
  /** In the transaction of what ends every way in. */
  endPasskeys(sql: Sql, userId: string): Promise<void>
  /** With the account goes all of it. */
  forget(tx: Sql, userId: string): Promise<void>
  sweep(): Promise<void>
}

export interface FactorsDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly baseUrl: string
  readonly secrets: Pick<Secrets, 'seal' | 'open'>
  readonly enqueueMail: EnqueueMail
  readonly hooks: FactorHooks
}

/** What a person has opened as a member follows their factors, where an organisation asks for one. */
export type FactorHooks = Pick<OrganisationHooks, 'onMemberLeft' | 'onMemberBack' | 'propagate'>

export const RECOVERY_PATH = '/recovery/stop'

export function createFactors(deps: FactorsDependencies): Factors {
  const { sql, clock } = deps
  const now = (): Date => new Date(clock.now())
  const throttle = createThrottle({ sql, clock, allowances: ALLOWANCES })
  const recovery = createRecovery(deps, throttle)

  async function takeCode(userId: string, code: string): Promise<void> {
    await throttle.require('codePerAccount', userId)
    if (!(await transaction(sql, (tx) => isTaken(tx, userId, code)))) throw errors.wrongCode()
    await throttle.refund('codePerAccount', userId)
    await recovery.endRecovery(userId, 'code')
  }

  async function isTaken(tx: Sql, userId: string, code: string): Promise<boolean> {
    const generator = await queries.lockGenerator(tx, userId)
    if (!generator?.confirmedAt) return false
    const step = matchingStep(openSecret(deps, userId, generator.sealedSecret), code, {
      nowMs: clock.now(),
      lastStep: generator.lastStep,
    })
    if (step === undefined) return queries.spendRecoveryCode(tx, userId, recoveryHash(code), now())
    await queries.takeStep(tx, userId, step)
    return true
  }

  return {
    ...createEnrolment(deps),
    ...recovery,
    takeCode,
    isEnrolled: queries.hasFactor,
    endPasskeys: deletePasskeysOf,

    async forget(tx, userId) {
      await queries.deleteFactors(tx, userId)
      await queries.deleteDevices(tx, userId)
      await deletePasskeysOf(tx, userId)
    },

    async stateOf(userId) {
      return {
        hasGenerator: await queries.hasFactor(sql, userId),
        recoveryCodesLeft: await queries.countRecoveryCodes(sql, userId),
        recoveryDueAt: (await queries.findRecovery(sql, userId))?.dueAt,
        isOfProvider: await hasIdentity(sql, userId),
      }
    },

    async prove(actor, code) {
      if (actor.via.kind !== 'session') throw errors.forbidden('Only a session of the dashboard can be proved.')
      await takeCode(actor.userId, code)
      await queries.markProved(sql, actor.via.sessionId, now())
    },

    sweep: () => throttle.sweep(),
  }
}

function createEnrolment(
  deps: FactorsDependencies,
): Pick<Factors, 'begin' | 'begun' | 'confirm' | 'renewRecoveryCodes' | 'remove'> {
  const { sql, clock, baseUrl, secrets, enqueueMail, hooks } = deps
  const now = (): Date => new Date(clock.now())

  async function newRecoveryCodes(tx: Sql, userId: string): Promise<string[]> {
    const codes = Array.from({ length: RECOVERY_CODES }, newRecoveryCode)
    await queries.replaceRecoveryCodes(tx, userId, codes.map(recoveryHash))
    return codes
  }

  const shown = (secret: Uint8Array, { email: account }: Actor): NewGenerator => ({
    secret: base32(secret),
    uri: otpauthUri(secret, { account, issuer: new URL(baseUrl).hostname }),
  })

  const tell = (tx: Sql, actor: Actor, what: 'on' | 'off'): Promise<unknown> =>
    enqueueMail(tx, {
      eventKey: `second_factor:${actor.userId}:${clock.now()}`,
      to: actor.email,
      template: 'second_factor_changed',
      data: { what, link: `${baseUrl}/account/ways-in` },
    })

  return {
    async begin(actor) {
      requireSession(actor)
      requireProved(actor)
      const secret = randomBytes(SECRET_BYTES)
      const sealedSecret = secrets.seal(secret, sealingContext(actor.userId))
      if (!(await queries.putGenerator(sql, { userId: actor.userId, sealedSecret, now: now() })))
        throw errors.conflict('already_enrolled', 'There is a code generator already. Remove it first.')
      return shown(secret, actor)
    },

    async begun(actor) {
      if (!isProved(actor)) return undefined
      const generator = await transaction(sql, (tx) => queries.lockGenerator(tx, actor.userId))
      if (!generator || generator.confirmedAt) return undefined
      return shown(openSecret(deps, actor.userId, generator.sealedSecret), actor)
    },

    async confirm(actor, code) {
      const { value: codes, changes } = await changeRoutes(sql, async (tx) => {
        requireSession(actor)
        requireProved(actor)
        const generator = await queries.lockGenerator(tx, actor.userId)
        if (!generator || generator.confirmedAt)
          throw errors.conflict('already_enrolled', 'There is nothing to confirm. Begin again.')
        const secret = openSecret(deps, actor.userId, generator.sealedSecret)
        const step = matchingStep(secret, code, { nowMs: clock.now(), lastStep: generator.lastStep })
        if (step === undefined) throw errors.wrongCode()
        await queries.confirmGenerator(tx, actor.userId, step, now())
        await recordAudit(tx, auditOf(actor, 'account.second_factor_added', now()))
        await tell(tx, actor, 'on')
        await hooks.onMemberBack(tx, actor.userId, now())
        return newRecoveryCodes(tx, actor.userId)
      })
      await hooks.propagate(changes)
      return codes
    },

    async renewRecoveryCodes(actor) {
      requireProved(actor)
      return transaction(sql, async (tx) => {
        if (!(await queries.hasFactor(tx, actor.userId))) throw errors.notFound('code generator')
        await recordAudit(tx, auditOf(actor, 'account.recovery_codes_renewed', now()))
        return newRecoveryCodes(tx, actor.userId)
      })
    },

    async remove(actor) {
      requireProved(actor)
      const { changes } = await changeRoutes(sql, async (tx) => {
        if (!(await queries.hasFactor(tx, actor.userId))) throw errors.notFound('code generator')
        await queries.deleteFactors(tx, actor.userId)
        await endWithoutFactor(tx, hooks, actor.userId, now())
        await recordAudit(tx, auditOf(actor, 'account.second_factor_removed', now()))
        await tell(tx, actor, 'off')
      })
      await hooks.propagate(changes)
    },
  }
}

function createRecovery(
  { sql, clock, baseUrl, enqueueMail, hooks }: FactorsDependencies,
  throttle: { require(name: 'recoveryPerAccount', subject: string): Promise<void> },
): Pick<Factors, 'requestRecovery' | 'cancelRecovery' | 'stopRecovery' | 'endRecovery' | 'applyRecovery'> {
  const now = (): Date => new Date(clock.now())

  /** False when there was nothing to stop. The log and the mailbox hear of it, whoever did it. */
  const stop = (userId: string, by: RecoveryStop, actor?: Actor): Promise<boolean> =>
    transaction(sql, async (tx) => {
      const email = await queries.deleteRecovery(tx, userId)
      if (email === undefined) return false
      const person = actor ?? { userId, email, orgId: await findHomeOrganisation(tx, userId) }
      await recordAudit(tx, auditOf(person, 'account.recovery_stopped', now(), { by }))
      await enqueueMail(tx, {
        eventKey: `factor_recovery_stopped:${userId}:${clock.now()}`,
        to: email,
        template: 'factor_recovery_stopped',
        data: { by, link: `${baseUrl}/account/ways-in` },
      })
      return true
    })

  return {
    async requestRecovery({ userId, email, orgId }, by) {
      await throttle.require('recoveryPerAccount', userId)
      const token = randomSecret()
      const dueAt = new Date(clock.now() + RECOVERY_DELAY_MS)
      return transaction(sql, async (tx) => {
        const isNew = await queries.insertRecovery(tx, { userId, cancelHash: hashSecret(token), now: now(), dueAt })
        if (!isNew) return { dueAt: (await queries.findRecovery(tx, userId))?.dueAt ?? dueAt }
        await enqueueMail(tx, {
          eventKey: `factor_recovery:${userId}:${clock.now()}`,
          to: email,
          template: 'factor_recovery',
          data: { at: dueAt, by, link: `${baseUrl}${RECOVERY_PATH}?token=${token}` },
        })
        await recordAudit(tx, auditOf({ userId, email, orgId }, 'account.recovery_requested', now()))
        return { dueAt }
      })
    },

    async cancelRecovery(token) {
      const found = await queries.findRecoveryByHash(sql, hashSecret(token))
      if (!found || !(await stop(found.userId, 'mail'))) throw errors.invalidLink()
    },

    async stopRecovery(actor) {
      requireSession(actor)
      requireProved(actor)
      await stop(actor.userId, 'session', actor)
    },

    async endRecovery(userId, by) {
      if (await queries.findRecovery(sql, userId)) await stop(userId, by)
    },

    async applyRecovery(tx, person) {
      const recovery = await queries.findRecovery(tx, person.userId)
      if (!recovery || recovery.dueAt > now()) return false
      await queries.deleteFactors(tx, person.userId)
      await deletePasskeysOf(tx, person.userId)
      await endWithoutFactor(tx, hooks, person.userId, now())
      await recordAudit(tx, auditOf(person, 'account.second_factor_removed', now(), { by: 'recovery' }))
      await enqueueMail(tx, {
        eventKey: `factor_recovered:${person.userId}:${recovery.dueAt.toISOString()}`,
        to: person.email,
        template: 'second_factor_changed',
        data: { what: 'off', link: `${baseUrl}/account/ways-in` },
      })
      return true
    },
  }
}

function requireSession(actor: Pick<Actor, 'via'>): void {
  if (actor.via.kind !== 'session') throw errors.forbidden('Do this in the dashboard, not with a token.')
}

const sealingContext = (userId: string): string => `code-generator:${userId}`

function openSecret({ secrets }: Pick<FactorsDependencies, 'secrets'>, userId: string, sealed: string): Buffer {
  return secrets.open(sealed, sealingContext(userId))
}

/** Two groups of five: read out and typed without mistakes. */
function newRecoveryCode(): string {
  const text = base32(randomBytes(7)).slice(0, RECOVERY_CODE_CHARS).toLowerCase()
  return `${text.slice(0, 5)}-${text.slice(5)}`
}

/** However it was typed. */
function recoveryHash(code: string): string {
  return hashSecret(
    `recovery ${code
      .toLowerCase()
      .replaceAll(/[^a-z2-7]/g, '')
      .slice(0, 40)}`,
  )
}

function auditOf(
  actor: Person & Partial<Pick<Actor, 'via' | 'ip'>>,
  action:
    | 'account.second_factor_added'
    | 'account.second_factor_removed'
    | 'account.recovery_codes_renewed'
    | 'account.recovery_requested'
    | 'account.recovery_stopped',
  at: Date,
  detail: Record<string, unknown> = {},
) {
  return { at, orgId: actor.orgId, actor, action, subject: actor.userId, detail } as const
}
