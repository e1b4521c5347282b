import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createShares, type Shares } from '../../../shared/running/shares.ts'

const LIMITS = { places: 10, placesPerCaller: 4, waiting: 100, waitingPerCaller: 6, waitMs: 1000 }

let shares: Shares
let begun: string[]
let refused: string[]

beforeEach(() => {
  vi.useFakeTimers()
  shares = createShares(LIMITS)
  begun = []
  refused = []
})
afterEach(() => vi.useRealTimers())

function enter(caller: string, count = 1): (() => void)[] {
  return Array.from({ length: count }, () =>
    shares.enter(
      caller,
      () => begun.push(caller),
      (status) => refused.push(`${caller} ${status}`),
    ),
  )
}

test('one caller gets its share, others get theirs at once', () => {
  enter('a', 8)
  expect(begun).toEqual(['a', 'a', 'a', 'a'])
  enter('b')
  expect(begun.at(-1)).toBe('b')
  expect(shares.inUse()).toBe(5)
})

test('giving a place back lets the next caller in, callers in turn', () => {
  const places = [...enter('a', 4), ...enter('b', 4), ...enter('c', 2)]
  enter('a', 2)
  enter('c', 2)
  enter('d', 2)
  begun = []
  for (const leave of places) leave()
  expect(begun).toEqual(['a', 'c', 'd', 'a', 'c', 'd'])
  expect(shares.inUse()).toBe(6)
})

test('no one waits in silence: too long is 503, too many of one caller 429', () => {
  enter('a', 11)
  expect(refused).toEqual(['a 429'])
  vi.advanceTimersByTime(LIMITS.waitMs)
  expect(refused).toEqual(['a 429', ...Array.from({ length: 6 }, () => 'a 503')])
  expect(shares.inUse()).toBe(4)
})

test('a caller who leaves while waiting is not let in later', () => {
  const places = enter('a', 4)
  const [leave] = enter('a')
  leave!()
  begun = []
  for (const give of places) give()
  expect(begun).toEqual([])
  expect(shares.inUse()).toBe(0)
})

test('a place that comes in time ends the wait', () => {
  const [first] = enter('a', 4)
  enter('a')
  first!()
  vi.advanceTimersByTime(10 * LIMITS.waitMs)
  expect(refused).toEqual([])
  expect(shares.inUse()).toBe(4)
})
