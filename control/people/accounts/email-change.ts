import { errors } from '../../../shared/errors.ts'
import { hashSecret } from '../../../shared/secrets.ts'
import { recordAudit } from '../audit/audit.ts'
import { isUniqueViolation, transaction } from '../../ground/database/sql.ts'
import { findHomeOrganisation } from '../organisations/personal.ts'
import type { Accounts } from './contract.ts'
import type { AccountDeps } from './dependencies.ts'
import { requirePassword } from './passwords.ts'
import { findUserByEmail, lockUser, retireLinks, setEmail, useLink } from './queries.ts'
import { parseEmail } from './rules.ts'

type Deps = Pick<AccountDeps, 'sql' | 'hooks' | 'throttle' | 'links' | 'now' | 'enqueueMail'>

export function createEmailChange({
  sql,
  hooks,
  throttle,
  links,
  now,
  enqueueMail,
}: Deps): Pick<Accounts, 'requestEmailChange' | 'confirmEmailChange'> {
  return {
    async requestEmailChange(actor, { newEmail, password }) {
      const email = parseEmail(newEmail)
      await requirePassword(sql, throttle, actor, password)
      await throttle.require('emailChangePerAccount', actor.userId)
      // An address that somebody uses already gets no mail, and the answer does not tell.
      if (await findUserByEmail(sql, email)) return
      await transaction(sql, (locked) => links.send(locked, 'email_change', { userId: actor.userId, email }))
    },

    async confirmEmailChange(token) {
      const email = await transaction(sql, async (locked) => {
        const tokenHash = hashSecret(token)
        const link = await useLink(locked, 'email_change', tokenHash, now())
        const user = link && (await lockUser(locked, link.userId))
        if (!user) throw errors.invalidLink()
        await setEmail(locked, user.id, link.email, now())
        // Links that went to the old mailbox open nothing any more.
        await retireLinks(locked, user.id, ['verify', 'reset', 'email_change'], now())
        await enqueueMail(locked, {
          eventKey: `email_changed:${tokenHash}`,
          to: user.email,
          template: 'email_changed',
          data: { newEmail: link.email },
        })
        if (user.verifiedAt === null) await hooks.onVerified(locked, user.id)
        const orgId = await findHomeOrganisation(locked, user.id)
        await recordAudit(locked, {
          orgId,
          actor: { userId: user.id, email: link.email },
          action: 'account.email_changed',
          subject: user.id,
          detail: { from: user.email },
        })
        return link.email
      }).catch((error: unknown) => {
        // Somebody signed up with it since the link was sent.
        if (isUniqueViolation(error, 'users_email')) throw errors.invalidLink()
        throw error
      })
      await hooks.propagate()
      return { email }
    },
  }
}
