import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRateLimiter, type RateLimiter } from '../../control/ground/http/limits/rate-limit.ts'
import { startRedis } from '../../control/operations/supervisor/redis/redis.ts'
import type { ApiError } from '../../shared/contracts/errors.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'

const limit = { points: 3, windowSeconds: 60 }
/** The first second of a window. */
const START_MS = Math.ceil(Date.now() / 60_000) * 60_000

let server: TestRedis
const clients: Redis[] = []
let now = START_MS
const clock = { now: () => now }

/** A Redis that is there is waited for: each process counts for itself where it is not heard. */
const PATIENT_MS = 120_000

function clientOf(url: string): Redis {
  const redis = new Redis(url, { enableOfflineQueue: false, commandTimeout: PATIENT_MS, lazyConnect: true })
  redis.on('error', () => {})
  clients.push(redis)
  return redis
}

async function connect(url: string): Promise<Redis> {
  const redis = clientOf(url)
  await redis.connect()
  return redis
}

beforeAll(async () => {
  server = await startTestRedis()
})
afterAll(async () => {
  for (const client of clients) client.disconnect()
  await server.stop()
})

/** How many of that many attempts are admitted, and what the last refused one is told to wait. */
async function attempt(limiter: RateLimiter, key: string, times: number): Promise<{ admitted: number; wait: number }> {
  let [admitted, wait] = [0, 0]
  for (let use = 0; use < times; use++) {
    const refused = await limiter.consume('publish', key, limit).catch((error: unknown) => error)
    if (refused === undefined) admitted++
    else wait = Number((refused as ApiError).headers['retry-after'])
  }
  return { admitted, wait }
}

/** The window slides: what was used at its end still counts after it. */
async function expectSliding(limiter: RateLimiter): Promise<void> {
  const key = randomUUID()
  now = START_MS + 58_000
  expect(await attempt(limiter, key, 5)).toEqual({ admitted: 3, wait: 22 })
  now = START_MS + 61_000
  expect(await attempt(limiter, key, 5)).toEqual({ admitted: 0, wait: 19 })
  now += 19_000
  expect(await attempt(limiter, key, 5)).toEqual({ admitted: 1, wait: 20 })
  now += 3 * 60_000
  expect((await attempt(limiter, key, 5)).admitted).toBe(3)
}

/** A network that is full costs the browser behind it nothing. */
async function expectAllOrNone(limiter: RateLimiter): Promise<void> {
  now = START_MS
  const [network, browser] = [randomUUID(), randomUUID()]
  const both = [
    { name: 'network', key: network, limit },
    { name: 'browser', key: browser, limit },
  ]
  for (let use = 0; use < 2; use++) await limiter.consume('network', network, limit)
  await limiter.consumeAll(both)
  for (let use = 0; use < 5; use++)
    await expect(limiter.consumeAll(both)).rejects.toMatchObject({ code: 'rate_limited' })
  // One of three is used.
  for (let use = 0; use < 2; use++) await limiter.consume('browser', browser, limit)
  await expect(limiter.consume('browser', browser, limit)).rejects.toMatchObject({ code: 'rate_limited' })
}

describe('with Redis', () => {
  test('of several limits all are used or none', async () => {
    await expectAllOrNone(createRateLimiter({ redis: await connect(server.url), clock }))
  })

  test('the window slides, and a caller who waits as long as told is admitted', async () => {
    await expectSliding(createRateLimiter({ redis: await connect(server.url), clock }))
  })

  test('also on the stand-in', async () => {
    const dataDir = await mkdtemp(path.join(os.tmpdir(), 'dropway-stand-in-'))
    const standIn = await startRedis({ dataDir, searchPath: '' })
    const redis = await connect(standIn.url)
    await expectSliding(createRateLimiter({ redis, clock }))
    expect((await redis.keys('*')).length).toBe(1)
    await standIn.stop()
    await rm(dataDir, { recursive: true, force: true })
  })

  test('processes share one count, however they race; keys and names do not', async () => {
    now = START_MS
    const limiters = await Promise.all(
      Array.from({ length: 4 }, async () => createRateLimiter({ redis: await connect(server.url), clock })),
    )
    const key = randomUUID()
    const outcomes = await Promise.all(limiters.map((limiter) => attempt(limiter, key, 5)))
    expect(outcomes.reduce((sum, { admitted }) => sum + admitted, 0)).toBe(3)
    await limiters[0]!.consume('publish', randomUUID(), limit)
    await limiters[0]!.consume('another', key, limit)
  })

  test('what no one uses any more is forgotten', async () => {
    now = START_MS
    const redis = await connect(server.url)
    const key = randomUUID()
    await createRateLimiter({ redis, clock }).consume('publish', key, limit)
    const [stored] = await redis.keys(`*${key}`)
    const ttl = await redis.pttl(stored!)
    expect(ttl).toBeGreaterThan(60_000)
    expect(ttl).toBeLessThanOrEqual(120_000)
  })
})

describe('without Redis each process counts for itself', () => {
  test('when it was never there', async () => {
    const redis = clientOf(path.join(os.tmpdir(), `${randomUUID()}.sock`))
    await expectSliding(createRateLimiter({ redis, clock }))
    await expectAllOrNone(createRateLimiter({ redis, clock }))
  })

  test('while it is frozen, and together again afterwards', async () => {
    now = START_MS
    const redis = await connect(server.url)
    redis.options.commandTimeout = 300
    const limiter = createRateLimiter({ redis, clock })
    const [key, later] = [randomUUID(), randomUUID()]
    process.kill(server.pid, 'SIGSTOP')
    try {
      expect((await attempt(limiter, key, 4)).admitted).toBe(3)
    } finally {
      process.kill(server.pid, 'SIGCONT')
    }
    const isShared = async (): Promise<boolean> => {
      await limiter.consume('publish', later, { points: 1_000_000, windowSeconds: 60 })
      return (await redis.keys(`*${later}`).catch(() => [])).length === 1
    }
    await expect.poll(isShared).toBe(true)
  })
})
