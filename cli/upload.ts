/**
 * Sends a folder: the list first, then only the files that the service lacks, several at a time, each one resumed
 * where a broken connection left it; then one call that publishes. An interrupted deploy goes on with the same upload.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ApiFailure, type ApiClient, type Version } from './api-client.ts'
import { CliError, exitCodes } from './failure.ts'
import type { LocalFile } from './folder.ts'

const PARALLEL = 6
/** Waits between the attempts to send one file. */
const RETRY_MS = [500, 2000, 5000] as const

export interface UploadOptions {
  readonly message?: string
  readonly spaFallback?: boolean
}

export interface Started {
  readonly upload_id: string
  readonly missing: readonly string[]
  readonly unchanged: boolean
  readonly expires_at: string
  /** Goes on with an interrupted upload: part of the files may have arrived. */
  readonly resumed?: boolean
}

export interface Progress {
  /** Files and bytes that are still to be sent. */
  begin(files: number, bytes: number): void
  advance(bytes: number): void
  finish(): void
}

export function createUploader({ api, configDir }: { api: ApiClient; configDir: string }) {
  return {
    /** Resumes the unfinished upload of the same files, or starts one. */
    async start(siteId: string, files: readonly LocalFile[], options: UploadOptions): Promise<Started> {
      const request = requestOf(files, options)
      const memory = memoryOf(configDir, siteId, request)
      const open = await recall(memory)
      if (open !== undefined && (await isOpen(api, siteId, open))) return { ...open, resumed: true }
      const started = await api.call<Started>('POST', `${api.sitePath(siteId)}/uploads`, { json: request })
      if (started.missing.length > 0) await keep(memory, started)
      return started
    },

    async sendMissing(siteId: string, upload: Started, files: readonly LocalFile[], progress: Progress): Promise<void> {
      const byHash = new Map(files.map((file) => [file.sha256, file]))
      const queue = upload.missing.map((hash) => byHash.get(hash)!)
      progress.begin(
        queue.length,
        queue.reduce((sum, file) => sum + file.size, 0),
      )
      const root = `${api.sitePath(siteId)}/uploads/${upload.upload_id}/blobs`
      await Promise.all(
        Array.from({ length: Math.min(PARALLEL, queue.length) }, async () => {
          for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
            await sendFile(api, `${root}/${file.sha256}`, file, upload.resumed === true, progress)
          }
        }),
      ).finally(() => {
        queue.length = 0
        progress.finish()
      })
    },

    async finish(
      siteId: string,
      upload: Started,
      files: readonly LocalFile[],
      options: UploadOptions,
    ): Promise<Version> {
      const version = await api.call<Version>('POST', `${api.sitePath(siteId)}/uploads/${upload.upload_id}/finish`)
      await rm(memoryOf(configDir, siteId, requestOf(files, options)), { force: true })
      return version
    },
  }
}

function requestOf(files: readonly LocalFile[], options: UploadOptions) {
  return {
    files: files.map(({ path: name, sha256, size }) => ({ path: name, sha256, size })),
    ...(options.message === undefined ? {} : { message: options.message }),
    ...(options.spaFallback === undefined ? {} : { spa_fallback: options.spaFallback }),
  }
}

async function sendFile(
  api: ApiClient,
  blob: string,
  file: LocalFile,
  resumed: boolean,
  progress: Progress,
): Promise<void> {
  let reported = 0
  for (let attempt = 0; ; attempt++) {
    try {
      const offset = resumed || attempt > 0 ? await offsetOf(api, blob, file) : 0
      progress.advance(offset - reported)
      reported = offset
      if (offset < file.size || file.size === 0) {
        const body = createReadStream(file.file, { start: offset })
        body.on('data', (chunk) => {
          progress.advance(chunk.length)
          reported += chunk.length
        })
        await api.send('PUT', blob, {
          body,
          headers: {
            'content-type': 'application/octet-stream',
            'content-length': String(file.size - offset),
            'upload-offset': String(offset),
          },
        })
      }
      progress.advance(file.size - reported)
      return
    } catch (error) {
      const wait = RETRY_MS[attempt]
      if (wait === undefined || !mayRetry(error)) throw named(error, file)
      await new Promise((resolve) => setTimeout(resolve, wait))
    }
  }
}

async function offsetOf(api: ApiClient, blob: string, file: LocalFile): Promise<number> {
  const { headers, body } = await api.send('HEAD', blob)
  body.resume()
  const offset = Number(headers['upload-offset'] ?? 0)
  return Number.isInteger(offset) && offset >= 0 && offset <= file.size ? offset : 0
}

/** A broken line or a service that restarts; a refusal stays one. */
function mayRetry(error: unknown): boolean {
  return error instanceof CliError && (error.exitCode === exitCodes.unreachable || error.code === 'timeout')
}

function named(error: unknown, file: LocalFile): unknown {
  return error instanceof ApiFailure && error.status === 400
    ? new CliError(`${file.path}: ${error.message}`, error.exitCode, error.code)
    : error
}

/** One small file per unfinished upload, named after what it sends where. */
function memoryOf(configDir: string, siteId: string, request: unknown): string {
  const key = createHash('sha256').update(siteId).update(JSON.stringify(request)).digest('hex').slice(0, 32)
  return path.join(configDir, 'uploads', `${key}.json`)
}

async function recall(file: string): Promise<Started | undefined> {
  try {
    const started = JSON.parse(await readFile(file, 'utf8')) as Started
    return Date.parse(started.expires_at) > Date.now() ? started : undefined
  } catch {
    return undefined
  }
}

async function keep(file: string, started: Started): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
  await writeFile(file, JSON.stringify(started), { mode: 0o600 })
}

/** The service forgets uploads that are finished or too old. */
async function isOpen(api: ApiClient, siteId: string, upload: Started): Promise<boolean> {
  try {
    const { body } = await api.send(
      'HEAD',
      `${api.sitePath(siteId)}/uploads/${upload.upload_id}/blobs/${upload.missing[0]}`,
    )
    body.resume()
    return true
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 404) return false
    throw error
  }
}
