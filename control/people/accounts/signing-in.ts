import { parseEmail } from '../../ground/mail/address.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { limitKeyOfIp } from '../../../shared/http/ip.ts'
import { verifyPassword } from '../../../shared/secrets/password.ts'
import { guessBits } from '../../../shared/secrets/proof-of-work.ts'
import {
  beginSession,
  clearedSessionCookie,
  endSession,
  endSessionById,
  endSessionsOf,
  listSessions,
  type NewSession,
} from '../access/sessions.ts'
import { deviceOf } from '../access/devices.ts'
import { isRemoved } from '../access/provider-queries.ts'
import { recordAudit } from '../audit/audit.ts'
import { noteDevice } from '../factors/devices.ts'
import type { Actor } from '../../ground/actor.ts'
import { MINUTE_MS } from '../../../shared/running/clock.ts'
import type { Sql } from '../../ground/database/sql.ts'
import { changeRoutes, type RoutingTransaction } from '../../ground/routing/changes.ts'
import { findHomeOrganisation } from '../organisations/personal.ts'
import type { Accounts, SignedIn, Circumstances } from './contract.ts'
import type { PartDependencies } from './dependencies.ts'
import { findNamesake, findUser, findUserByEmail, lockUser, type UserRow } from './queries.ts'
import { DUMMY_PASSWORD_HASH, passwordTag } from './rules.ts'

type SigningInDependencies = Pick<
  PartDependencies,
  'sql' | 'hooks' | 'throttle' | 'now' | 'proofOfWork' | 'secrets' | 'factors' | 'passkeys' | 'enqueueMail' | 'baseUrl'
>
type SigningIn = Pick<
  Accounts,
  | 'continueSignIn'
  | 'requestRecovery'
  | 'signInWithPasskey'
  | 'signIn'
  | 'signOut'
  | 'signOutEverywhere'
  | 'listSessions'
  | 'revokeSession'
>

/** No password of ours is longer; hashing megabytes would be work for nothing. */
const MAX_TRIED_PASSWORD_CHARS = 1000
/** Time to find the phone. */
const PENDING_MS = 10 * MINUTE_MS
const MAX_PENDING_CHARS = 300

interface Admission {
  /** Lets a person in who knows the password; where the account has a second factor, with a code. */
  admit(checked: UserRow, code: string | undefined, circumstances: Circumstances): Promise<SignedIn>
  /** Whose password was right a moment ago. */
  pendingUser(pending: string): Promise<UserRow>
}

function createAdmission(deps: SigningInDependencies): Admission {
  const { sql, hooks, now, secrets, factors } = deps

  /** The person knows the password; with a second factor the code is taken before anything begins. */
  async function admit(checked: UserRow, code: string | undefined, circumstances: Circumstances): Promise<SignedIn> {
    const recovered = await changeRoutes(sql, async (tx) => {
      const orgId = await findHomeOrganisation(tx, checked.id)
      return factors.applyRecovery(tx, { userId: checked.id, email: checked.email, orgId })
    })
    await hooks.propagate(recovered.changes)
    const isAsked = !recovered.value && (await factors.isEnrolled(sql, checked.id))
    if (isAsked && !code) throw errors.secondFactorRequired(pendingOf(checked))
    if (isAsked && code) await factors.takeCode(checked.id, code)
    const { value: signedIn, changes } = await changeRoutes(sql, async (tx) => {
      // Deleted, or given another password, while the hash was computed.
      const user = await lockUser(tx, checked.id)
      if (user?.passwordHash !== checked.passwordHash) throw errors.wrongCredentials()
      return enter(tx, { user, circumstances, at: now(), isProved: isAsked }, deps)
    })
    await hooks.propagate(changes)
    return signedIn
  }

  /** Stands for a right password while the code is typed; worthless once the password is another. */
  function pendingOf({ id, passwordHash }: UserRow): string {
    const text = `${id}.${now().getTime() + PENDING_MS}`
    return `${text}.${secrets.sign('pending-sign-in', `${text}.${passwordHash}`)}`
  }

  async function pendingUser(pending: string): Promise<UserRow> {
    const [id = '', until = '', signature = ''] = pending.slice(0, MAX_PENDING_CHARS).split('.')
    const user = await findUser(sql, id)
    const isGood = user && secrets.verify('pending-sign-in', `${id}.${until}.${user.passwordHash}`, signature)
    if (!isGood || Number(until) <= now().getTime())
      throw errors.wrongCredentials('That took too long. Enter your e-mail and password again.')
    return user
  }

  return { admit, pendingUser }
}

