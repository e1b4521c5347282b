/** A version as its publisher knows it: the paths and bytes that were uploaded, not what is served in their place. */
import type { Manifest } from '../../../../shared/contracts/manifest.ts'

export interface UploadedFile {
  readonly hash: string
  readonly size: number
}

/** A manifest that is in memory is asked again and again. Those that are not kept any more take this with them. */
const lists = new WeakMap<Manifest, ReadonlyMap<string, UploadedFile>>()

export function uploadedFiles(manifest: Manifest | undefined): ReadonlyMap<string, UploadedFile> {
  const known = manifest && lists.get(manifest)
  if (known) return known
  const listed = listUploaded(manifest)
  if (manifest) lists.set(manifest, listed)
  return listed
}

function listUploaded(manifest: Manifest | undefined): ReadonlyMap<string, UploadedFile> {
  const uploaded = new Map<string, UploadedFile>()
  for (const [name, { hash, size }] of manifest?.unserved ?? []) uploaded.set(name, { hash, size })
  for (const [name, file] of manifest?.files ?? []) {
    const { hash, size } = file.source ?? file
    uploaded.set(file.source?.path ?? name, { hash, size })
  }
  return uploaded
}
