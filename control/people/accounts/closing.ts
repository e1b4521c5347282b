/** How accounts end: by their person, because they were never verified, and out of the logs afterwards. */
import type { Clock } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { leadsOf } from '../../ground/terms/warnings.ts'
import { requireProved } from '../../ground/actor.ts'
import { transaction, type Pool } from '../../ground/database/sql.ts'
import {
  allChanges,
  changeRoutes,
  type Changed,
  type RouteChanges,
  type RoutingTransaction,
} from '../../ground/routing/changes.ts'
import { eraseMailsTo } from '../../ground/mail/mail.ts'
import { clearedSessionCookie, endSessionsOf } from '../access/sessions.ts'
import { revokeTokensOf } from '../access/tokens.ts'
import { emailsIn, eraseFromAudit, recordAudit, type AuditActor } from '../audit/audit.ts'
import {
  closeOrganisation,
  eraseInvitationsTo,
  leaveAllOrganisations,
  lockOwnedOrganisations,
} from '../organisations/personal.ts'
import { deleteIdentitiesOf } from '../access/provider-queries.ts'
import { eraseSignUpLinksTo } from '../newcomers/newcomers.ts'
import type { Accounts } from './contract.ts'
import type { AbandonmentSettings, PartDependencies } from './dependencies.ts'
import { requirePassword } from './signing-in.ts'
import {
  emailsInUse,
  eraseUser,
  insertAccountNotice,
  listAccountNotices,
  listOwnedSlugs,
  lockErasable,
  lockUnverified,
  lockUser,
  markErased,
  unverifiedBefore,
  type AccountNotice,
} from './queries.ts'

type ClosingDependencies = Pick<PartDependencies, 'sql' | 'hooks' | 'throttle' | 'now' | 'enqueueMail' | 'factors'>

/** Ends an account inside the caller's transaction: its organisations, drops, sessions and tokens go, and a mail says so. */
export type CloseAccount = (
  tx: RoutingTransaction,
  user: { readonly id: string; readonly email: string },
  by?: AuditActor,
) => Promise<void>

