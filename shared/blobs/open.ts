/** Opens the blob store that a setting names: `file:<directory>` or `s3://bucket?endpoint=…`. */
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BlobStore } from './blob-store.ts'
import { createDirectoryBlobStore } from './directory-store.ts'

/** Plain data, so that a worker thread can be told where the blobs are. */
export interface BlobStoreLocation {
  readonly url: string
}

export function openBlobStore(location: BlobStoreLocation): BlobStore {
  if (location.url.startsWith('file:')) return createDirectoryBlobStore(directoryOf(location.url))
  throw new Error(`BLOB_STORE must be file:<directory> or s3://bucket?endpoint=…, not "${location.url}"`)
}

/** `file:///var/blobs` and, more leniently, `file:./data/blobs`. */
function directoryOf(url: string): string {
  return url.startsWith('file://') ? fileURLToPath(url) : path.resolve(url.slice('file:'.length))
}
