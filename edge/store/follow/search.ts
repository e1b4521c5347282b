/**
 * A walk through all that the snapshot holds, for what was refused and then forgotten because there was too much of it. It
 * goes on from turn to turn, so that the log is followed meanwhile; what the log tells of a page that was passed is
 * listed by itself.
 */
import { keys } from '../../../shared/redis/keys.ts'
import type { RedisCommands } from '../../../shared/redis/commands.ts'
import { pairs } from '../../../shared/redis/pairs.ts'
import type { Refusal } from '../replica/replica.ts'

/** One look's worth of entries. */
const PAGE = 1000

interface Page {
  readonly kind: 'route' | 'certificate'
  readonly page: readonly [string, string][]
}

export interface SnapshotSearch {
  /** How much was forgotten when it began (`Replica.forgotten`). */
  readonly forgotten: number
  readonly pages: AsyncIterator<Page>
  /** What it has found refused so far. */
  readonly found: Refusal[]
}

export function beginSnapshotSearch(commands: Pick<RedisCommands, 'hscan'>, forgotten: number): SnapshotSearch {
  return { forgotten, pages: pagesOf(commands), found: [] }
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