export function createCloseAccount({
  hooks,
  now,
  enqueueMail,
  factors,
}: Pick<ClosingDependencies, 'hooks' | 'now' | 'enqueueMail' | 'factors'>): CloseAccount {
  return async (tx, user, by) => {
    const owned = await lockOwnedOrganisations(tx, user.id)
    const shared = owned.filter((organisation) => organisation.members > 1).map((organisation) => organisation.name)
    if (shared.length > 0) {
      throw errors.conflict(
        'organisation_has_members',
        `Others belong to ${shared.join(', ')}. Transfer or delete it first.`,
      )
    }
    for (const { id } of owned) {
      const actor: AuditActor = by ?? { system: 'lifecycle' }
      await recordAudit(tx, { at: now(), orgId: id, actor, action: 'account.deleted', subject: user.id })
      await hooks.onOrganisationDeleted(tx, id, now())
      await closeOrganisation(tx, id, now())
    }
    await hooks.onMemberLeft(tx, user.id, undefined, now())
    await hooks.onAccountClosed(tx, user.id)
    await leaveAllOrganisations(tx, user.id)
    await endSessionsOf(tx, user.id)
    await revokeTokensOf(tx, user.id, now())
    await factors.forget(tx, user.id)
    await deleteIdentitiesOf(tx, user.id)
    await eraseUser(tx, user.id, now())
    await enqueueMail(tx, {
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
}: ClosingDependencies & { closeAccount: CloseAccount }): Pick<Accounts, 'deleteAccount' | 'deleteVouchedAccount'> {
  async function close(userId: string, byWhom: (email: string) => AuditActor): Promise<{ setCookie: string }> {
    const { changes } = await changeRoutes(sql, async (tx) => {
      const user = await lockUser(tx, userId)
      if (!user) throw errors.unauthorized()
      await closeAccount(tx, user, byWhom(user.email))
    })
    await hooks.propagate(changes)
    return { setCookie: clearedSessionCookie() }
  }
  return {
    async deleteAccount(actor, { password }) {
      requireProved(actor)
      await requirePassword(sql, throttle, actor, password)
      return close(actor.userId, () => actor)
    },
    deleteVouchedAccount: (userId, { ip }) => close(userId, (email) => ({ userId, email, ip })),
  }
}

export type AbandonmentStep =
  | { readonly kind: 'wait' }
  /** `actsAt`: the date that the mail names. */
  | { readonly kind: 'tell'; readonly notice: string; readonly actsAt: Date }
  | { readonly kind: 'close' }

/** What is next for an account. A mail that is late moves the end: its reader has the whole lead. */
export function nextStep(
  createdAt: Date,
  told: readonly AccountNotice[],
  now: number,
  { unverifiedLifetimeMs, unverifiedWarningsMs }: AbandonmentSettings,
): AbandonmentStep {
  const leads = leadsOf(unverifiedWarningsMs, unverifiedLifetimeMs)
  const end = told.reduce(
    (latest, { actsAt }) => Math.max(latest, actsAt.getTime()),
    createdAt.getTime() + unverifiedLifetimeMs,
  )
  const lead = leads[told.length]
  if (lead === undefined) return now >= end ? { kind: 'close' } : { kind: 'wait' }
  if (now < end - lead) return { kind: 'wait' }
  const notice = `unverified_${told.length + 1}`
  return { kind: 'tell', notice, actsAt: new Date(Math.max(end, now + lead)) }
}

type AbandonmentDependencies = Pick<
  PartDependencies,
  'sql' | 'links' | 'enqueueMail' | 'now' | 'dropUrl' | 'settings'
> & {
  readonly closeAccount: CloseAccount
}

/**
 * Accounts that were never verified. Their drops have no clock, so they end with the account: some time after the
 * sign-up, and only after two mails whose dates have passed. Each mail holds a link that verifies until then.
 */
export function createAbandonment({
  sql,
  links,
  enqueueMail,
  now,
  dropUrl,
  settings,
  closeAccount,
}: AbandonmentDependencies): Pick<Accounts, 'closeUnverified'> {
  function step(userId: string): Promise<Changed<boolean>> {
    return changeRoutes(sql, async (tx) => {
      const user = await lockUnverified(tx, userId)
      if (!user) return false
      const next = nextStep(user.createdAt, await listAccountNotices(tx, userId), now().getTime(), settings)
      if (next.kind === 'tell') {
        await insertAccountNotice(tx, userId, { kind: next.notice, actsAt: next.actsAt, sentAt: now() })
        await enqueueMail(tx, {
          eventKey: `${next.notice}:${userId}`,
          to: user.email,
          template: 'unverified',
          data: {
            email: user.email,
            at: next.actsAt,
            drops: (await listOwnedSlugs(tx, userId)).map((slug) => ({ name: slug, url: dropUrl(slug) })),
            link: await links.make(tx, 'verify', { userId, email: user.email }, next.actsAt),
          },
        })
      }
      if (next.kind === 'close') await closeAccount(tx, user)
      return next.kind === 'close'
    })
  }

  return {
    async closeUnverified() {
      const firstLead = leadsOf(settings.unverifiedWarningsMs, settings.unverifiedLifetimeMs)[0] ?? 0
      const before = new Date(now().getTime() - settings.unverifiedLifetimeMs + firstLead)
      const closed: RouteChanges[] = []
      for (const id of await unverifiedBefore(sql, before)) {
        const { value: isClosed, changes } = await step(id)
        if (isClosed) closed.push(changes)
      }
      return { value: closed.length, changes: allChanges(closed) }
    },
  }
}

export interface Erasure {
  /** Erases everything that is due; resolves to how many accounts that were. */
  run(): Promise<number>
}

/**
 * What names a person outlives the account for a while, in the audit logs of organisations and in the records of mails:
 * misuse can then still be traced. After the period that the page for deleting an account names, it goes too.
 */
export function createErasure({ sql, clock, keptMs }: { sql: Pool; clock: Clock; keptMs: number }): Erasure {
  const eraseNext = (): Promise<boolean> =>
    transaction(sql, async (tx) => {
      const userId = await lockErasable(tx, new Date(clock.now() - keptMs))
      if (userId === undefined) return false
      const known = await emailsIn(tx, userId)
      // A person may have signed up again with the same address: that account's records are not this one's.
      const inUse = await emailsInUse(tx, known)
      const addresses = known.filter((address) => !inUse.includes(address))
      await eraseFromAudit(tx, userId, addresses)
      await eraseMailsTo(tx, addresses)
      await eraseInvitationsTo(tx, addresses)
      await eraseSignUpLinksTo(tx, addresses)
      await markErased(tx, userId, new Date(clock.now()))
      return true
    })

  return {
    async run() {
      let count = 0
      while (await eraseNext()) count++
      return count
    },
  }
}
