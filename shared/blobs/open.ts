/**
 * Opens the blob store that a setting names:
 *
 *   file:<directory>
 *   s3://<key>:<secret>@<bucket>[/<prefix>]?endpoint=https://…[&region=…][&cache=<directory>][&cache_mb=2000]
 */
import path from 'node:path'
import type { BlobStore } from './blob-store.ts'
import { createCachedBlobStore } from './cached-store.ts'
import { createDirectoryBlobStore } from './directory-store.ts'
import { parseBlobStoreUrl } from './location.ts'
import { createS3BlobStore } from './s3-store.ts'

/** Plain data, so that a worker thread can be told where the blobs are. */
export interface BlobStoreLocation {
  readonly url: string
}

/** `onProblem` hears of what costs no visitor an answer, for instance a full disk below the cache. */
export function openBlobStore({ url }: BlobStoreLocation, onProblem?: (error: Error) => void): BlobStore {
  const location = parseBlobStoreUrl(url)
  if (location.kind === 'directory') return createDirectoryBlobStore(location.directory)
  const { settings, cacheDir, cacheBytes } = location
  return createCachedBlobStore({
    distant: createS3BlobStore(settings, path.join(cacheDir, 'drafts')),
    copies: createDirectoryBlobStore(path.join(cacheDir, 'copies')),
    maxBytes: cacheBytes,
    ...(onProblem && { onProblem }),
  })
}
