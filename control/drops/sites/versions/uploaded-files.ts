/** A version as its publisher knows it: the paths and bytes that were uploaded, not what is served in their place. */
import type { Manifest } from '../../../../shared/contracts/manifest.ts'

export interface UploadedFile {
  readonly hash: string
  readonly size: number
}

export function uploadedFiles(manifest: Manifest | undefined): Map<string, UploadedFile> {
  const uploaded = new Map<string, UploadedFile>()
  for (const [name, { hash, size }] of manifest?.unserved ?? []) uploaded.set(name, { hash, size })
  for (const [name, file] of manifest?.files ?? []) {
    const { hash, size } = file.source ?? file
    uploaded.set(file.source?.path ?? name, { hash, size })
  }
  return uploaded
}
