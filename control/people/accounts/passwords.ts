import { parseEmail } from '../../ground/mail/address.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { limitKeyOfIp } from '../../../shared/http/ip.ts'
import { hashPassword } from '../../../shared/secrets/password.ts'
import { hashSecret, randomSecret } from '../../../shared/secrets/secrets.ts'
import { clearRemovals, lockIdentitiesOf } from '../access/provider-queries.ts'
import { beginSession, endSessionsOf } from '../access/sessions.ts'
import { revokeTokensOf } from '../access/tokens.ts'
import { recordAudit } from '../audit/audit.ts'
import { transaction } from '../../ground/database/sql.ts'
import { changeRoutes, type RoutingTransaction } from '../../ground/routing/changes.ts'
import { ACCOUNT_PATHS } from '../../ground/mail/links.ts'
import { findHomeOrganisation } from '../organisations/personal.ts'
import type { Accounts, Circumstances, Readmitted, SignedIn } from './contract.ts'
import type { PartDependencies } from './dependencies.ts'
import { findLink, findUserByEmail, lockUser, retireLinks, setPasswordHash, useLink, type UserRow } from './queries.ts'
import { passwordTag, requireGoodPassword } from './rules.ts'
import { enter, requirePassword } from './signing-in.ts'
import { verify } from './email.ts'

type PasswordsDependencies = Pick<
  PartDependencies,
  'sql' | 'hooks' | 'throttle' | 'links' | 'now' | 'log' | 'enqueueMail' | 'baseUrl' | 'secrets' | 'factors'
>
type Passwords = Pick<Accounts, 'requestReset' | 'isLinkValid' | 'asksForCode' | 'resetPassword' | 'changePassword'>

export function createPasswords(deps: PasswordsDependencies): Passwords {
  const { sql, hooks, throttle, links, now, log, secrets, factors } = deps

  async function sendReset(email: string): Promise<void> {
    const user = await findUserByEmail(sql, email)
    if (!user || !(await throttle.admit('resetMailPerAccount', user.id))) return
    await transaction(sql, (tx) => links.send(tx, 'reset', { userId: user.id, email: user.email }))
  }

  return {
    async requestReset(text, circumstances) {
      const email = parseEmail(text)
      await throttle.require('resetPerNetwork', limitKeyOfIp(circumstances.ip))
      // Behind the answer, so that it takes no longer when there is an account.
      sendReset(email).catch((error: unknown) => log.error({ err: error }, 'a reset mail could not be queued'))
    },

    isLinkValid: (kind, token) => links.isValid(sql, kind, token),

    async asksForCode(kind, token) {
      const link = await findLink(sql, kind, hashSecret(token))
      return link !== undefined && factors.isEnrolled(sql, link.userId)
    },

    resetPassword: (wanted, circumstances) => resetPassword(deps, wanted, circumstances),

    async changePassword(actor, { currentPassword, newPassword, endTokensAndApps }, circumstances) {
      await requirePassword(sql, throttle, actor, currentPassword)
      requireGoodPassword(newPassword, actor.email)
      const password = await hashedAndTagged(secrets, actor.email, newPassword)
      const { value: signedIn, changes } = await changeRoutes(sql, async (tx) => {
        const user = await lockUser(tx, actor.userId)
        if (!user) throw errors.unauthorized()
        await replacePassword(tx, deps, user, { password, endTokensAndApps })
        const { setCookie } = await beginSession(tx, actor, circumstances, now())
        await recordAudit(tx, {
          at: now(),
          orgId: actor.orgId,
          actor,
          action: 'account.password_changed',
          subject: user.id,
        })
        return {
          userId: user.id,
          orgId: actor.orgId,
          email: user.shownEmail,
          emailVerified: user.verifiedAt !== null,
          setCookie,
          claimed: 0,
        }
      })
      await hooks.propagate(changes)
      return signedIn
    },
  }
}

