/**
 * The worker's parsed copies of route records, over the replica.
 *
 *   fresh:   in memory since nothing changed it
 *   dropped: the primary said that the host changed; the next request reads the replica again
 *   absent:  not cached: a miss costs one look-up in the mapped file, and unknown hosts are endless
 */
import { LRUCache } from 'lru-cache'
import type { ServedRoute } from '../context.ts'
import type { Replica } from './replica/replica.ts'

/** About half a kilobyte each when parsed: 10 MB per worker. */
const MAX_PARSED_ROUTES = 20_000

export interface Routes {
  get(host: string): ServedRoute | undefined
  /** The manifest of a version that the host's site retains; read anew each time. */
  manifestOf(host: string, versionNumber: number): string | undefined
  /** False until this machine has had a whole snapshot: then an unknown host is not known to be nothing. */
  isComplete(): boolean
  forget(host: string): void
  forgetAll(): void
  /** From here on every look-up reads the newest commit: the next primary writes to the same file. */
  rememberNothing(): void
}

export function createRoutes(replica: Replica, maxParsed = MAX_PARSED_ROUTES): Routes {
  const parsed = new LRUCache<string, ServedRoute>({ max: maxParsed })
  let complete = replica.snapshotEpoch() !== undefined
  let remembers = true
  return {
    get(host) {
      if (!remembers) {
        replica.refresh()
        return replica.route(host)
      }
      let record = parsed.get(host)
      if (record === undefined) {
        record = replica.route(host)
        if (record !== undefined) parsed.set(host, record)
      }
      return record
    },
    manifestOf: (host, versionNumber) => replica.manifestOf(host, versionNumber),
    isComplete: () => (complete ||= replica.snapshotEpoch() !== undefined),
    forget: (host) => void parsed.delete(host),
    forgetAll: () => parsed.clear(),
    rememberNothing() {
      remembers = false
      parsed.clear()
    },
  }
}
