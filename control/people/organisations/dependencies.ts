import type { Clock } from '../../../shared/running/clock.ts'
import type { Pool } from '../../ground/database/sql.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import type { Bill } from '../../ground/mail/letters/templates.ts'
import type { RouteChanges, RoutingTransaction } from '../../ground/routing/changes.ts'

export interface OrganisationHooks {
  /** Deletes the organisation's drops, domains and subscription. */
  onOrganisationDeleted(tx: RoutingTransaction, orgId: string, now: Date): Promise<void>
  /** Serving depends on the owner's mailbox and last sign-in, and the bill follows the owner: what there is to pay. */
  onOwnerChanged(tx: RoutingTransaction, orgId: string, now: Date): Promise<{ bill: Bill | undefined }>
  /** What the person has opened as a member is closed to them: in drops of one organisation, or of all. */
  onMemberLeft(tx: RoutingTransaction, userId: string, orgId: string | undefined, now: Date): Promise<void>
  /**
   * The person is welcome again, because the provider vouches for them, they have a second factor, or an organisation asks
   * for none any more: what they had opened as a member is open again, wherever nothing else keeps them out.
   */
  onMemberBack(tx: RoutingTransaction, userId: string, now: Date): Promise<void>
  /** After the commit: tells the edges. */
  propagate(changes: RouteChanges): Promise<unknown>
}

export interface OrganisationsDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly baseUrl: string
  readonly enqueueMail: EnqueueMail
  readonly hooks: OrganisationHooks
}
