import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startViewLedger, type ViewLedger } from '../../../edge/store/view-ledger.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Redis as the ledger sees it: it can be away, and it can fail. */
function fakeRedis() {
  const stored = new Map<string, number>()
  const redis = {
    status: 'ready',
    fails: false,
    stored,
    multi() {
      const pending: [string, number][] = []
      return {
        hincrby: (_key: string, field: string, count: number) => void pending.push([field, count]),
        async exec() {
          if (redis.fails) throw new Error('away')
          for (const [field, count] of pending) stored.set(field, (stored.get(field) ?? 0) + count)
          return []
        },
      }
    },
  }
  return redis
}

const start = (redis: ReturnType<typeof fakeRedis>): ViewLedger => startViewLedger(redis as never)

test('an outage of Redis loses no view and counts none twice', async () => {
  const redis = fakeRedis()
  const ledger = start(redis)
  ledger.add([['st_a|2026-01-01', 2]])
  await vi.advanceTimersByTimeAsync(1500)
  redis.fails = true
  ledger.add([
    ['st_a|2026-01-01', 3],
    ['st_b|2026-01-01', 1],
  ])
  await vi.advanceTimersByTimeAsync(5000)
  expect(ledger.pending()).toBe(2)
  redis.fails = false
  redis.status = 'reconnecting'
  await vi.advanceTimersByTimeAsync(5000)
  expect(ledger.pending()).toBe(2)
  redis.status = 'ready'
  await vi.advanceTimersByTimeAsync(1500)
  expect(Object.fromEntries(redis.stored)).toEqual({ 'st_a|2026-01-01': 5, 'st_b|2026-01-01': 1 })
  await ledger.stop()
})

test('stopping hands over what is left', async () => {
  const redis = fakeRedis()
  const ledger = start(redis)
  ledger.add(Array.from({ length: 1200 }, (_, index) => [`st_${index}|2026-01-01`, 1] as const))
  await ledger.stop()
  expect(redis.stored.size).toBe(1200)
})
