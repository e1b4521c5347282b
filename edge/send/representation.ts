/** One variant of a file, ready to be sent. */
import type { Readable } from 'node:stream'
import { pairs } from '../../shared/redis/pairs.ts'
import type { HeaderList } from '../context.ts'

/** Names and values take turns in the list, and a value may read like a name. */
export function headerOf(headers: HeaderList, name: string): string | undefined {
  const at = headers.findIndex((text, index) => index % 2 === 0 && text === name)
  return at < 0 ? undefined : headers[at + 1]
}

export interface Representation {
  /** Strong, quoted. */
  readonly etag: string
  readonly size: number
  readonly isPage: boolean
  /** Without those of the message's length. */
  readonly headers: HeaderList
  /** For the whole body. */
  readonly whole: HeaderList
  readonly notModified: HeaderList
  /** What stands on every answer of the drop, for 412 and 416. */
  readonly always: HeaderList
  readonly source:
    | { readonly bytes: () => Buffer | undefined; readonly load: () => Promise<Buffer> }
    /** Too large for memory: read from the store at the visitor's pace. */
    | { readonly stream: (range?: { start: number; end: number }) => Readable }
}

const NOT_IN_304: ReadonlySet<string> = new Set(['content-type', 'content-encoding', 'content-length', 'accept-ranges'])

const ALWAYS: ReadonlySet<string> = new Set([
  'x-content-type-options',
  'strict-transport-security',
  'dropway-version',
  'x-robots-tag',
])

const PRIVATE = 'private, no-store'
/** Beside those, on answers of drops that not everyone may see. */
const ALWAYS_PRIVATE: ReadonlySet<string> = new Set(['referrer-policy', 'access-control-allow-origin'])

function headersOf(all: HeaderList, isWanted: (name: string) => boolean): HeaderList {
  return [...pairs(all)].filter(([name]) => isWanted(name)).flat()
}

/** What nobody may keep is said of an answer without content too, and by whom it may be read. */
function alwaysOf(headers: HeaderList): HeaderList {
  const isPrivate = headerOf(headers, 'cache-control') === PRIVATE
  const kept = headersOf(headers, (name) => ALWAYS.has(name) || (isPrivate && ALWAYS_PRIVATE.has(name)))
  return [...kept, 'cache-control', isPrivate ? PRIVATE : 'no-store']
}

/** A variant of these headers and this length. */
export function describeVariant(
  headers: HeaderList,
  size: number,
  isPage: boolean,
  source: Representation['source'],
): Representation {
  return {
    etag: headerOf(headers, 'etag') ?? '',
    size,
    isPage,
    headers,
    whole: [...headers, 'content-length', String(size)],
    notModified: headersOf(headers, (name) => !NOT_IN_304.has(name)),
    always: alwaysOf(headers),
    source,
  }
}
