import { expect, test } from 'vitest'
import { countsAt, hasRoom, waitForRoomMs, type Counts } from '../../../control/ground/http/limits/sliding-window.ts'
import { SEED } from '../../support/depth.ts'
import { createRandom } from '../../support/random.ts'

const MINUTE = 60_000
const limit = { points: 3, windowSeconds: 60 }

test.each<[now: number, counts: Counts | undefined, expected: Counts]>([
  [5.5 * MINUTE, undefined, { window: 5, current: 0, previous: 0 }],
  [5.5 * MINUTE, { window: 5, current: 2, previous: 1 }, { window: 5, current: 2, previous: 1 }],
  [6 * MINUTE, { window: 5, current: 2, previous: 1 }, { window: 6, current: 0, previous: 2 }],
  [7 * MINUTE, { window: 5, current: 2, previous: 1 }, { window: 7, current: 0, previous: 0 }],
])('seen at %d, %o counts as %o', (now, counts, expected) => {
  expect(countsAt(counts, now, limit)).toEqual(expected)
})

test.each<[now: number, counts: Counts, room: boolean, waitSeconds: number]>([
  // The last window's three still count almost whole: a fixed window would let three more through at once.
  [6 * MINUTE + 1000, { window: 6, current: 0, previous: 3 }, false, 19],
  [6 * MINUTE + 20_000, { window: 6, current: 0, previous: 3 }, true, 0],
  [6 * MINUTE + 20_000, { window: 6, current: 1, previous: 3 }, false, 20],
  // All of this window's: room comes in the next one, when a third of them is out of reach.
  [6 * MINUTE + 30_000, { window: 6, current: 3, previous: 0 }, false, 50],
])('at %d, %o has room: %s', (now, counts, room, waitSeconds) => {
  expect(hasRoom(counts, now, limit)).toBe(room)
  if (!room) expect(waitForRoomMs(counts, now, limit) / 1000).toBe(waitSeconds)
})

test('a caller who waits as long as told finds room, and a moment earlier none', () => {
  const { between } = createRandom(SEED)
  for (let round = 0; round < 2000; round++) {
    const points = between(1, 199)
    const random = { points, windowSeconds: between(1, 3999) }
    const now = 1_750_000_000_000 + between(0, 1e9)
    const window = Math.floor(now / (random.windowSeconds * 1000))
    const counts = { window, current: between(0, points), previous: between(0, points) }
    if (hasRoom(counts, now, random)) continue
    const then = now + waitForRoomMs(counts, now, random)
    expect(hasRoom(countsAt(counts, then, random), then, random)).toBe(true)
    expect(hasRoom(countsAt(counts, then - 1, random), then - 1, random)).toBe(false)
  }
})
