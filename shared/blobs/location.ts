/** Where the blobs are, as BLOB_STORE says it. Opening the store is open.ts's business. */
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { EnvReader } from '../settings/env.ts'
import type { S3Settings } from './s3-client.ts'

const MB = 1_000_000
const DEFAULT_CACHE_MB = 2000

export type ParsedLocation =
  | { readonly kind: 'directory'; readonly directory: string }
  | { readonly kind: 's3'; readonly settings: S3Settings; readonly cacheDir: string; readonly cacheBytes: number }

/** Throws with a message that does not repeat the secret. */
export function parseBlobStoreUrl(text: string): ParsedLocation {
  if (text.startsWith('file:')) return { kind: 'directory', directory: directoryOf(text) }
  if (text.startsWith('s3:')) return parseS3Url(text)
  throw new Error('BLOB_STORE must be file:<directory> or s3://key:secret@bucket?endpoint=…')
}

/** Between a store and the one from which its content moves. No setting can hold it. */
const FORMER_MARK = '\n'

/** The store, and the one that has what it lacks, where content moves from one to the other. */
export function splitLocation(text: string): { readonly url: string; readonly former: string | undefined } {
  const [url = '', former] = text.split(FORMER_MARK)
  return { url, former }
}

/**
 * BLOB_STORE, else a directory of this machine, and BLOB_STORE_FORMER behind it; where it does not say, copies of a
 * distant store are in DATA_DIR too.
 */
export function readBlobStore(env: EnvReader, dataDir: string): string {
  const url = locationOf(env.text('BLOB_STORE', `file:${path.join(dataDir, 'blobs')}`), dataDir)
  const former = env.optional('BLOB_STORE_FORMER')
  const formerUrl = former === undefined ? undefined : withCopiesIn(path.join(dataDir, 'former-copies'), former)
  for (const [name, text] of [
    ['BLOB_STORE', url],
    ['BLOB_STORE_FORMER', formerUrl],
  ] as const) {
    try {
      if (text !== undefined) parseBlobStoreUrl(text)
    } catch (error) {
      env.problem((error as Error).message.replace('BLOB_STORE', name), undefined)
    }
  }
  return formerUrl === undefined ? url : `${url}${FORMER_MARK}${formerUrl}`
}

/** What an operator writes, with a place for copies where a distant store needs one. */
export function locationOf(text: string, dataDir: string): string {
  return withCopiesIn(path.join(dataDir, 'blob-copies'), text)
}

/** Keeps copies in our own directory: in one that others can write to, the first to fill it would decide what is served. */
function withCopiesIn(directory: string, text: string): string {
  const url = text.startsWith('s3:') ? URL.parse(text) : null
  if (!url || url.searchParams.has('cache')) return text
  url.searchParams.set('cache', directory)
  return url.href
}

/** `file:///var/blobs` and, more leniently, `file:./data/blobs`. */
function directoryOf(url: string): string {
  return url.startsWith('file://') ? fileURLToPath(url) : path.resolve(url.slice('file:'.length))
}

export function parseS3Url(text: string): ParsedLocation & { kind: 's3' } {
  const url = URL.parse(text)
  const endpoint = URL.parse(url?.searchParams.get('endpoint') ?? '')
  if (!url || url.hostname === '' || !endpoint || !/^https?:$/.test(endpoint.protocol)) {
    throw new Error('BLOB_STORE must look like s3://key:secret@bucket?endpoint=https://…')
  }
  const cacheDir = url.searchParams.get('cache')
  if (cacheDir === null) throw new Error('an S3 store needs a directory for copies: &cache=…')
  const prefix = url.pathname.replace(/^\/+|\/+$/g, '')
  return {
    kind: 's3',
    settings: {
      endpoint: endpoint.origin,
      bucket: url.hostname,
      prefix: prefix === '' ? '' : `${prefix}/`,
      region: url.searchParams.get('region') ?? 'us-east-1',
      accessKeyId: decodeURIComponent(url.username),
      secretAccessKey: decodeURIComponent(url.password),
    },
    cacheDir: path.resolve(cacheDir),
    cacheBytes: cacheMbOf(url) * MB,
  }
}

/** How many megabytes of copies there may be; 0: none are kept. Throws on what is no whole number. */
function cacheMbOf(url: URL): number {
  const text = url.searchParams.get('cache_mb') ?? String(DEFAULT_CACHE_MB)
  if (!/^\d{1,9}$/.test(text)) throw new Error('cache_mb in BLOB_STORE must be a whole number of megabytes')
  return Number(text)
}
