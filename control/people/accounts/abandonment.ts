/**
 * Accounts that were never verified. Their drops have no clock, so they end with the account: some time after the
 * sign-up, and only after two mails whose dates have passed. Each mail holds a link that verifies until then.
 */
import { leadsOf } from '../../../shared/warnings.ts'
import { transaction } from '../../ground/database/sql.ts'
import type { CloseAccount } from './closing.ts'
import type { Accounts } from './contract.ts'
import type { AccountDeps } from './dependencies.ts'
import {
  listOwnedDrops,
  insertAccountNotice,
  listAccountNotices,
  lockUnverified,
  unverifiedBefore,
  type AccountNotice,
} from './queries.ts'

export interface AbandonmentSettings {
  readonly unverifiedLifetimeMs: number
  readonly unverifiedWarningsMs: readonly number[]
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

type Deps = Pick<AccountDeps, 'sql' | 'links' | 'enqueueMail' | 'now' | 'dropUrl' | 'settings'> & {
  readonly closeAccount: CloseAccount
}

export function createAbandonment({
  sql,
  links,
  enqueueMail,
  now,
  dropUrl,
  settings,
  closeAccount,
}: Deps): Pick<Accounts, 'closeUnverified'> {
  async function step(userId: string): Promise<boolean> {
    return transaction(sql, async (locked) => {
      const user = await lockUnverified(locked, userId)
      if (!user) return false
      const next = nextStep(user.createdAt, await listAccountNotices(locked, userId), now().getTime(), settings)
      if (next.kind === 'tell') {
        await insertAccountNotice(locked, userId, { kind: next.notice, actsAt: next.actsAt, sentAt: now() })
        await enqueueMail(locked, {
          eventKey: `${next.notice}:${userId}`,
          to: user.email,
          template: 'unverified',
          data: {
            email: user.email,
            at: next.actsAt,
            drops: (await listOwnedDrops(locked, userId)).map(({ name, slug }) => ({ name, url: dropUrl(slug) })),
            link: await links.make(locked, 'verify', { userId, email: user.email }, next.actsAt),
          },
        })
      }
      if (next.kind === 'close') await closeAccount(locked, user)
      return next.kind === 'close'
    })
  }

  return {
    async closeUnverified(): Promise<number> {
      const firstLead = leadsOf(settings.unverifiedWarningsMs, settings.unverifiedLifetimeMs)[0] ?? 0
      const before = new Date(now().getTime() - settings.unverifiedLifetimeMs + firstLead)
      let closed = 0
      for (const id of await unverifiedBefore(sql, before)) if (await step(id)) closed++
      return closed
    },
  }
}
