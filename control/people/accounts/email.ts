/** Whose mailbox it is: proved by a link, or changed by one. */
import { parseEmail } from '../../ground/mail/address.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { hashSecret } from '../../../shared/secrets/secrets.ts'
import { isUniqueViolation, transaction } from '../../ground/database/sql.ts'
import { changeRoutes, type RoutingTransaction } from '../../ground/routing/changes.ts'
import { recordAudit } from '../audit/audit.ts'
import { closedInWords, mayChangeTo } from '../newcomers/rules.ts'
import { findHomeOrganisation } from '../organisations/personal.ts'
import type { AccountHooks, Accounts } from './contract.ts'
import type { PartDependencies } from './dependencies.ts'
import { requirePassword } from './signing-in.ts'
import {
  findLink,
  findUserByEmail,
  isNamesake,
  lockUser,
  retireLinks,
  setEmail,
  setVerified,
  useLink,
  type UserRow,
} from './queries.ts'

type VerificationDependencies = Pick<PartDependencies, 'sql' | 'hooks' | 'throttle' | 'links' | 'now'>

export function createVerification(
  deps: VerificationDependencies,
): Pick<Accounts, 'peekVerification' | 'verifyEmail' | 'resendVerification'> {
  const { sql, hooks, throttle, links, now } = deps
  return {
    async peekVerification(token) {
      const link = await findLink(sql, 'verify', hashSecret(token))
      const user = link && (await findUserByEmail(sql, link.email))
      if (!user || user.id !== link.userId) return undefined
      const isVerified = user.verifiedAt !== null
      return isVerified || (await links.isValid(sql, 'verify', token)) ? { email: user.email, isVerified } : undefined
    },

    async verifyEmail(token) {
      const { value: email, changes } = await changeRoutes(sql, async (tx) => {
        const tokenHash = hashSecret(token)
        const link = await findLink(tx, 'verify', tokenHash)
        const user = link && (await lockUser(tx, link.userId))
        // The address may have changed since the mail was sent; the link then proves the wrong one.
        if (!user || user.email !== link.email) throw errors.invalidLink()
        if (user.verifiedAt === null) {
          if (!(await useLink(tx, 'verify', tokenHash, now()))) throw errors.invalidLink()
          await verify(tx, user, now(), hooks)
        }
        return user.email
      })
      await hooks.propagate(changes)
      return { email }
    },

    async resendVerification(actor) {
      if (actor.emailVerified) return
      await throttle.require('verificationMailPerAccount', actor.userId)
      const mayTellOwner = await throttle.admit('signUpAgainMailPerAddress', actor.email)
      await transaction(sql, async (tx) => {
        if (!(await isNamesake(tx, actor.userId))) await links.send(tx, 'verify', actor)
        else if (mayTellOwner) await links.tellOwner(tx, actor.email)
      })
    },
  }
}

/** The mailbox is proved: the owner's drops go live. */
export async function verify(
  tx: RoutingTransaction,
  user: Pick<UserRow, 'id' | 'email'>,
  at: Date,
  hooks: Pick<AccountHooks, 'onVerified'>,
): Promise<void> {
  await setVerified(tx, user.id, at)
  await hooks.onVerified(tx, user.id)
  const orgId = await findHomeOrganisation(tx, user.id)
  await recordAudit(tx, {
    at,
    orgId,
    actor: { userId: user.id, email: user.email },
    action: 'account.email_verified',
    subject: user.id,
  })
}

type EmailChangeDependencies = Pick<
  PartDependencies,
  'sql' | 'hooks' | 'throttle' | 'links' | 'now' | 'enqueueMail' | 'newcomers'
>

export function createEmailChange({
  sql,
  hooks,
  throttle,
  links,
  now,
  enqueueMail,
  newcomers,
}: EmailChangeDependencies): Pick<Accounts, 'requestEmailChange' | 'confirmEmailChange'> {
  return {
    async requestEmailChange(actor, { newEmail, password }) {
      const email = parseEmail(newEmail)
      if (!mayChangeTo(newcomers.policy, email)) throw errors.signUpClosed(closedInWords(newcomers.policy))
      await requirePassword(sql, throttle, actor, password)
      await throttle.require('emailChangePerAccount', actor.userId)
      // An address that is in use already gets no mail, and the answer does not tell.
      if (await findUserByEmail(sql, email)) return
      await transaction(sql, (tx) => links.send(tx, 'email_change', { userId: actor.userId, email }))
    },

    async confirmEmailChange(token) {
      const { value: email, changes } = await changeRoutes(sql, async (tx) => {
        const tokenHash = hashSecret(token)
        const link = await useLink(tx, 'email_change', tokenHash, now())
        const user = link && (await lockUser(tx, link.userId))
        if (!user) throw errors.invalidLink()
        await setEmail(tx, user.id, link.email, now())
        // Links that went to the old mailbox open nothing any more.
        await retireLinks(tx, user.id, ['verify', 'reset', 'email_change'], now())
        await enqueueMail(tx, {
          eventKey: `email_changed:${tokenHash}`,
          to: user.email,
          template: 'email_changed',
          data: { newEmail: link.email },
        })
        if (user.verifiedAt === null) await hooks.onVerified(tx, user.id)
        const orgId = await findHomeOrganisation(tx, user.id)
        await recordAudit(tx, {
          at: now(),
          orgId,
          actor: { userId: user.id, email: link.email },
          action: 'account.email_changed',
          subject: user.id,
          detail: { from: user.shownEmail },
        })
        return link.email
      }).catch((error: unknown) => {
        // It was signed up with since the link was sent.
        if (isUniqueViolation(error, 'users_email')) throw errors.invalidLink()
        throw error
      })
      await hooks.propagate(changes)
      return { email }
    },
  }
}
