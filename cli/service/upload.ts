/**
 * Sends a folder: the list first, then only the files that the service lacks, then one call that publishes.
 * Small files travel by the batch, large ones alone so that they go on where a broken line left them; a few requests at
 * a time. An interrupted deploy goes on with the same upload: the service is asked once what is missing.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { MAX_BATCHED_FILE_BYTES } from '../../shared/contracts/limits.ts'
import { sitePath, type ApiClient } from './api-client.ts'
import { ApiFailure } from './api-failure.ts'
import { changedMeanwhile, CliError, unreadable } from '../terminal/failure.ts'
import type { LocalFile } from '../content/folder.ts'
import { MAX_CONNECTIONS, PUBLISH_TIMEOUT_MS } from './http-client.ts'
import type { Version } from '../terminal/json-output.ts'
import { announcedBytes, contentsForm } from './multipart.ts'
import { inParallel } from '../../shared/running/turns.ts'
import type { Progress } from '../terminal/progress.ts'
import { plain } from '../terminal/terminal.ts'

/** What one request carries: enough that its round trip does not matter, little enough to be sent again. */
const BATCH_BYTES = 2_000_000
const BATCH_FILES = 200
/** How long a publish is waited for whose answer stays away: the service may be at it, and a large site takes minutes. */
const PUBLISH_PATIENCE_MS = 10 * 60_000
/** The service will not publish this upload, however often it is asked. */
const FINAL_REFUSALS: ReadonlySet<number> = new Set([400, 403, 404, 409, 413, 422])

export interface UploadOptions {
  readonly message?: string
  readonly spaFallback?: boolean
  /** The user wants files published that look like secrets. */
  readonly allowSecrets?: boolean
  /** What is older goes with it; `all`: named previews too. */
  readonly purge?: true | 'all'
  /** The name of a preview, instead of going live. */
  readonly preview?: string
  /** Threads that this version mends. */
  readonly resolves?: readonly string[]
  /** Who may see it, as the API takes it; in the same step as the version. */
  readonly sharing?: Readonly<Record<string, unknown>>
}

export interface Started {
  readonly upload_id: string
  readonly missing: readonly string[]
  readonly unchanged: boolean
  readonly expires_at: string
  /** Bytes that are there already, of files that came in part. */
  readonly arrived?: Readonly<Record<string, number>>
}

export interface Uploader {
  /** Resumes the unfinished upload of the same files, or starts one. */
  start(): Promise<Started>
  sendMissing(upload: Started, progress: Progress): Promise<void>
  /** Undefined when it turned out to be published already: the answer to an earlier attempt was lost. */
  finish(upload: Started): Promise<Version | undefined>
}

interface UploaderDependencies {
  readonly api: ApiClient
  readonly configDir: string
  readonly siteId: string
  readonly files: readonly LocalFile[]
  readonly options: UploadOptions
}

export function createUploader({ api, configDir, siteId, files, options }: UploaderDependencies): Uploader {
  const root = `${sitePath(siteId)}/uploads`
  const request = {
    files: files.map(({ path: name, sha256, size }) => ({ path: name, sha256, size })),
    ...(options.message === undefined ? {} : { message: options.message }),
    ...(options.spaFallback === undefined ? {} : { spa_fallback: options.spaFallback }),
    ...(options.allowSecrets ? { allow_secrets: true } : {}),
    ...(options.purge === undefined ? {} : { purge: options.purge }),
    ...(options.preview === undefined ? {} : { preview: options.preview }),
    ...(options.resolves === undefined ? {} : { resolves: options.resolves }),
    ...options.sharing,
  }
  const memory = memoryOf(configDir, siteId, request)

  const begin = (): Promise<Started> => api.call('POST', root, { json: request, repeatable: true })

  return {
    async start() {
      const known = await recall(memory)
      const open = known === undefined ? undefined : await whatIsMissing(api, `${root}/${known}`)
      if (open !== undefined) return { ...open, unchanged: false }
      const started = await begin()
      if (started.missing.length > 0) await keep(memory, started)
      return started
    },

    async sendMissing(upload, progress) {
      const byHash = new Map(files.map((file) => [file.sha256, file]))
      const queue = upload.missing.flatMap((hash) => byHash.get(hash) ?? [])
      const { batches, single } = planRequests(queue)
      progress.begin('Sending', queue.length, sizeOf(queue))
      const place = `${root}/${upload.upload_id}`
      const tasks = [
        ...single.map(
          (file) => () => sendFile(api, `${place}/blobs/${file.sha256}`, file, upload.arrived ?? {}, progress),
        ),
        ...batches.map((batch) => () => sendBatch(api, place, batch, progress)),
      ]
      try {
        await inParallel(tasks, MAX_CONNECTIONS, (task) => task())
      } finally {
        progress.finish()
      }
    },

    async finish(upload) {
      const publish = `${root}/${upload.upload_id}/finish`
      const patience = { repeatable: true, timeoutMs: PUBLISH_TIMEOUT_MS, patienceMs: PUBLISH_PATIENCE_MS }
      try {
        const version = await api.call<Version>('POST', publish, patience)
        await rm(memory, { force: true })
        return version
      } catch (error) {
        // Anything else leaves the upload open, and with it all that has arrived.
        if (!(error instanceof ApiFailure) || !FINAL_REFUSALS.has(error.status)) throw error
        await rm(memory, { force: true })
        // Finished by an attempt whose answer was lost, or forgotten: what is live, or at the preview, tells.
        if (error.status !== 404 || !(await begin()).unchanged) throw error
        return undefined
      }
    },
  }
}

