import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { pathToFileURL } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import {
  createWorkerPool,
  JobCrashed,
  JobFailed,
  JobStarved,
  JobTimeout,
  type WorkerPool,
} from '../../shared/running/threads/pool.ts'

/** A thread that does as it is told. */
const SCRIPT = `
import { parentPort, threadId } from 'node:worker_threads'
const spentMs = () => { const { user, system } = process.threadCpuUsage(); return (user + system) / 1000 }
parentPort.on('message', async (job) => {
  if (job === 'spin') for (;;) {}
  if (job === 'exit') process.exit(3)
  if (job === 'throw') setImmediate(() => { throw new Error('late') })
  else if (job === 'refuse') parentPort.postMessage({ kind: 'refused', status: 400, code: 'archive_rejected', detail: 'no', spentMs: spentMs() })
  else if (job === 'memory') { const all = []; for (;;) all.push(new Array(1e5).fill(all.length + 0.5)) }
  else {
    for (const end = spentMs() + (job.work ?? 0); spentMs() < end;);
    await new Promise((resolve) => setTimeout(resolve, job.wait ?? 0))
    parentPort.postMessage({ kind: 'result', result: threadId, spentMs: spentMs() })
  }
})
`
/** A thread whose work meets a full disk. */
const FULL = `
import { serveJobs } from ${JSON.stringify(new URL('../../shared/running/threads/serve.ts', import.meta.url))}
serveJobs(async () => { throw Object.assign(new Error('no space left'), { code: 'ENOSPC' }) })
`
let folder: string
let pool: WorkerPool
beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-pool-'))
  await writeFile(path.join(folder, 'thread.mjs'), SCRIPT)
  await writeFile(path.join(folder, 'full.mjs'), FULL)
})
afterEach(() => pool.close())
afterAll(() => rm(folder, { recursive: true, force: true }))

interface Limits {
  share?: number
  maxWaiting?: number
  maxWaitMs?: number
  idleMs?: number
  script?: string
}

function start(
  size: number,
  { share = size, maxWaiting = 100, maxWaitMs = 60_000, idleMs, script = 'thread.mjs' }: Limits = {},
): WorkerPool {
  pool = createWorkerPool({
    script: pathToFileURL(path.join(folder, script)),
    size,
    share,
    maxWaitMs,
    maxHeapMb: 32,
    maxWaiting,
    ...(idleMs !== undefined && { idleMs }),
  })
  return pool
}

test('runs no more jobs at once than it has threads, and all of them', async () => {
  start(2)
  const threads = await Promise.all(
    Array.from({ length: 10 }, () => pool.run<number>({ wait: 5 }, { timeoutMs: 10_000, owner: 'one' })),
  )
  expect(new Set(threads).size).toBe(2)
})

test('a job that never ends is ended, and the next one runs', async () => {
  start(1)
  const stuck = pool.run('spin', { timeoutMs: 200, owner: 'one' })
  const next = pool.run({}, { timeoutMs: 10_000, owner: 'one' })
  await expect(stuck).rejects.toBeInstanceOf(JobTimeout)
  expect(await next).toBeTypeOf('number')
})

test.each(['exit', 'throw', 'memory'])('a thread that dies (%s) takes only its own job with it', async (job) => {
  start(1)
  await expect(pool.run(job, { timeoutMs: 15_000, owner: 'one' })).rejects.toBeInstanceOf(JobCrashed)
  expect(await pool.run({}, { timeoutMs: 10_000, owner: 'one' })).toBeTypeOf('number')
})

test('an error of the catalogue keeps its code', async () => {
  start(1)
  await expect(pool.run('refuse', { timeoutMs: 10_000, owner: 'one' })).rejects.toMatchObject({
    status: 400,
    code: 'archive_rejected',
    message: 'no',
  })
})

test('an error of the disk keeps its code, and says where it was met', async () => {
  start(1, { script: 'full.mjs' })
  const failed: unknown = await pool.run({}, { timeoutMs: 10_000, owner: 'one' }).catch((error: unknown) => error)
  expect(failed).toBeInstanceOf(JobFailed)
  expect(failed).toMatchObject({ code: 'ENOSPC', message: expect.stringContaining('full.mjs') })
})

test('too many waiting jobs are refused with 503', async () => {
  start(1, { maxWaiting: 1 })
  const running = pool.run({ wait: 100 }, { timeoutMs: 10_000, owner: 'one' })
  const waiting = pool.run({}, { timeoutMs: 10_000, owner: 'one' })
  await expect(pool.run({}, { timeoutMs: 10_000, owner: 'one' })).rejects.toMatchObject({ status: 503 })
  await Promise.all([running, waiting])
})

test('a thread is used again for as long as it may be idle', async () => {
  start(1, { idleMs: 600_000 })
  const run = () => pool.run<number>({ wait: 1 }, { timeoutMs: 10_000, owner: 'one' })
  expect(await run()).toBe(await run())
})

