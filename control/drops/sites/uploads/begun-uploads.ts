/**
 * What uploads that have begun here change, until they are finished. Their rows in Postgres say the same to any control,
 * and are read where nothing is kept: after a restart, at another control, or when something else is live by then.
 */
import { LRUCache } from 'lru-cache'
import type { ListChanges } from './listed.ts'

/** Files that all of them list: a name, a hash and a size of some three hundred bytes. A list with more is read again. */
const MOST_FILES = 20_000

export interface BegunUpload {
  /** Hash of the manifest that it is compared with. */
  readonly base: string
  readonly changes: ListChanges
}

export interface BegunUploads {
  keep(uploadId: string, begun: BegunUpload): void
  get(uploadId: string): BegunUpload | undefined
  forget(uploadId: string): void
}

export function createBegunUploads(): BegunUploads {
  const kept = new LRUCache<string, BegunUpload>({
    maxSize: MOST_FILES,
    sizeCalculation: ({ changes }) => 1 + changes.changed.length + changes.removed.length,
  })
  return {
    keep: (uploadId, begun) => void kept.set(uploadId, begun),
    get: (uploadId) => kept.get(uploadId),
    forget: (uploadId) => void kept.delete(uploadId),
  }
}
