import fc from 'fast-check'
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

/** Someone who entered: what became of it so far. */
interface Entered {
  readonly caller: string
  readonly leave: () => void
  state: 'waiting' | 'inside' | 'refused'
  waitedMs: number
}

/** So few that every way to use them up is short. */
const FEW = { places: 3, placesPerCaller: 2, waiting: 3, waitingPerCaller: 2, waitMs: 1000 }
const CALLERS = ['a', 'b']

const moves = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('enter' as const), caller: fc.constantFrom(...CALLERS) }),
    fc.record({ kind: fc.constant('leave' as const), whose: fc.nat(1000) }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1, 400, 1000) }),
  ),
  { maxLength: 60, size: 'max' },
)

test('whoever comes and goes when: no caller has more than its share, and no one waits longer than promised', () => {
  fc.assert(
    fc.property(moves, (schedule) => {
      const own = createShares(FEW)
      const entered: Entered[] = []
      const of = (state: Entered['state'], caller?: string): number =>
        entered.filter((one) => one.state === state && (caller ?? one.caller) === one.caller).length
      for (const move of schedule) {
        if (move.kind === 'enter') {
          const one: { -readonly [Field in keyof Entered]: Entered[Field] } = {
            caller: move.caller,
            leave: () => {},
            state: 'waiting',
            waitedMs: 0,
          }
          const into = (state: Entered['state']) => () => (one.state = state)
          one.leave = own.enter(move.caller, into('inside'), into('refused'))
          entered.push(one)
        } else if (move.kind === 'leave' && entered.length > 0) {
          // Those who were refused leave too, some time afterwards.
          const [gone] = entered.splice(move.whose % entered.length, 1)
          gone!.leave()
        } else if (move.kind === 'wait') {
          for (const one of entered) if (one.state === 'waiting') one.waitedMs += move.ms
          vi.advanceTimersByTime(move.ms)
        }
        expect(own.inUse()).toBe(of('inside'))
        expect(of('inside')).toBeLessThanOrEqual(FEW.places)
        expect(of('waiting')).toBeLessThanOrEqual(FEW.waiting)
        for (const caller of CALLERS) {
          expect(of('inside', caller)).toBeLessThanOrEqual(FEW.placesPerCaller)
          expect(of('waiting', caller)).toBeLessThanOrEqual(FEW.waitingPerCaller)
        }
        for (const one of entered) if (one.state === 'waiting') expect(one.waitedMs).toBeLessThan(FEW.waitMs)
      }
    }),
    { numRuns: 500 },
  )
})
