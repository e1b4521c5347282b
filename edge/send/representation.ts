/** One variant of a file, ready to be sent. */
import type { Readable } from 'node:stream'
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
