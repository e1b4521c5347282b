/** Mails about domains, each written in the transaction of what it tells about. An event is told once. */
import type { RetryState } from '../../../shared/certificates/retry.ts'
import type { ControlConfig } from '../../ground/config.ts'
import type { Sql } from '../../ground/database/sql.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import { inBothForms, visitedName } from './dns/names.ts'
import { ownerEmail, type DomainRow } from './queries.ts'
import type { DomainReason } from './rules.ts'
import { whatVisitorsSee } from './doctor/words.ts'

export interface DomainNotices {
  /** Visitors of a served domain end up elsewhere. Once per time that it fails. */
  stoppedPointing(
    sql: Sql,
    row: DomainRow,
    failure: { readonly since: Date; readonly reason: DomainReason; readonly about: string },
  ): Promise<void>
  /** Its certificate ends in `days`, and cannot be renewed. Once per certificate and number of days. */
  renewalFails(
    sql: Sql,
    row: DomainRow,
    renewal: { readonly days: number; readonly endsAt: Date; readonly cause: RetryState['last_error'] },
  ): Promise<void>
  /** Another account has proven the name: both hear of it. */
  moved(sql: Sql, loser: DomainRow, winner: DomainRow): Promise<void>
}

interface NoticesDependencies {
  enqueueMail: EnqueueMail
  config: Pick<ControlConfig, 'baseUrl'>
}

export function createDomainNotices({ enqueueMail, config }: NoticesDependencies): DomainNotices {
  const linkTo = (row: DomainRow): string => `${config.baseUrl}/sites/${row.site_id}/domains`

  return {
    async stoppedPointing(sql, row, { since, reason, about }) {
      const to = await ownerEmail(sql, row.org_id)
      if (to === undefined) return
      await enqueueMail(sql, {
        eventKey: `domain-stopped:${row.id}:${since.toISOString()}`,
        to,
        template: 'domain_stopped',
        data: {
          domain: inBothForms(row.domain),
          url: `https://${visitedName(row.domain)}`,
          visitorsSee: whatVisitorsSee(reason, about),
          until: row.not_after,
          link: linkTo(row),
        },
      })
    },

    async renewalFails(sql, row, { days, endsAt, cause }) {
      const to = await ownerEmail(sql, row.org_id)
      if (to === undefined) return
      await enqueueMail(sql, {
        eventKey: `domain-renewal:${days}:${row.id}:${endsAt.toISOString()}`,
        to,
        template: 'domain_renewal',
        data: { domain: inBothForms(row.domain), endsAt, cause, link: linkTo(row) },
      })
    },

    async moved(sql, loser, winner) {
      for (const [row, template] of [
        [loser, 'domain_moved_away'],
        [winner, 'domain_moved_here'],
      ] as const) {
        const to = await ownerEmail(sql, row.org_id)
        if (to === undefined) continue
        await enqueueMail(sql, {
          eventKey: `domain-moved:${row.id}:${winner.held_since!.toISOString()}`,
          to,
          template,
          data: { domain: inBothForms(row.domain), link: linkTo(row) },
        })
      }
    },
  }
}
