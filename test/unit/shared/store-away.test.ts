/** Where the blob store is away or a machine has no time, callers hear that it is worth coming back. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { toApiError } from '../../../control/ground/http/server/failure.ts'
import { createS3BlobStore } from '../../../shared/blobs/s3-store.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { silentLog } from '../../../shared/running/log.ts'
import { JobCrashed, JobFailed, JobStarved, JobTimeout, ofUnfinished } from '../../../shared/running/threads/pool.ts'

const about = { method: 'POST', path: '/api/v1/sites', now: 0 }
const statusOf = (error: unknown): number => toApiError(error, silentLog, about).status

// It makes the waits between attempts nothing.
beforeEach(() => void vi.spyOn(Math, 'random').mockReturnValue(-0.5))
afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

test.each([
  [
    'does not answer',
    () => Promise.reject(new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') })),
  ],
  ['is out of order', () => Promise.resolve(new Response('', { status: 503 }))],
  ['refuses its key', () => Promise.resolve(new Response('', { status: 403 }))],
])('an S3 store that %s: 503', async (_what, fetch) => {
  vi.stubGlobal('fetch', vi.fn(fetch))
  const settings = { bucket: 'b', prefix: '', region: 'r', accessKeyId: 'k', secretAccessKey: 's' }
  const store = createS3BlobStore({ ...settings, endpoint: 'http://store.example' }, '')
  const attempts = [store.put(Buffer.from('x')), store.read('a'.repeat(64)), store.has('a'.repeat(64))]
  const failures = await Promise.all(attempts.map((attempt) => attempt.catch((error: unknown) => error)))
  expect(failures.map(statusOf)).toEqual([503, 503, 503])
})

test.each([
  ['took too long', new JobTimeout(), 400],
  ['took the memory of its thread', new JobCrashed(), 400],
  ['had no time on a busy machine', new JobStarved(), 503],
  ['met a full disk', new JobFailed('no space', 'ENOSPC'), 503],
  ['met a store that is away', new JobFailed('no answer', 'STORE_AWAY'), 503],
  ['met a mistake of ours', new JobFailed('x is undefined', undefined), 500],
])('a job that %s', (_what, error, status) => {
  expect(statusOf(ofUnfinished(error, () => errors.invalidRequest('It takes too long.')))).toBe(status)
})
