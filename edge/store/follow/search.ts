/**
 * A lap through all that the snapshot holds, for what was refused and then forgotten because there was too much of it.
 *
 * Invariant: a turn of it reads a bounded number of entries for about a second, and after a lap that found too many to
 * list the next one waits a minute, so that the log never waits for long, whatever is refused and however large the
 * snapshot is. What the log tells of a page that was passed is listed by itself.
 */
import { keys } from '../../../shared/redis/keys.ts'
import type { RedisCommands } from '../../../shared/redis/commands.ts'
import { pairs } from '../../../shared/redis/pairs.ts'
import { MAX_REFUSALS, type Refusal } from '../replica/replica.ts'

/** One look's worth of entries. */
const PAGE = 1000
/** A lap through a million hosts takes five minutes. */
export const SEARCH_TURN_ENTRIES = 20_000
export const SEARCH_TURN_MS = 1000
/** Between two laps while there is too much: a release that cannot read the other's records stays for hours. */
export const SEARCH_PAUSE_MS = 60_000

interface Page {
  readonly kind: 'route' | 'certificate'
  readonly page: readonly [string, string][]
}

export interface SnapshotSearch {
  /** How much was forgotten when it began (`Replica.forgotten`). */
  readonly forgotten: number
  readonly pages: AsyncIterator<Page>
  /** Adds what was refused on a page. */
  note(refused: readonly Refusal[]): void
  /** The routes that it has found refused so far; undefined: more than are listed. */
  found(): readonly Refusal[] | undefined
}

export function beginSnapshotSearch(commands: Pick<RedisCommands, 'hscan'>, forgotten: number): SnapshotSearch {
  let found: Refusal[] | undefined = []
  return {
    forgotten,
    pages: pagesOf(commands),
    note(refused) {
      // Control asks for routes alone. A certificate takes no time to be read: it stays unusable until the log has another.
      found?.push(...refused.filter(({ kind }) => kind === 'route'))
      if (found && found.length > MAX_REFUSALS) found = undefined
    },
    found: () => found,
  }
}

async function* pagesOf(commands: Pick<RedisCommands, 'hscan'>): AsyncGenerator<Page, undefined> {
  for (const kind of ['route', 'certificate'] as const) {
    const key = kind === 'route' ? keys.routes : keys.certificates
    let cursor = '0'
    do {
      const [next, flat] = await commands.hscan(key, cursor, 'COUNT', PAGE)
      yield { kind, page: [...pairs(flat)] }
      cursor = next
    } while (cursor !== '0')
  }
  return undefined
}
