/**
 * Opens the blob store that a setting names:
 *
 *   file:<directory>
 *   s3://<key>:<secret>@<bucket>[/<prefix>]?endpoint=https://…[&region=…][&cache=<directory>][&cache_mb=2000]
 */
import { createHash } from 'node:crypto'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BlobStore } from './blob-store.ts'
import { createCachedBlobStore } from './cached-store.ts'
import { createDirectoryBlobStore } from './directory-store.ts'
import type { S3Settings } from './s3-client.ts'
import { createS3BlobStore } from './s3-store.ts'

/** Plain data, so that a worker thread can be told where the blobs are. */
export interface BlobStoreLocation {
  readonly url: string
}

const MB = 1_000_000
const DEFAULT_CACHE_MB = 2000

export function openBlobStore({ url }: BlobStoreLocation): BlobStore {
  if (url.startsWith('file:')) return createDirectoryBlobStore(directoryOf(url))
  if (url.startsWith('s3:')) return openS3(url)
  throw new Error('BLOB_STORE must be file:<directory> or s3://key:secret@bucket?endpoint=…')
}

/** `file:///var/blobs` and, more leniently, `file:./data/blobs`. */
function directoryOf(url: string): string {
  return url.startsWith('file://') ? fileURLToPath(url) : path.resolve(url.slice('file:'.length))
}

function openS3(text: string): BlobStore {
  const { settings, cacheDir, cacheBytes } = parseS3Url(text)
  return createCachedBlobStore({
    distant: createS3BlobStore(settings, path.join(cacheDir, 'drafts')),
    copies: createDirectoryBlobStore(path.join(cacheDir, 'copies')),
    maxBytes: cacheBytes,
  })
}

/** Throws with a message that does not repeat the secret. */
export function parseS3Url(text: string): { settings: S3Settings; cacheDir: string; cacheBytes: number } {
  const url = URL.parse(text)
  const endpoint = URL.parse(url?.searchParams.get('endpoint') ?? '')
  if (!url || url.hostname === '' || !endpoint || !/^https?:$/.test(endpoint.protocol)) {
    throw new Error('BLOB_STORE must look like s3://key:secret@bucket?endpoint=https://…')
  }
  const prefix = url.pathname.replace(/^\/+|\/+$/g, '')
  return {
    settings: {
      endpoint: endpoint.origin,
      bucket: url.hostname,
      prefix: prefix === '' ? '' : `${prefix}/`,
      region: url.searchParams.get('region') ?? 'us-east-1',
      accessKeyId: decodeURIComponent(url.username),
      secretAccessKey: decodeURIComponent(url.password),
    },
    cacheDir: path.resolve(url.searchParams.get('cache') ?? defaultCacheDir(url)),
    cacheBytes: Number(url.searchParams.get('cache_mb') ?? DEFAULT_CACHE_MB) * MB,
  }
}

/** One per bucket and machine: copies are the same for every process. */
function defaultCacheDir(url: URL): string {
  const id = createHash('sha256')
    .update(`${url.hostname}${url.pathname}${url.searchParams.get('endpoint')}`)
    .digest('hex')
  return path.join(os.tmpdir(), `dropway-blobs-${id.slice(0, 16)}`)
}