async function resetPassword(
  deps: PasswordsDependencies,
  { token, password, code }: Parameters<Accounts['resetPassword']>[0],
  circumstances: Circumstances,
): Promise<SignedIn> {
  const { sql, hooks, links, now, enqueueMail, baseUrl, secrets, factors } = deps
  const tokenHash = hashSecret(token)
  const known = await findLink(sql, 'reset', tokenHash)
  if (!known) throw errors.invalidLink()
  requireGoodPassword(password, known.email)
  // A mailbox is not a second factor: whoever reads the mails has to show it too. A wrong code leaves the link as it is.
  const isAsked = (await links.isValid(sql, 'reset', token)) && (await factors.isEnrolled(sql, known.userId))
  if (isAsked && !code) throw errors.wrongCode()
  if (isAsked && code) await factors.takeCode(known.userId, code)
  const replaced = await hashedAndTagged(secrets, known.email, password)
  const { value: signedIn, changes } = await changeRoutes(sql, async (tx) => {
    const link = await useLink(tx, 'reset', tokenHash, now())
    const user = link && (await lockUser(tx, link.userId))
    if (!user || user.email !== link.email) throw errors.invalidLink()
    await replacePassword(tx, deps, user, { password: replaced, endTokensAndApps: true })
    await factors.endPasskeys(tx, user.id)
    if (user.verifiedAt === null) await verify(tx, user, now(), hooks)
    const entering = { user: { ...user, verifiedAt: user.verifiedAt ?? now() }, circumstances, at: now() }
    const entered = await enter(tx, { ...entering, isProved: isAsked }, { hooks, enqueueMail, baseUrl })
    const actor = { userId: user.id, email: user.email, ip: circumstances.ip }
    await recordAudit(tx, {
      at: now(),
      orgId: entered.orgId,
      actor,
      action: 'account.password_reset',
      subject: user.id,
    })
    return entered
  })
  await hooks.propagate(changes)
  return signedIn
}

interface HashedPassword {
  readonly hash: string
  readonly tag: string
}

export async function hashedAndTagged(
  secrets: PasswordsDependencies['secrets'],
  email: string,
  password: string,
): Promise<HashedPassword> {
  return { hash: await hashPassword(password), tag: passwordTag(secrets, email, password) }
}

/** Sets the password and ends what was begun with the old one, at the edges too. */
async function replacePassword(
  tx: RoutingTransaction,
  { hooks, now, enqueueMail, baseUrl }: Pick<PasswordsDependencies, 'hooks' | 'now' | 'enqueueMail' | 'baseUrl'>,
  user: UserRow,
  { password, endTokensAndApps }: { password: HashedPassword; endTokensAndApps: boolean },
): Promise<void> {
  await setPasswordHash(tx, user.id, password)
  await hooks.onMemberLeft(tx, user.id, undefined, now())
  await endSessionsOf(tx, user.id)
  if (endTokensAndApps) {
    await revokeTokensOf(tx, user.id, now())
    await hooks.endConnectedApps(tx, user.id, now())
  }
  await retireLinks(tx, user.id, ['reset', 'email_change'], now())
  await enqueueMail(tx, {
    eventKey: `password_changed:${randomSecret(12)}`,
    to: user.email,
    template: 'password_changed',
    data: { resetLink: baseUrl + ACCOUNT_PATHS.reset, tokensAndAppsEnded: endTokensAndApps },
  })
}

type EndingDependencies = Pick<
  PartDependencies,
  'sql' | 'hooks' | 'links' | 'now' | 'secrets' | 'factors' | 'passwordSignIn'
>

