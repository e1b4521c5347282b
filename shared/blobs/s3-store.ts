/**
 * Blobs in an S3-compatible bucket: `<prefix>ab/<hash>`. What comes back is checked against its name. A blob that streams
 * in is written to a local draft first: its hash, which is its name, is only known at the end.
 *
 * An object has no way to be removed only if untouched; `discard` looks first and leaves a gap of one request. Keeping
 * a blob renews objects that are older than KEEP_WINDOW_MS, so the grace period of garbage collection must be longer.
 */
import { createHash, randomBytes } from 'node:crypto'
import { openAsBlob } from 'node:fs'
import { mkdir, open, rm } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { inParallel } from '../running/turns.ts'
import {
  BlobMissing,
  PARALLEL_PUTS,
  StoreAway,
  isBlobHash,
  pacedStream,
  type BlobStore,
  type BlobWriter,
  type StoredBlob,
} from './blob-store.ts'
import { sweepDrafts } from './drafts.ts'
import { createS3Client, type S3Client, type S3Settings } from './s3-client.ts'

/** Renewing copies the object; younger ones need none. */
const KEEP_WINDOW_MS = 60 * 60 * 1000

export function createS3BlobStore(settings: S3Settings, draftsDir: string): BlobStore {
  const s3 = createS3Client(settings)

  async function keep(hash: string): Promise<StoredBlob | undefined> {
    const found = await find(s3, hash)
    if (!found) return undefined
    const kept = { hash, size: found.size }
    if (found.modifiedAt > Date.now() - KEEP_WINDOW_MS) return kept
    const source = `/${settings.bucket}/${settings.prefix}${keyOf(hash)}`
    const headers = { 'x-amz-copy-source': source, 'x-amz-metadata-directive': 'REPLACE' }
    const answer = await s3({ method: 'PUT', key: keyOf(hash), headers })
    if (answer.status === 404) return undefined
    await finishAnswer(answer, 'copy')
    return kept
  }

  async function upload(hash: string, size: number, body: Uint8Array<ArrayBuffer> | Blob): Promise<StoredBlob> {
    if (!(await keep(hash))) {
      // The service compares the bytes with the hash it was promised.
      const headers = { 'x-amz-content-sha256': hash, 'content-length': String(size) }
      await finishAnswer(await s3({ method: 'PUT', key: keyOf(hash), headers, body }), 'PUT')
    }
    return { hash, size }
  }

  const put = (bytes: Uint8Array): Promise<StoredBlob> => upload(sha256(bytes), bytes.length, new Uint8Array(bytes))
  return {
    put,
    putAll: (blobs) => inParallel(blobs, PARALLEL_PUTS, put),
    writer: () => createDraft(draftsDir, async (draft, blob) => upload(blob.hash, blob.size, await openAsBlob(draft))),
    has: async (hash) => (await find(s3, hash)) !== undefined,
    keep,
    async read(hash) {
      const bytes = Buffer.from(await (await fetchBlob(s3, hash)).arrayBuffer())
      if (sha256(bytes) !== hash) throw new Error(`blob ${hash} came back with other bytes`)
      return bytes
    },
    stream: (hash, range) =>
      pacedStream((left) => {
        const bytes = plainBytes(() => fetchBlob(s3, hash, range, left))
        return range ? bytes : verifiedBytes(bytes, hash)
      }),
    async remove(hash) {
      const answer = await s3({ method: 'DELETE', key: keyOf(hash) })
      if (answer.status !== 404) await finishAnswer(answer, 'DELETE')
    },
    async discard(hash, knownAt) {
      if ((await find(s3, hash))?.modifiedAt !== knownAt) return false
      await finishAnswer(await s3({ method: 'DELETE', key: keyOf(hash) }), 'DELETE')
      return true
    },
    list: () => listObjects(s3, settings.prefix),
    sweep: (writtenBefore) => sweepDrafts(draftsDir, writtenBefore),
  }
}

async function find(s3: S3Client, hash: string): Promise<Required<StoredBlob> | undefined> {
  const answer = await s3({ method: 'HEAD', key: keyOf(hash) })
  if (answer.status === 404) return undefined
  requireOk(answer, 'HEAD')
  return {
    hash,
    size: Number(answer.headers.get('content-length')),
    modifiedAt: Date.parse(answer.headers.get('last-modified') ?? '') || 0,
  }
}

