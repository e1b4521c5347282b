/** Reads and writes manifests. One never changes, and checking a large one takes a while: those in use are kept. */
import { setImmediate } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { BlobStore, StoredBlob } from '../../../../shared/blobs/blob-store.ts'
import { encodeLong, encodePart, isLong } from '../../../../shared/content/manifest-parts.ts'
import { createManifestReader, manifestPart, type ManifestPart } from '../../../../shared/content/manifest-reader.ts'
import {
  encodeManifest,
  type Manifest,
  type ManifestFile,
  type ManifestFiles,
} from '../../../../shared/contracts/manifest.ts'
import { sideBySide } from '../../../../shared/values/side-by-side.ts'

/** The manifests of the sites that are being worked on, by their encoded size. */
const KEPT_BYTES = 32_000_000
/** A manifest in memory takes a kilobyte beside its texts: tens of thousands of pages alone would be more than all sites. */
const MOST_KEPT = 1000

export interface Manifests {
  read(hash: string): Promise<Manifest>
  write(manifest: Manifest): Promise<StoredBlob>
}

interface Kept {
  readonly manifest: Manifest
  readonly parts: readonly ManifestPart<ManifestFiles>[]
}

export function createManifests(blobs: Pick<BlobStore, 'read' | 'put' | 'writer'>): Manifests {
  const texts = createPartTexts()
  const reader = createManifestReader(blobs, texts.note)
  const kept = new LRUCache<string, Kept>({
    max: MOST_KEPT,
    maxSize: KEPT_BYTES,
    dispose: ({ parts }) => reader.release(parts),
  })

  function keep(hash: string, entry: Kept, size: number): void {
    reader.hold(entry.parts)
    kept.set(hash, entry, { size })
    // One that is larger than all may be is not kept.
    if (kept.peek(hash) !== entry) reader.release(entry.parts)
  }

  async function writeLong(manifest: Manifest): Promise<StoredBlob> {
    const parts: ManifestPart<ManifestFiles>[] = []
    const textOf = (files: ManifestFiles): Buffer => {
      const text = texts.find(files) ?? encodePart(files)
      parts.push(manifestPart(text, texts.note(files, text)))
      return text
    }
    const writer = await blobs.writer()
    try {
      for (const piece of encodeLong(manifest, textOf)) {
        await writer.write(piece)
        await setImmediate()
      }
      const stored = await writer.finish()
      keep(stored.hash, { manifest, parts }, stored.size)
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
      const manifest = { ...rest, files: parts.flatMap(({ read }) => read) }
      keep(hash, { manifest, parts }, size)
      return manifest
    },
    async write(manifest) {
      if (isLong(manifest)) return writeLong(manifest)
      const stored = await blobs.put(encodeManifest(manifest))
      keep(stored.hash, { manifest, parts: [] }, stored.size)
      return stored
    },
  }
}

/** What parts of manifests that are in memory look like in their bytes. */
interface PartTexts {
  note(files: ManifestFiles, text?: Buffer): ManifestFiles
  /** The text of a part with the very same files; undefined when they were never seen together. */
  find(files: ManifestFiles): Buffer | undefined
}

function createPartTexts(): PartTexts {
  /** By the first file of a part. */
  const known = new WeakMap<ManifestFile, { readonly files: ManifestFiles; readonly text: Buffer }>()
  return {
    note(files, text) {
      const [first] = files
      if (first && text) known.set(first[1], { files, text })
      return files
    },
    find(files) {
      const [first] = files
      const found = first && known.get(first[1])
      return found && areSame(found.files, files) ? found.text : undefined
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
