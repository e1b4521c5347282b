/** Reads and writes manifests. One never changes, and checking a large one takes a while: those in use are kept. */
import { setImmediate } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { BlobStore, StoredBlob } from '../../../../shared/blobs/blob-store.ts'
import { encodeLong, encodePart, isLong } from '../../../../shared/content/manifest-parts.ts'
import {
  createManifestReader,
  isOfLong,
  manifestPart,
  type LongPart,
  type ManifestPart,
} from '../../../../shared/content/manifest-reader.ts'
import {
  encodeManifest,
  type Manifest,
  type ManifestFile,
  type ManifestFiles,
} from '../../../../shared/contracts/manifest.ts'
import { sideBySide } from '../../../../shared/values/side-by-side.ts'

/** The manifests of the sites that are being worked on, by their encoded size and that of the texts that long ones hold. */
const KEPT_BYTES = 48_000_000
/** A manifest in memory takes a kilobyte beside its texts: tens of thousands of pages alone would be more than all sites. */
const MOST_KEPT = 1000

export interface Manifests {
  read(hash: string): Promise<Manifest>
  write(manifest: Manifest): Promise<StoredBlob>
}

type Part = ManifestPart<ManifestFiles>

interface Kept {
  readonly manifest: Manifest
  readonly parts: readonly Part[]
}

export function createManifests(blobs: Pick<BlobStore, 'read' | 'put' | 'writer'>): Manifests {
  const reader = createManifestReader(blobs, (files) => files)
  /** Parts of the manifests that are kept, by the first of their files. */
  const byFirstFile = new Map<ManifestFile, LongPart<ManifestFiles>>()
  const kept = new LRUCache<string, Kept>({
    max: MOST_KEPT,
    maxSize: KEPT_BYTES,
    dispose: release,
  })

  function release({ parts }: Kept): void {
    reader.release(parts)
    for (const part of parts) {
      const [first] = part.read
      if (first && byFirstFile.get(first[1]) === part && !reader.holds(part)) byFirstFile.delete(first[1])
    }
  }

  /** The very files of what is held already take the place of equal ones. */
  function holding(rest: Manifest, parts: readonly Part[]): Kept {
    const held = reader.hold(parts)
    return { manifest: { ...rest, files: held.flatMap(({ read }) => read) }, parts: held }
  }

  function keep(hash: string, entry: Kept, size: number): void {
    for (const part of entry.parts) {
      const [first] = part.read
      if (first && isOfLong(part)) byFirstFile.set(first[1], part)
    }
    const textBytes = entry.parts.reduce((sum, { text }) => sum + (text?.length ?? 0), 0)
    kept.set(hash, entry, { size: size + textBytes })
    // One that is larger than all may be is not kept.
    if (kept.peek(hash) !== entry) release(entry)
  }

  /** A part that is in memory and has the very same files. */
  function knownPart(files: ManifestFiles): LongPart<ManifestFiles> | undefined {
    const [first] = files
    const known = first && byFirstFile.get(first[1])
    return known && areSame(known.read, files) ? known : undefined
  }

  async function writeLong(manifest: Manifest): Promise<StoredBlob> {
    const parts: Part[] = []
    const textOf = (files: ManifestFiles): Buffer => {
      const part = knownPart(files) ?? manifestPart(encodePart(files), files)
      parts.push(part)
      return part.text
    }
    const writer = await blobs.writer()
    try {
      for (const piece of encodeLong(manifest, textOf)) {
        await writer.write(piece)
        await setImmediate()
      }
      const stored = await writer.finish()
      keep(stored.hash, holding(manifest, parts), stored.size)
      return stored
    } catch (error) {
      await writer.abort()
      throw error
    }
  }

  return {
    async read(hash) {
      const known = kept.get(hash)
      if (known) return known.manifest
      const { rest, parts, size } = await reader.read(hash)
      const entry = holding(rest, parts)
      keep(hash, entry, size)
      return entry.manifest
    },
    async write(manifest) {
      if (isLong(manifest)) return writeLong(manifest)
      const stored = await blobs.put(encodeManifest(manifest))
      keep(stored.hash, { manifest, parts: [] }, stored.size)
      return stored
    },
  }
}

/** The very same files: no text is compared but their names. */
function areSame(some: ManifestFiles, others: ManifestFiles): boolean {
  if (some.length !== others.length) return false
  for (const [[path, file], [otherPath, other]] of sideBySide(some, others))
    if (file !== other || path !== otherPath) return false
  return true
}