async function fetchBlob(
  s3: S3Client,
  hash: string,
  range?: { start: number; end: number },
  left?: AbortSignal,
): Promise<Response> {
  const headers = range && { range: `bytes=${range.start}-${range.end}` }
  const answer = await s3({ method: 'GET', key: keyOf(hash), left, ...(headers && { headers }) })
  if (answer.status === 404) throw new BlobMissing(hash)
  requireOk(answer, 'GET')
  return answer
}

function keyOf(hash: string): string {
  if (!isBlobHash(hash)) throw new Error(`not a blob hash: ${JSON.stringify(hash)}`)
  return `${hash.slice(0, 2)}/${hash}`
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function requireOk(answer: Response, operation: string): void {
  if (!answer.ok) throw new StoreAway(`the S3 store answered ${answer.status} to ${operation}`)
}

/** Reads the answer to its end, so that the connection can be used again. */
async function finishAnswer(answer: Response, operation: string): Promise<void> {
  const text = await answer.text()
  if (!answer.ok) throw new StoreAway(`the S3 store answered ${answer.status} to ${operation}: ${text.slice(0, 200)}`)
}

/** Asks when the first bytes are wanted: before, a failure would go unheard. */
async function* plainBytes(ask: () => Promise<Response>): AsyncGenerator<Uint8Array> {
  const { body } = await ask()
  if (body) yield* Readable.fromWeb(body as ReadableStream<Uint8Array>)
}

async function* verifiedBytes(bytes: AsyncIterable<Uint8Array>, hash: string): AsyncGenerator<Uint8Array> {
  const digest = createHash('sha256')
  for await (const chunk of bytes) {
    digest.update(chunk)
    yield chunk
  }
  if (digest.digest('hex') !== hash) throw new Error(`blob ${hash} came back with other bytes`)
}

async function createDraft(
  folder: string,
  adopt: (draft: string, blob: StoredBlob) => Promise<StoredBlob>,
): Promise<BlobWriter> {
  await mkdir(folder, { recursive: true })
  const draft = path.join(folder, randomBytes(12).toString('hex'))
  const file = await open(draft, 'wx')
  const digest = createHash('sha256')
  let size = 0
  const abort = async (): Promise<void> => {
    // Closing twice rejects; the draft must go all the same.
    await file.close().catch(() => undefined)
    await rm(draft, { force: true })
  }
  return {
    async write(chunk) {
      digest.update(chunk)
      size += chunk.length
      await file.writeFile(chunk)
    },
    async finish() {
      await file.close()
      const stored = await adopt(draft, { hash: digest.digest('hex'), size })
      await rm(draft, { force: true })
      return stored
    },
    abort,
  }
}

/** The answer is XML of a fixed shape, written by a machine: hashes, dates and numbers need no parser. */
async function* listObjects(s3: S3Client, prefix: string): AsyncIterable<Required<StoredBlob>> {
  let continuation: string | undefined
  do {
    const query = {
      'list-type': '2',
      prefix,
      ...(continuation !== undefined && { 'continuation-token': continuation }),
    }
    const answer = await s3({ method: 'GET', query })
    const xml = await answer.text()
    requireOk(answer, 'list')
    for (const [, object = ''] of xml.matchAll(/<Contents>([\s\S]*?)<\/Contents>/g)) {
      const hash = /<Key>[^<]*\/([0-9a-f]{64})<\/Key>/.exec(object)?.[1]
      if (hash === undefined) continue
      const size = Number(/<Size>(\d+)<\/Size>/.exec(object)?.[1])
      // Seconds, as `last-modified` has them, so that `discard` can compare.
      const at = Date.parse(/<LastModified>([^<]*)<\/LastModified>/.exec(object)?.[1] ?? '')
      yield { hash, size, modifiedAt: Math.floor(at / 1000) * 1000 }
    }
    continuation = /<NextContinuationToken>([^<]*)<\/NextContinuationToken>/.exec(xml)?.[1]
  } while (continuation !== undefined)
}
