/** The few S3 operations that a blob store needs, signed and retried. Works with any S3-compatible service. */
import { setTimeout as sleep } from 'node:timers/promises'
import { AwsClient } from 'aws4fetch'
import { StoreAway } from './blob-store.ts'

export interface S3Settings {
  /** Origin of the service, e.g. https://s3.eu-central-1.amazonaws.com. */
  readonly endpoint: string
  readonly bucket: string
  /** Stands in front of every key; empty, or ends with a slash. */
  readonly prefix: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE'
  /** Below the prefix; without it the bucket itself is meant. */
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array<ArrayBuffer> | Blob
  /** Ends the request, and the body of its answer. */
  readonly left?: AbortSignal | undefined
}

export type S3Client = (request: S3Request) => Promise<Response>

/** Attempts after the first; the waits add up to about three seconds. */
const RETRY_WAITS_MS: readonly number[] = [100, 300, 800, 2000]
/** To the first byte of the answer. */
const ANSWER_TIMEOUT_MS = 15_000
/** A slower line than this is as good as none. */
const SLOWEST_BYTES_PER_MS = 100
/** sha256 of nothing: what a request without a body is signed with. */
const EMPTY_HASH = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** Resolves with any answer below 500 except 429; throws StoreAway when there is none after all retries. */
export function createS3Client(settings: S3Settings): S3Client {
  const signer = new AwsClient({ ...settings, service: 's3', retries: 0 })

  async function attempt(request: S3Request): Promise<Response> {
    const url = urlOf(settings, request)
    const headers = { 'x-amz-content-sha256': EMPTY_HASH, ...request.headers }
    const signed = await signer.sign(url, { method: request.method, headers })
    const controller = new AbortController()
    const limitMs = ANSWER_TIMEOUT_MS + sizeOf(request.body) / SLOWEST_BYTES_PER_MS
    const timer = setTimeout(() => controller.abort(new Error(`no answer after ${Math.round(limitMs)} ms`)), limitMs)
    try {
      const { method, body = null, left } = request
      const signal = left ? AbortSignal.any([left, controller.signal]) : controller.signal
      return await fetch(url, { method, headers: signed.headers, body, signal })
    } finally {
      // The body of the answer takes as long as it takes.
      clearTimeout(timer)
    }
  }

  return async (request) => {
    for (let tries = 0; ; tries++) {
      const outcome = await attempt(request).catch((error: unknown) => error)
      const isFinal = outcome instanceof Response && outcome.status < 500 && outcome.status !== 429
      if (isFinal) return outcome
      request.left?.throwIfAborted()
      const wait = RETRY_WAITS_MS[tries]
      if (wait === undefined) throw failure(request, outcome)
      if (outcome instanceof Response) await outcome.body?.cancel()
      await sleep(wait * (0.5 + Math.random()), undefined, request.left && { signal: request.left })
    }
  }
}

function sizeOf(body: S3Request['body']): number {
  if (body === undefined) return 0
  return body instanceof Blob ? body.size : body.length
}

function urlOf({ endpoint, bucket, prefix }: S3Settings, { key, query }: S3Request): string {
  const path = key === undefined ? '' : `/${prefix}${key}`
  const search = query ? `?${new URLSearchParams(query)}` : ''
  return `${endpoint}/${bucket}${path}${search}`
}

function failure({ method, key }: S3Request, outcome: unknown): Error {
  const reason =
    outcome instanceof Response ? `answered ${outcome.status}` : String((outcome as Error).cause ?? outcome)
  return new StoreAway(`the S3 store ${reason} to ${method} ${key ?? 'bucket'}`)
}