/** Large files first and alone; small ones in batches. Pure. */
export function planRequests(files: readonly LocalFile[]): {
  single: readonly LocalFile[]
  batches: readonly (readonly LocalFile[])[]
} {
  const batches: LocalFile[][] = []
  let bytes = 0
  for (const file of files) {
    if (file.size > MAX_BATCHED_FILE_BYTES) continue
    const current = batches.at(-1)
    if (current === undefined || current.length >= BATCH_FILES || bytes + file.size > BATCH_BYTES) {
      batches.push([file])
      bytes = file.size
    } else {
      current.push(file)
      bytes += file.size
    }
  }
  return { single: files.filter((file) => file.size > MAX_BATCHED_FILE_BYTES), batches }
}

function sizeOf(files: readonly LocalFile[]): number {
  return files.reduce((sum, file) => sum + file.size, 0)
}

async function sendBatch(
  api: ApiClient,
  upload: string,
  batch: readonly LocalFile[],
  progress: Progress,
): Promise<void> {
  let rest = batch
  let isFirst = true
  await api.patiently(async () => {
    // Some or all of what an attempt sent may be there although its answer was lost: the service knows.
    if (!isFirst) rest = await notArrived(api, upload, batch)
    isFirst = false
    if (rest.length === 0) return
    const contents = new Map<string, Buffer>()
    for (const file of rest) contents.set(file.sha256, readUnchanged(file))
    await api.call('POST', `${upload}/blobs`, { ...contentsForm(contents), once: true })
  })
  progress.advance(sizeOf(batch), batch.length)
}

async function notArrived(api: ApiClient, upload: string, batch: readonly LocalFile[]): Promise<readonly LocalFile[]> {
  const { missing } = await api.call<Pick<Started, 'missing'>>('GET', upload, { once: true })
  const left = new Set(missing)
  return batch.filter(({ sha256 }) => left.has(sha256))
}

/** The bytes that were announced; of a small file, which is read faster here than by another thread. */
function readUnchanged(file: LocalFile): Buffer {
  const content = readHere(file)
  if (createHash('sha256').update(content).digest('hex') !== file.sha256) throw changedMeanwhile(file.path)
  return content
}

function readHere(file: LocalFile): Buffer {
  try {
    return readFileSync(file.file)
  } catch (error) {
    throw unreadable(file.path, error)
  }
}

async function sendFile(
  api: ApiClient,
  blob: string,
  file: LocalFile,
  arrived: Readonly<Record<string, number>>,
  progress: Progress,
): Promise<void> {
  let reported = 0
  const report = (position: number): void => {
    progress.advance(position - reported)
    reported = position
  }
  let offset = arrived[file.sha256] ?? 0
  let isFirst = true
  await api.patiently(async () => {
    // Part of what an attempt sent before it broke off may be there: how much, the service knows.
    if (!isFirst) offset = await offsetOf(api, blob, file)
    isFirst = false
    report(offset)
    if (offset < file.size) await sendRest(api, blob, file, offset, report)
  })
  report(file.size)
  progress.advance(0, 1)
}

async function sendRest(
  api: ApiClient,
  blob: string,
  file: LocalFile,
  offset: number,
  report: (position: number) => void,
): Promise<void> {
  function open(): Readable {
    let position = offset
    const stream = Readable.from(announcedBytes(file, offset), { objectMode: false })
    stream.on('data', (chunk: Buffer) => report((position += chunk.length)))
    return stream
  }
  const headers = {
    'content-type': 'application/octet-stream',
    'content-length': String(file.size - offset),
    'upload-offset': String(offset),
  }
  try {
    await api.call('PUT', blob, { body: open, headers, once: true, timeoutMs: PUBLISH_TIMEOUT_MS })
  } catch (error) {
    throw named(error, file)
  }
}

async function offsetOf(api: ApiClient, blob: string, file: LocalFile): Promise<number> {
  const { headers, body } = await api.stream('HEAD', blob, { once: true })
  body.resume()
  const offset = Number(headers['upload-offset'] ?? 0)
  return Number.isInteger(offset) && offset >= 0 && offset <= file.size ? offset : 0
}

function named(error: unknown, file: LocalFile): unknown {
  return error instanceof ApiFailure && error.status === 400
    ? new CliError(`${plain(file.path)}: ${error.message}`, error.exitCode, error.code)
    : error
}

/** One small file per unfinished upload, named after what it sends where. */
function memoryOf(configDir: string, siteId: string, request: unknown): string {
  const key = createHash('sha256').update(siteId).update(JSON.stringify(request)).digest('hex').slice(0, 32)
  return path.join(configDir, 'uploads', `${key}.json`)
}

async function recall(file: string): Promise<string | undefined> {
  try {
    const { upload_id, expires_at } = JSON.parse(await readFile(file, 'utf8')) as Started
    return Date.parse(expires_at) > Date.now() ? upload_id : undefined
  } catch {
    return undefined
  }
}

async function keep(file: string, { upload_id, expires_at }: Started): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
  await writeFile(file, JSON.stringify({ upload_id, expires_at }), { mode: 0o600 })
}

/** Undefined when the service has forgotten the upload: it is finished, too old, or one of too many. */
async function whatIsMissing(api: ApiClient, upload: string): Promise<Omit<Started, 'unchanged'> | undefined> {
  try {
    return await api.call('GET', upload)
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 404) return undefined
    throw error
  }
}
