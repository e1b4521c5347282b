import { errors } from '../../../shared/errors.ts'
import { hashSecret } from '../../../shared/secrets.ts'
import { recordAudit } from '../audit/audit.ts'
import { transaction, type Sql } from '../../ground/database/sql.ts'
import { findHomeOrganisation } from '../organisations/personal.ts'
import type { AccountHooks, Accounts } from './contract.ts'
import type { AccountDeps } from './dependencies.ts'
import { findLink, findUserByEmail, lockUser, setVerified, useLink, type UserRow } from './queries.ts'

type Deps = Pick<AccountDeps, 'sql' | 'hooks' | 'throttle' | 'links' | 'now'>

export function createVerification({
  sql,
  hooks,
  throttle,
  links,
  now,
}: Deps): Pick<Accounts, 'peekVerification' | 'verifyEmail' | 'resendVerification'> {
  return {
    async peekVerification(token) {
      const link = await findLink(sql, 'verify', hashSecret(token))
      const user = link && (await findUserByEmail(sql, link.email))
      if (!user || user.id !== link.userId) return undefined
      const isVerified = user.verifiedAt !== null
      return isVerified || (await links.isValid(sql, 'verify', token)) ? { email: user.email, isVerified } : undefined
    },

    async verifyEmail(token) {
      const email = await transaction(sql, async (locked) => {
        const tokenHash = hashSecret(token)
        const link = await findLink(locked, 'verify', tokenHash)
        const user = link && (await lockUser(locked, link.userId))
        // The address may have changed since the mail was sent; the link then proves the wrong one.
        if (!user || user.email !== link.email) throw errors.invalidLink()
        if (user.verifiedAt === null) {
          if (!(await useLink(locked, 'verify', tokenHash, now()))) throw errors.invalidLink()
          await verify(locked, user, now(), hooks)
        }
        return user.email
      })
      await hooks.propagate()
      return { email }
    },

    async resendVerification(actor) {
      if (actor.emailVerified) return
      await throttle.require('verificationMailPerAccount', actor.userId)
      await transaction(sql, (locked) => links.send(locked, 'verify', actor))
    },
  }
}

/** The mailbox is proved: the owner's drops go live. */
export async function verify(
  locked: Sql,
  user: Pick<UserRow, 'id' | 'email'>,
  at: Date,
  hooks: Pick<AccountHooks, 'onVerified'>,
): Promise<void> {
  await setVerified(locked, user.id, at)
  await hooks.onVerified(locked, user.id)
  const orgId = await findHomeOrganisation(locked, user.id)
  await recordAudit(locked, {
    orgId,
    actor: { userId: user.id, email: user.email },
    action: 'account.email_verified',
    subject: user.id,
  })
}