test('a thread that no one needs ends; work that comes later, or just then, is done by another', async () => {
  start(1, { idleMs: 50 })
  const run = () => pool.run<number>({ wait: 1 }, { timeoutMs: 10_000, owner: 'one' })
  const first = await run()
  await sleep(200)
  const second = await run()
  expect(second).toBeGreaterThan(first)
  for (let round = 0; round < 30; round++) {
    await sleep(40 + round)
    expect(await run()).toBeTypeOf('number')
  }
})

test('closing ends what runs and what waits', async () => {
  start(1)
  const running = pool.run('spin', { timeoutMs: 10_000, owner: 'one' })
  const waiting = pool.run({}, { timeoutMs: 10_000, owner: 'one' })
  const both = Promise.allSettled([running, waiting])
  await pool.close()
  expect((await both).map((outcome) => outcome.status)).toEqual(['rejected', 'rejected'])
  await expect(pool.run({}, { timeoutMs: 1000, owner: 'one' })).rejects.toBeInstanceOf(JobCrashed)
})

test('one caller never holds all threads, and the next one does not wait', async () => {
  start(3, { share: 2 })
  // None of them ends before the pool does.
  const greedy = Promise.allSettled(
    Array.from({ length: 6 }, () => pool.run({ wait: 600_000 }, { timeoutMs: 10_000, owner: 'greedy' })),
  )
  expect(await pool.run({}, { timeoutMs: 10_000, owner: 'modest' })).toBeTypeOf('number')
  await pool.close()
  expect((await greedy).map(({ status }) => status)).toEqual(Array(6).fill('rejected'))
})

test('callers take turns, however much one of them has waiting', async () => {
  start(1)
  const order: string[] = []
  const run = (owner: string) => pool.run({ wait: 5 }, { timeoutMs: 10_000, owner }).then(() => void order.push(owner))
  await Promise.all([...Array.from({ length: 5 }, () => run('greedy')), run('modest'), run('other')])
  expect(order.indexOf('modest')).toBeLessThanOrEqual(2)
  expect(order.indexOf('other')).toBeLessThanOrEqual(3)
})

test('who gets no thread for long enough is told so with 503', async () => {
  start(1, { maxWaitMs: 300 })
  // It does not end before the pool does, however fast the machine is.
  const stuck = pool.run('spin', { timeoutMs: 600_000, owner: 'hostile' }).catch((error: unknown) => error)
  const waiting = pool.run({}, { timeoutMs: 10_000, owner: 'modest' })
  await expect(waiting).rejects.toMatchObject({ status: 503, headers: { 'retry-after': expect.any(String) } })
  await pool.close()
  expect(await stuck).toBeInstanceOf(JobCrashed)
})

test('a job is ended for the work it does, not for a thread that gets no time', async () => {
  start(1)
  // It waits, as one does whose turn does not come.
  expect(await pool.run({ wait: 2000 }, { timeoutMs: 1000, owner: 'one' })).toBeTypeOf('number')
  await expect(pool.run('spin', { timeoutMs: 200, owner: 'one' })).rejects.toBeInstanceOf(JobTimeout)
})

test('who has patience for less is told that the job had no time, and the next one runs', async () => {
  start(1)
  // A thread needs some of its processor time to begin.
  const waits = pool.run({ wait: 60_000 }, { timeoutMs: 2000, patienceMs: 300, owner: 'one' })
  await expect(waits).rejects.toBeInstanceOf(JobStarved)
  expect(await pool.run({}, { timeoutMs: 10_000, owner: 'one' })).toBeTypeOf('number')
})

test('a thread that has not begun yet has not worked', async () => {
  start(1)
  // As a busy machine answers, where a thread begins later than its first job should be done.
  const notRunning = Object.assign(new Error('Worker instance not running'), { code: 'ERR_WORKER_NOT_RUNNING' })
  const asked = vi.spyOn(Worker.prototype, 'cpuUsage').mockRejectedValueOnce(notRunning)
  expect(await pool.run({ wait: 2000 }, { timeoutMs: 1000, owner: 'one' })).toBeTypeOf('number')
  expect(asked).toHaveBeenCalled()
  asked.mockRestore()
})

test('what a thread has worked before is not counted against the next job', async () => {
  start(1)
  for (let job = 0; job < 4; job++)
    expect(await pool.run({ work: 300 }, { timeoutMs: 800, owner: 'one' })).toBeTypeOf('number')
})

test('jobs of a caller who has left never begin; one that has begun is finished', async () => {
  start(1)
  const caller = new AbortController()
  const terms = { timeoutMs: 10_000, owner: 'left', signal: caller.signal }
  const running = pool.run({ wait: 300 }, terms)
  const left = Promise.allSettled([pool.run('exit', terms), pool.run('exit', terms)])
  const after = pool.run({}, { timeoutMs: 10_000, owner: 'other' })
  const gone = new Error('the caller has left')
  caller.abort(gone)
  expect(await left).toEqual([1, 2].map(() => ({ status: 'rejected', reason: gone })))
  await expect(pool.run({}, terms)).rejects.toBe(gone)
  // The thread lives: neither job that would have ended it has begun.
  expect(await after).toBe(await running)
})