export function createSigningIn(deps: SigningInDependencies): SigningIn {
  const { sql, hooks, throttle, now, proofOfWork, secrets, factors, passkeys } = deps
  const { admit, pendingUser } = createAdmission(deps)

  /** Too many attempts do not lock the owner out: the next one costs the browser some work, each time anew. */
  async function requireProof(used: number, email: string, proof: string | undefined): Promise<void> {
    const bits = guessBits(used)
    if (bits === undefined) return
    const purpose = `sign-in ${email}`
    const id = proofOfWork.check(proof, purpose, now().getTime())
    if (id !== undefined && (await throttle.admit('signInPerProof', id))) return
    throw errors.proofRequired(proofOfWork.ask(purpose, bits, now().getTime()))
  }

  /**
   * The same work and the same words whether the e-mail or the password is wrong: count, look up, hash, compare.
   * What was counted is forgiven only by a success.
   */
  async function checkCredentials(
    { email, password, proof }: { email: string; password: string; proof: string | undefined },
    ip: string,
  ): Promise<UserRow> {
    const network = limitKeyOfIp(ip)
    const attempts = [
      ['signInPerNetwork', network],
      ['signInPerAccountAndNetwork', `${email} ${network}`],
      ['signInPerAccount', email],
    ] as const
    let used = 0
    for (const [name, subject] of attempts) used = Math.max(used, await throttle.use(name, subject))
    try {
      await requireProof(used, email, proof)
    } catch (error) {
      // Only guesses count: making the work harder for the owner costs doing it.
      for (const [name, subject] of attempts) await throttle.refund(name, subject)
      throw error
    }
    const user = await userMeant(email, password.slice(0, MAX_TRIED_PASSWORD_CHARS))
    if (!user) throw errors.wrongCredentials()
    await throttle.forget('signInPerAccountAndNetwork', `${email} ${network}`)
    await throttle.refund('signInPerNetwork', network)
    await throttle.refund('signInPerAccount', email)
    return user
  }

  /** The owner of the address, or a namesake: two passwords are always compared, whichever there are. */
  async function userMeant(email: string, password: string): Promise<UserRow | undefined> {
    const namesake = { typedEmail: email, passwordTag: passwordTag(secrets, email, password) }
    const candidates = [await findUserByEmail(sql, email), await findNamesake(sql, namesake)]
    const matches = await Promise.all(
      candidates.map((user) => verifyPassword(password, user?.passwordHash ?? DUMMY_PASSWORD_HASH)),
    )
    return candidates.find((user, index) => user !== undefined && matches[index])
  }

  return {
    async signIn(input, circumstances) {
      const { password, proof, code } = input
      const checked = await checkCredentials({ email: parseEmail(input.email), password, proof }, circumstances.ip)
      return admit(checked, code, circumstances)
    },

    async continueSignIn({ pending, code }, circumstances) {
      return admit(await pendingUser(pending), code, circumstances)
    },

    async signInWithPasskey(credential, circumstances) {
      const userId = await passkeys.userOf(credential)
      const { value: signedIn, changes } = await changeRoutes(sql, async (tx) => {
        const user = await lockUser(tx, userId)
        if (!user) throw errors.wrongCredentials('This passkey opens no account here.')
        return enter(tx, { user, circumstances, at: now(), isProved: true }, deps)
      })
      await hooks.propagate(changes)
      return signedIn
    },

    async requestRecovery(pending) {
      const user = await pendingUser(pending)
      const orgId = await findHomeOrganisation(sql, user.id)
      return factors.requestRecovery({ userId: user.id, email: user.email, orgId }, 'password')
    },

    async signOut(sessionSecret) {
      if (sessionSecret !== undefined) await endSession(sql, sessionSecret)
      return { setCookie: clearedSessionCookie() }
    },

    async signOutEverywhere(actor) {
      return { setCookie: clearedSessionCookie(), ended: await endSessionsOf(sql, actor.userId) }
    },

    async listSessions(actor) {
      const current = actor.via.kind === 'session' ? actor.via.sessionId : undefined
      const rows = await listSessions(sql, actor.userId, now())
      return rows.map((row) => ({ ...row, current: row.id === current }))
    },

    async revokeSession(actor, sessionId) {
      if (!(await endSessionById(sql, actor.userId, sessionId))) throw errors.notFound('session')
    },
  }
}

