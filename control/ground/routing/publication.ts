/**
 * What publishing asks of Postgres. `queries.ts` implements it in production, the simulation (test/simulation/) with a
 * database that can be restored and failed over at any moment.
 */
import type { History } from '../../../shared/contracts/history.ts'
import type { RouteRecord } from '../../../shared/contracts/route-record.ts'

export interface OutboxRow {
  id: number
  kind: 'route' | 'domain' | 'certificate'
  name: string
  value: string
  revision: number
}

export interface DatabaseHistory extends History {
  /** False: this database is not the one, or does not live the life, in which the history was begun. */
  readonly ofThisLife: boolean
  /** Addresses without a drop that were removed in this history without being asked for. */
  readonly removedUnknown: number
}

/** One transaction that holds the publication lock: no other process publishes from this database meanwhile. */
export interface Publication {
  /** As it was when the lock was had. */
  readonly history: DatabaseHistory
  /** What waited in the outbox then, and the revision of the host that was asked for: they cost no turn of their own. */
  readonly waiting: readonly OutboxRow[]
  readonly askedRevision: number | undefined
  /** Gives every route a revision of the new history, in the order of the old ones. No other database writes in it. */
  beginHistory(history: History): Promise<void>
  /** In order of their changes. */
  outbox(limit: number): Promise<OutboxRow[]>
  /** Goes with the commit, as its last step; where it fails, nothing is committed and `locked` throws. */
  deleteOutbox(ids: readonly number[]): void
  routesAfter(host: string, limit: number): Promise<{ host: string; record: RouteRecord }[]>
  countRoutes(): Promise<number>
  revisionOf(host: string): Promise<number | undefined>
  /** Which of these have no route. */
  withoutRoute(hosts: readonly string[]): Promise<string[]>
  /** Puts the routes of these into the outbox once more, but for those that are being changed. Returns which. */
  announceAgain(hosts: readonly string[]): Promise<string[]>
  /** From here on these are known to be nothing, but for those that have come to be meanwhile. Returns which. */
  removeUnknown(hosts: readonly string[]): Promise<string[]>
}

export interface PublicationStore {
  /** Commits when `work` resolves. */
  locked<Result>(work: (publication: Publication) => Promise<Result>, first?: FirstQuestions): Promise<Result>
}

/** What is asked for together with the lock. */
export interface FirstQuestions {
  /** How much of the outbox, at most. Unset: nothing of it. */
  readonly rows?: number
  /** Whose revision. */
  readonly host?: string | undefined
}
