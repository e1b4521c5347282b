/** What blobs a version needs that the one before did not, and the other way round. Pure. */
import type { Manifest } from '../../../../shared/contracts/manifest.ts'
import { differing } from './differing.ts'
import { eachBlob } from './manifest-builder.ts'

/** A manifest in the store, which is a blob itself. */
export interface StoredManifest {
  readonly hash: string
  readonly manifest: Manifest
}

export interface BlobChanges {
  /** The manifest that they are the changes of. */
  readonly since: string
  /** What was not needed before. */
  readonly added: readonly string[]
  /** What is not needed any more. */
  readonly gone: readonly string[]
}

/** Linear in all files, but of those that did not change only hashes are looked at. */
export function blobChanges(before: StoredManifest, after: StoredManifest): BlobChanges {
  const [gone, added] = [new Set([before.hash]), new Set([after.hash])]
  for (const one of differing(before.manifest.files, after.manifest.files)) {
    if (one.before) eachBlob(one.before, ({ hash }) => gone.add(hash))
    if (one.after) eachBlob(one.after, ({ hash }) => added.add(hash))
  }
  for (const [, { hash }] of before.manifest.unserved) gone.add(hash)
  for (const [, { hash }] of after.manifest.unserved) added.add(hash)
  // Content that changed in one place may be in another, too.
  takeOut(added, before)
  takeOut(gone, after)
  return { since: before.hash, added: [...added], gone: [...gone] }
}

function takeOut(hashes: Set<string>, { hash, manifest }: StoredManifest): void {
  hashes.delete(hash)
  for (const [, file] of manifest.files) eachBlob(file, (blob) => hashes.delete(blob.hash))
  for (const [, file] of manifest.unserved) hashes.delete(file.hash)
}