export interface Entering {
  readonly user: Pick<UserRow, 'id' | 'email' | 'shownEmail' | 'verifiedAt'>
  readonly circumstances: Circumstances
  readonly at: Date
  /** The second factor was shown just now. */
  readonly isProved: boolean
  /** Whom a provider vouches for, where that is how they come. */
  readonly provider?: NewSession['provider']
}

export interface EnteringDependencies extends Pick<PartDependencies, 'enqueueMail' | 'baseUrl'> {
  readonly hooks: Pick<PartDependencies['hooks'], 'onSignIn' | 'claim'>
}

/** Whoever gets into an account with a browser that it has not seen is told of in the mailbox. The first is the owner's. */
async function tellOfNewDevice(
  tx: Sql,
  { user, circumstances, at }: Pick<Entering, 'user' | 'circumstances' | 'at'>,
  { enqueueMail, baseUrl }: Pick<EnteringDependencies, 'enqueueMail' | 'baseUrl'>,
): Promise<void> {
  const device = deviceOf(circumstances.userAgent)
  const { isNew, isFirst } = await noteDevice(tx, { userId: user.id, device, now: at })
  if (!isNew || isFirst) return
  await enqueueMail(tx, {
    eventKey: `new_device:${user.id}:${device}:${at.toISOString()}`,
    to: user.email,
    template: 'new_device',
    data: { device, ip: circumstances.ip, at, link: `${baseUrl}/account/ways-in` },
  })
}

/**
 * A person who has proved who they are gets a session, their clocks reset and this browser's drops. Who was removed at the
 * operator's provider comes in by it alone, which vouches for them again.
 */
export async function enter(
  tx: RoutingTransaction,
  { user, circumstances, at, isProved, provider }: Entering,
  { hooks, enqueueMail, baseUrl }: EnteringDependencies,
): Promise<SignedIn> {
  if (await isRemoved(tx, user.id))
    throw errors.providerRefused('It no longer vouches for you. Sign in with it again, or ask those who run it.')
  const orgId = await findHomeOrganisation(tx, user.id)
  const person = { userId: user.id, orgId, provedAt: isProved ? at : null, provider }
  const { setCookie } = await beginSession(tx, person, circumstances, at)
  await tellOfNewDevice(tx, { user, circumstances, at }, { enqueueMail, baseUrl })
  await hooks.onSignIn(tx, user.id, at)
  const claimed =
    circumstances.anonymousId === undefined
      ? 0
      : await hooks.claim(tx, { anonymousId: circumstances.anonymousId, orgId, userId: user.id, isNewAccount: false })
  await recordAudit(tx, {
    at,
    orgId,
    actor: { userId: user.id, email: user.shownEmail, ip: circumstances.ip },
    action: 'account.signed_in',
    subject: user.id,
  })
  return { userId: user.id, orgId, email: user.shownEmail, emailVerified: user.verifiedAt !== null, setCookie, claimed }
}

/** What cannot be undone asks for the password again: an open browser is not enough. */
export async function requirePassword(
  sql: Sql,
  throttle: PartDependencies['throttle'],
  actor: Pick<Actor, 'userId'>,
  password: string,
): Promise<void> {
  await throttle.require('passwordCheckPerAccount', actor.userId)
  const user = await findUser(sql, actor.userId)
  if (!user || !(await verifyPassword(password.slice(0, MAX_TRIED_PASSWORD_CHARS), user.passwordHash))) {
    throw errors.wrongCredentials('This is not your password.')
  }
  await throttle.forget('passwordCheckPerAccount', actor.userId)
}
