/**
 * Reads manifests. A part of a long one that is held is not decoded again: the next version shares what did not change
 * with the version before, in time and in memory.
 */
import { setImmediate } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import type { BlobStore } from '../blobs/blob-store.ts'
import { decodeManifest, type Manifest, type ManifestFiles } from '../contracts/manifest.ts'
import { decodePart, splitLong } from './manifest-parts.ts'

/** A part of a long manifest, as it is stored and as it was read. */
export interface LongPart<Read> {
  readonly text: Buffer
  /** Tells apart nearly all texts; whether two are the same is another question. */
  readonly key: string
  readonly read: Read
}

/** A short manifest is one part, which is not looked for again. */
export type ManifestPart<Read> = LongPart<Read> | { readonly text?: undefined; readonly read: Read }

export function manifestPart<Read>(text: Buffer, read: Read): LongPart<Read> {
  return { text, key: keyOf(text), read }
}

export function isOfLong<Read>(part: ManifestPart<Read>): part is LongPart<Read> {
  return part.text !== undefined
}

function keyOf(text: Buffer): string {
  return `${crc32(text)} ${text.length}`
}

export interface ReadManifest<Read> {
  /** The manifest without its files. */
  readonly rest: Manifest
  readonly parts: readonly ManifestPart<Read>[]
  /** Length of its bytes. */
  readonly size: number
}

export interface ManifestReader<Read> {
  /** Throws when the manifest is missing or broken. */
  read(hash: string): Promise<ReadManifest<Read>>
  /**
   * Parts that are held are found again, until they have been released as often. Gives those to release: two who read the
   * same side by side have a part each, of which the first is held twice.
   */
  hold(parts: readonly ManifestPart<Read>[]): readonly ManifestPart<Read>[]
  release(parts: readonly ManifestPart<Read>[]): void
  holds(part: ManifestPart<Read>): boolean
}

/** `readPart` makes of the files what is kept of them. */
export function createManifestReader<Read>(
  blobs: Pick<BlobStore, 'read'>,
  readPart: (files: ManifestFiles) => Read,
): ManifestReader<Read> {
  const held = new Map<string, { readonly part: LongPart<Read>; times: number }>()

  function find(text: Buffer): LongPart<Read> | undefined {
    const part = held.get(keyOf(text))?.part
    return part?.text.equals(text) ? part : undefined
  }

  /** Others have their turn before each part that is decoded. */
  async function decode(view: Buffer): Promise<ManifestPart<Read>> {
    await setImmediate()
    // A view would keep the bytes of the whole manifest.
    const text = Buffer.from(view)
    return manifestPart(text, readPart(decodePart(text)))
  }

  return {
    async read(hash) {
      const bytes = await blobs.read(hash)
      const split = splitLong(bytes)
      if (!split) {
        const manifest = decodeManifest(bytes)
        const parts = [{ read: readPart(manifest.files) }]
        return { rest: { ...manifest, files: [] }, parts, size: bytes.length }
      }
      const parts: ManifestPart<Read>[] = []
      for (const text of split.texts) parts.push(find(text) ?? (await decode(text)))
      return { rest: split.rest, parts, size: bytes.length }
    },
    hold: (parts) =>
      parts.map((part) => {
        if (!isOfLong(part)) return part
        const known = held.get(part.key)
        if (known?.part.text.equals(part.text)) {
          known.times += 1
          return known.part
        }
        held.set(part.key, { part, times: 1 })
        return part
      }),
    release(parts) {
      for (const part of parts.filter(isOfLong)) {
        const known = held.get(part.key)
        if (known?.part === part && (known.times -= 1) === 0) held.delete(part.key)
      }
    },
    holds: (part) => isOfLong(part) && held.get(part.key)?.part === part,
  }
}
