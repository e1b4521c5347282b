import { errors } from '../../../shared/errors.ts'
import { recordAudit } from '../audit/audit.ts'
import { transaction, type Sql } from '../../ground/database/sql.ts'
import { closeOrganisation, leaveAllOrganisations, lockOwnedOrganisations } from '../organisations/personal.ts'
import type { Actor } from '../../ground/actor.ts'
import type { Accounts } from './contract.ts'
import type { AccountDeps } from './dependencies.ts'
import { requirePassword } from './passwords.ts'
import { deleteSessions, eraseUser, lockUser } from './queries.ts'
import { clearedSessionCookie } from '../access/session-cookie.ts'

type Deps = Pick<AccountDeps, 'sql' | 'hooks' | 'throttle' | 'now' | 'enqueueMail'>

/** Ends an account inside the caller's transaction: its organisations, drops, sessions and tokens go, and a mail says so. */
export type CloseAccount = (
  locked: Sql,
  user: { readonly id: string; readonly email: string },
  by?: Actor,
) => Promise<void>

export function createCloseAccount({
  hooks,
  now,
  enqueueMail,
}: Pick<Deps, 'hooks' | 'now' | 'enqueueMail'>): CloseAccount {
  return async (locked, user, by) => {
    const owned = await lockOwnedOrganisations(locked, user.id)
    const shared = owned.filter((organisation) => organisation.members > 1).map((organisation) => organisation.name)
    if (shared.length > 0) {
      throw errors.conflict(
        'organisation_has_members',
        `Others belong to ${shared.join(', ')}. Transfer or delete it first.`,
      )
    }
    for (const { id } of owned) {
      const actor = by ?? { system: 'lifecycle' }
      await recordAudit(locked, { orgId: id, actor, action: 'account.deleted', subject: user.id })
      await hooks.onOrganisationDeleted(locked, id, now())
      await closeOrganisation(locked, id, now())
    }
    await leaveAllOrganisations(locked, user.id)
    await deleteSessions(locked, user.id)
    await eraseUser(locked, user.id, now())
    await enqueueMail(locked, {
      eventKey: `account_deleted:${user.id}`,
      to: user.email,
      template: 'account_deleted',
      data: { email: user.email },
    })
  }
}

export function createClosing({
  sql,
  hooks,
  throttle,
  closeAccount,
}: Deps & { closeAccount: CloseAccount }): Pick<Accounts, 'deleteAccount'> {
  return {
    async deleteAccount(actor, { password }) {
      await requirePassword(sql, throttle, actor, password)
      await transaction(sql, async (locked) => {
        const user = await lockUser(locked, actor.userId)
        if (!user) throw errors.unauthorized()
        await closeAccount(locked, user, actor)
      })
      await hooks.propagate()
      return { setCookie: clearedSessionCookie() }
    },
  }
}
