/** Orders at the CA, counted in a real Redis by several edges. */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createOrderBudget, ORDER_LIMITS, ORDER_WINDOW_MS } from '../../certs/orders/order-budget.ts'
import { keys } from '../../shared/redis/keys.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'

let server: TestRedis
let redis: Redis
let nowMs: number
const clock = { now: () => nowMs }

beforeAll(async () => {
  server = await startTestRedis()
  redis = new Redis(server.url)
})
afterAll(async () => {
  redis.disconnect()
  await server.stop()
})
beforeEach(async () => {
  nowMs = 1_800_000_000_000
  await redis.flushall()
})

/** How many of so many orders at once are made, by two edges. */
async function made(times: number, organisation: string, kind: 'new' | 'renewal'): Promise<number> {
  const edges = [createOrderBudget(redis, clock), createOrderBudget(redis, clock)]
  const waits = await Promise.all(
    Array.from({ length: times }, (_, index) => edges[index % 2]!.take(organisation, kind)),
  )
  return waits.filter((wait) => wait === undefined).length
}

test('one organisation has a part, and its renewals a larger one', async () => {
  expect(await made(100, 'org_a', 'new')).toBe(ORDER_LIMITS.new.ofOrganisation)
  expect(await made(100, 'org_a', 'renewal')).toBe(
    ORDER_LIMITS.renewal.ofOrganisation - ORDER_LIMITS.new.ofOrganisation,
  )
  expect(await made(1, 'org_b', 'new')).toBe(1)
})

test('all new names together leave room for renewals, and all together stay below the limit of the CA', async () => {
  let orders = 0
  for (let organisation = 0; organisation < 20; organisation++) orders += await made(30, `org_${organisation}`, 'new')
  expect(orders).toBe(ORDER_LIMITS.new.ofAll)
  for (let organisation = 0; organisation < 20; organisation++)
    orders += await made(30, `org_${organisation}`, 'renewal')
  expect(orders).toBe(ORDER_LIMITS.renewal.ofAll)
  expect(orders).toBeLessThan(300)
})

test('there is room again as soon as the oldest are three hours old, and not before', async () => {
  const budget = createOrderBudget(redis, clock)
  expect(await made(10, 'org_a', 'new')).toBe(10)
  nowMs += 1000
  expect(await made(30, 'org_a', 'new')).toBe(20)
  expect(await budget.take('org_a', 'new')).toBe(ORDER_WINDOW_MS - 1000)
  nowMs += ORDER_WINDOW_MS - 1001
  expect(await budget.take('org_a', 'new')).toBe(1)
  nowMs += 1
  expect(await made(30, 'org_a', 'new')).toBe(10)
})

test('what is refused is not counted, and what is old leaves no trace', async () => {
  await made(100, 'org_a', 'new')
  expect(await redis.zcard(keys.acmeOrders)).toBe(ORDER_LIMITS.new.ofOrganisation)
  expect(await redis.pttl(keys.acmeOrdersOf('org_a'))).toBeGreaterThan(0)
})
