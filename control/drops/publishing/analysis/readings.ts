/**
 * What pages say about other files, kept in memory: a deploy that changes one file must look at the links of all others
 * again, because what they point to may be gone.
 */
import { LRUCache } from 'lru-cache'
import type { Reading } from './analyse.ts'
import type { StoredFile } from '../manifest/manifest-builder.ts'

/** Some hundred thousand links. */
const KEPT_BYTES = 16_000_000
/** An entry without its texts: key, objects, places in lists. */
const ENTRY_BYTES = 400
/** The pages of a larger version would push each other out. */
export const MOST_READINGS = KEPT_BYTES / ENTRY_BYTES

type PageKey = Pick<StoredFile, 'path' | 'hash'>

export interface Readings {
  get(page: PageKey): Reading | undefined
  set(page: PageKey, reading: Reading): void
}

export function createReadings(): Readings {
  const kept = new LRUCache<string, Reading>({ maxSize: KEPT_BYTES })
  return {
    get: (page) => kept.get(keyOf(page)),
    set(page, { title, links, code, key }) {
      const reading = { ...(title !== undefined && { title }), ...(links && { links }), ...(code && { code }), key }
      kept.set(keyOf(page), reading, { size: sizeOf(reading) })
    },
  }
}

/** Links are relative to the page that has them. */
function keyOf({ path, hash }: PageKey): string {
  return `${hash} ${path}`
}

function sizeOf({ links, code }: Reading): number {
  return ENTRY_BYTES + (links?.length ?? 0) + (code?.length ?? 0)
}
