/**
 * Opens the blob store that a setting names:
 *
 *   file:<directory>
 *   s3://<key>:<secret>@<bucket>[/<prefix>]?endpoint=https://…[&region=…][&cache=<directory>][&cache_mb=2000]
 */
import { readdir, rmdir } from 'node:fs/promises'
import path from 'node:path'
import type { BlobStore } from './blob-store.ts'
import { createCachedBlobStore } from './cached-store.ts'
import { createDirectoryBlobStore } from './directory-store.ts'
import type { FileCalls } from './file-calls.ts'
import { parseBlobStoreUrl, splitLocation } from './location.ts'
import { createMovingBlobStore } from './moving-store.ts'
import { createS3BlobStore } from './s3-store.ts'

/** Plain data, so that a worker thread can be told where the blobs are. */
export interface BlobStoreLocation {
  readonly url: string
}

export interface OpenOptions {
  /** Hears of what costs no visitor an answer, for instance a full disk below the cache. */
  readonly onProblem?: (error: Error) => void
  /** How files are reached; a thread that may wait for the file system hands in calls that do. */
  readonly files?: FileCalls
}

export function openBlobStore({ url: text }: BlobStoreLocation, options: OpenOptions = {}): BlobStore {
  const { url, former } = splitLocation(text)
  const current = openOne(url, options)
  return former === undefined ? current : createMovingBlobStore(current, openOne(former, options))
}

/** The stores themselves, past any copies of this machine: for whoever has to know what is really there. */
export function openOriginals(text: string): { readonly current: BlobStore; readonly former: BlobStore | undefined } {
  const { url, former } = splitLocation(text)
  return { current: openOriginal(url), former: former === undefined ? undefined : openOriginal(former) }
}

function openOriginal(url: string): BlobStore {
  const location = parseBlobStoreUrl(url)
  if (location.kind === 'directory') return createDirectoryBlobStore(location.directory)
  return createS3BlobStore(location.settings, path.join(location.cacheDir, 'drafts'))
}

function openOne(url: string, { onProblem, files }: OpenOptions): BlobStore {
  const location = parseBlobStoreUrl(url)
  if (location.kind === 'directory') return createDirectoryBlobStore(location.directory, files)
  const { settings, cacheDir, cacheBytes } = location
  const distant = createS3BlobStore(settings, path.join(cacheDir, 'drafts'))
  const copies = path.join(cacheDir, 'copies')
  if (cacheBytes === 0) {
    giveUpCopies(copies).catch((error: Error) => onProblem?.(error))
    return distant
  }
  return createCachedBlobStore({
    distant,
    copies: createDirectoryBlobStore(copies, files),
    maxBytes: cacheBytes,
    ...(onProblem && { onProblem }),
  })
}

/** What was copied under another setting goes. The directory may have been there before us: what else is in it stays. */
async function giveUpCopies(folder: string): Promise<void> {
  const copies = createDirectoryBlobStore(folder)
  for await (const { hash } of copies.list()) await copies.remove(hash)
  await copies.sweep(Date.now())
  const folders = await readdir(folder).catch(() => [])
  for (const name of ['', ...folders].toReversed()) await rmdir(path.join(folder, name)).catch(() => undefined)
}
