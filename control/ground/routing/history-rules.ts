/** Which history the next publication belongs to. */
import { historyOfRevision, relationOf, type History } from '../../../shared/contracts/history.ts'
import type { DatabaseHistory } from './publication.ts'

export interface PublishedState {
  /** Whose database publishes to this Redis; undefined: none yet, or a release without histories. */
  readonly writer: History | undefined
  /** The newest revision that was ever published, and what our table has for its host. */
  readonly newest: { readonly revision: number; readonly ours: number | undefined } | undefined
  readonly edges: EdgeHistories
}

/** Histories that live edges serve. */
export interface EdgeHistories {
  readonly all: readonly History[]
  /** Those that have been there for a while: long enough for their own database to take Redis, if it is alive. */
  readonly lasting: readonly History[]
}

/** The ordinal of a database that has published nothing yet, or only with a release without histories. */
export const NO_HISTORY_ORDINAL = 0

export type Standing =
  | { readonly kind: 'go on' }
  | { readonly kind: 'begin'; readonly ordinal: number; readonly why: string }
  | { readonly kind: 'refuse'; readonly why: string }

/**
 * In this order:
 *
 *   1. The database lives another life than the one that its history was begun in: it was restored or failed over.
 *   2. Another database publishes here, of a history that ours does not know, and ours was not restored: perhaps it is
 *      the old one, left running by mistake. It must not win unless an operator says so.
 *   3. Something was published that our table has never had: its files were set back without a trace.
 *   4. An edge comes back from a history that was lost, and stays. Not before Redis is ours: an old primary may be the
 *      first to find it empty.
 */
export function standingOf(own: DatabaseHistory, published: PublishedState): Standing {
  const { writer, newest, edges } = published
  if (!own.ofThisLife)
    return begin(
      own,
      published,
      own.ordinal === NO_HISTORY_ORDINAL ? 'there was none' : 'the database was restored or failed over',
    )
  const relation = writer && relationOf(writer, own)
  if (writer && (relation === 'newer' || relation === 'rival'))
    return {
      kind: 'refuse',
      why: `another database publishes to this Redis (history ${writer.ordinal}; ours is ${own.ordinal})`,
    }
  if (newest && historyOfRevision(newest.revision) > own.ordinal)
    return { kind: 'refuse', why: `another database has published to this Redis (revision ${newest.revision})` }
  if (newest && historyOfRevision(newest.revision) === own.ordinal && (newest.ours ?? 0) < newest.revision)
    return begin(own, published, 'the database lacks what was already published')
  if (relation === 'same' && edges.lasting.some((edge) => ['newer', 'rival'].includes(relationOf(edge, own))))
    return begin(own, published, 'an edge serves a history that this database does not know')
  return { kind: 'go on' }
}

/** Larger than all that exist. */
export function nextOrdinal(own: History, { writer, newest, edges }: PublishedState): number {
  const known = [own, ...(writer ? [writer] : []), ...edges.all].map(({ ordinal }) => ordinal)
  return Math.max(...known, newest ? historyOfRevision(newest.revision) : 0) + 1
}

function begin(own: History, published: PublishedState, why: string): Standing {
  return { kind: 'begin', ordinal: nextOrdinal(own, published), why }
}

/** Removed without being asked for, in one history: what a moment's lost changes can have left behind. */
const UNKNOWN_SHARE = 0.01
const UNKNOWN_MINIMUM = 20

/** How many addresses without a drop may still be removed by itself. */
export function unknownAllowance(own: DatabaseHistory, routes: number): number {
  return Math.max(UNKNOWN_MINIMUM, Math.floor(routes * UNKNOWN_SHARE)) - own.removedUnknown
}
