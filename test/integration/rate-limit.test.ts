import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRateLimiter } from '../../control/http/rate-limit.ts'
import { ApiError } from '../../shared/errors.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'

let server: TestRedis
const clients: Redis[] = []

function connect(): Redis {
  const redis = new Redis(server.url, { enableOfflineQueue: false, commandTimeout: 500, lazyConnect: true })
  redis.on('error', () => {})
  clients.push(redis)
  return redis
}

beforeAll(async () => {
  server = await startTestRedis()
})
afterAll(async () => {
  for (const client of clients) client.disconnect()
  await server.stop()
})

const limit = { points: 3, windowSeconds: 60 }

test('two processes share one count, keys do not, and Retry-After is the rest of the window', async () => {
  const [first, second] = [connect(), connect()]
  await Promise.all([first.connect(), second.connect()])
  const here = createRateLimiter({ redis: first })
  const there = createRateLimiter({ redis: second })
  const key = randomUUID()
  await here.consume('publish', key, limit)
  await there.consume('publish', key, limit)
  await here.consume('publish', key, limit)
  const refused = await there.consume('publish', key, limit).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(ApiError)
  const wait = Number((refused as ApiError).headers['retry-after'])
  expect(wait).toBeGreaterThan(50)
  expect(wait).toBeLessThanOrEqual(60)
  await here.consume('publish', randomUUID(), limit)
  await here.consume('another', key, limit)
})

test('without Redis each process counts for itself', async () => {
  const limiter = createRateLimiter({ redis: connect() })
  const key = randomUUID()
  for (let use = 0; use < limit.points; use++) await limiter.consume('publish', key, limit)
  await expect(limiter.consume('publish', key, limit)).rejects.toMatchObject({ status: 429 })
})