/** Every way in but the second factor's generator, which lets no one in by itself. */
async function endWaysIn(
  tx: RoutingTransaction,
  userId: string,
  password: HashedPassword,
  { hooks, factors, now }: Pick<EndingDependencies, 'hooks' | 'factors' | 'now'>,
): Promise<{ sessions: number; tokens: number }> {
  await setPasswordHash(tx, userId, password)
  await hooks.onMemberLeft(tx, userId, undefined, now())
  const sessions = await endSessionsOf(tx, userId)
  const tokens = await revokeTokensOf(tx, userId, now())
  await hooks.endConnectedApps(tx, userId, now())
  await factors.endPasskeys(tx, userId)
  await retireLinks(tx, userId, ['reset', 'email_change'], now())
  return { sessions, tokens }
}

/**
 * The account passes to a different person, for whom its address now stands: nothing that the former one holds opens it,
 * or a drop that they opened as a member; with another password the new one comes in anew.
 */
export async function endFormerPerson(
  tx: RoutingTransaction,
  { user, password, ip }: { user: Pick<UserRow, 'id' | 'email'>; password: HashedPassword; ip: string },
  deps: Pick<EndingDependencies, 'hooks' | 'factors' | 'now'>,
): Promise<void> {
  const { factors, now } = deps
  const { sessions, tokens } = await endWaysIn(tx, user.id, password, deps)
  await factors.forget(tx, user.id)
  await recordAudit(tx, {
    at: now(),
    orgId: await findHomeOrganisation(tx, user.id),
    actor: { userId: user.id, email: user.email, ip },
    action: 'account.access_ended',
    subject: user.id,
    detail: { sessions, tokens, by: 'successor' },
  })
}

/** For the operator: whoever has got into an account is put out, the owner comes back by the mailbox or the provider. */
export function createAccessEnd({
  sql,
  hooks,
  links,
  now,
  secrets,
  factors,
  passwordSignIn,
}: EndingDependencies): Pick<Accounts, 'endAccess'> {
  return {
    async endAccess(text) {
      const email = parseEmail(text)
      const known = await findUserByEmail(sql, email)
      if (!known) return undefined
      // No one has it: the mailbox is the way back.
      const nothing = await hashedAndTagged(secrets, email, randomSecret())
      const { value: ended, changes } = await changeRoutes(sql, async (tx) => {
        const user = await lockUser(tx, known.id)
        if (!user) return undefined
        const { sessions, tokens } = await endWaysIn(tx, user.id, nothing, { hooks, factors, now })
        if (passwordSignIn) await links.send(tx, 'reset', { userId: user.id, email: user.email })
        await recordAudit(tx, {
          at: now(),
          orgId: await findHomeOrganisation(tx, user.id),
          actor: { system: 'operator' },
          action: 'account.access_ended',
          subject: user.id,
          detail: { sessions, tokens },
        })
        return { userId: user.id, sessions, tokens }
      })
      await hooks.propagate(changes)
      return ended
    },
  }
}

/** For the operator: a person whom the sign-in provider has put out comes in again, on an instance that gave it up. */
export function createReadmission({
  sql,
  hooks,
  now,
}: Pick<EndingDependencies, 'sql' | 'hooks' | 'now'>): Pick<Accounts, 'readmit'> {
  async function readmit(tx: RoutingTransaction, email: string): Promise<Readmitted> {
    const known = await findUserByEmail(tx, parseEmail(email))
    const user = known && (await lockUser(tx, known.id))
    if (!user) return { kind: 'unknown' }
    await lockIdentitiesOf(tx, user.id)
    if (!(await clearRemovals(tx, user.id))) return { kind: 'not_out' }
    await hooks.onMemberBack(tx, user.id, now())
    await recordAudit(tx, {
      at: now(),
      orgId: await findHomeOrganisation(tx, user.id),
      actor: { system: 'operator' },
      action: 'account.readmitted',
      subject: user.id,
    })
    return { kind: 'readmitted', userId: user.id }
  }
  return {
    async readmit(email) {
      const { value: outcome, changes } = await changeRoutes(sql, (tx) => readmit(tx, email))
      await hooks.propagate(changes)
      return outcome
    },
  }
}
