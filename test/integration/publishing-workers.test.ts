import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { createWorkerPool, JobCrashed, JobTimeout, type WorkerPool } from '../../control/publishing/workers/pool.ts'

/** A thread that does as it is told. */
const SCRIPT = `
import { parentPort, threadId } from 'node:worker_threads'
parentPort.on('message', async (job) => {
  if (job === 'spin') for (;;) {}
  if (job === 'exit') process.exit(3)
  if (job === 'throw') setImmediate(() => { throw new Error('late') })
  else if (job === 'refuse') parentPort.postMessage({ kind: 'refused', status: 400, code: 'archive_rejected', detail: 'no' })
  else if (job === 'memory') { const all = []; for (;;) all.push(new Array(1e5).fill(Math.random())) }
  else {
    await new Promise((resolve) => setTimeout(resolve, job.wait ?? 0))
    parentPort.postMessage({ kind: 'result', result: threadId })
  }
})
`
let folder: string
let pool: WorkerPool
beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-pool-'))
  await writeFile(path.join(folder, 'thread.mjs'), SCRIPT)
})
afterEach(() => pool.close())
afterAll(() => rm(folder, { recursive: true, force: true }))

function start(size: number, { maxWaiting = 100, idleMs }: { maxWaiting?: number; idleMs?: number } = {}): WorkerPool {
  const script = pathToFileURL(path.join(folder, 'thread.mjs'))
  pool = createWorkerPool({ script, size, maxHeapMb: 32, maxWaiting, ...(idleMs !== undefined && { idleMs }) })
  return pool
}

test('runs no more jobs at once than it has threads, and all of them', async () => {
  start(2)
  const threads = await Promise.all(
    Array.from({ length: 10 }, () => pool.run<number>({ wait: 5 }, { timeoutMs: 10_000 })),
  )
  expect(new Set(threads).size).toBe(2)
})

test('a job that never ends is ended, and the next one runs', async () => {
  start(1)
  const stuck = pool.run('spin', { timeoutMs: 200 })
  const next = pool.run({}, { timeoutMs: 10_000 })
  await expect(stuck).rejects.toBeInstanceOf(JobTimeout)
  expect(await next).toBeTypeOf('number')
})

test.each(['exit', 'throw', 'memory'])('a thread that dies (%s) takes only its own job with it', async (job) => {
  start(1)
  await expect(pool.run(job, { timeoutMs: 15_000 })).rejects.toBeInstanceOf(JobCrashed)
  expect(await pool.run({}, { timeoutMs: 10_000 })).toBeTypeOf('number')
})

test('an error of the catalogue keeps its code', async () => {
  start(1)
  await expect(pool.run('refuse', { timeoutMs: 10_000 })).rejects.toMatchObject({
    status: 400,
    code: 'archive_rejected',
    message: 'no',
  })
})

test('too many waiting jobs are refused with 503', async () => {
  start(1, { maxWaiting: 1 })
  const running = pool.run({ wait: 100 }, { timeoutMs: 10_000 })
  const waiting = pool.run({}, { timeoutMs: 10_000 })
  await expect(pool.run({}, { timeoutMs: 10_000 })).rejects.toMatchObject({ status: 503 })
  await Promise.all([running, waiting])
})

test('a thread that nobody needs ends; work that comes later, or just then, is done by another', async () => {
  start(1, { idleMs: 50 })
  const run = () => pool.run<number>({ wait: 1 }, { timeoutMs: 10_000 })
  const first = await run()
  expect(await run()).toBe(first)
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
  const running = pool.run('spin', { timeoutMs: 10_000 })
  const waiting = pool.run({}, { timeoutMs: 10_000 })
  const both = Promise.allSettled([running, waiting])
  await pool.close()
  expect((await both).map((outcome) => outcome.status)).toEqual(['rejected', 'rejected'])
  await expect(pool.run({}, { timeoutMs: 1000 })).rejects.toBeInstanceOf(JobCrashed)
})
