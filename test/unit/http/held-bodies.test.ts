import { expect, test, vi } from 'vitest'
import { createHeldBodies } from '../../../control/ground/http/bodies/held-bodies.ts'

const read = { isOver: () => true, stop: () => {} }
const refusal = { status: 503, headers: { 'retry-after': expect.any(String) } }

test('one caller holds a part of the memory for bodies, all together no more than there is', () => {
  const bodies = createHeldBodies({ total: 100, perCaller: 40 })
  const [first, second] = [bodies.open('a', read), bodies.open('a', read)]
  first.add(30)
  expect(() => second.add(11)).toThrow(expect.objectContaining(refusal))
  second.add(10)
  bodies.open('b', read).add(40)
  const third = bodies.open('c', read)
  expect(() => third.add(21)).toThrow(expect.objectContaining(refusal))
  third.add(20)
  first.release()
  first.release()
  third.add(20)
  second.add(10)
  second.add(-5)
  expect(() => second.add(6)).toThrow(expect.objectContaining(refusal))
  second.add(5)
})

function beingRead() {
  return { isOver: () => false, stop: vi.fn<(reason: Error) => void>() }
}

test('of the large ones that one caller sends at once those that began first become whole', () => {
  const bodies = createHeldBodies({ total: 1000, perCaller: 64 })
  const readings = Array.from({ length: 5 }, beingRead)
  const held = readings.map((reading) => bodies.open('a', reading))
  const other = beingRead()
  bodies.open('b', other).add(64)
  const stopped = new Set<number>()
  for (let part = 0; part < 30; part++)
    for (const [index, body] of held.entries()) {
      if (stopped.has(index)) continue
      try {
        body.add(1)
      } catch (error) {
        expect(error).toMatchObject(refusal)
        stopped.add(index)
        body.release()
      }
    }
  expect([...stopped].toSorted((a, b) => a - b)).toEqual([2, 3, 4])
  expect(other.stop).not.toHaveBeenCalled()
  expect(readings[0]?.stop).not.toHaveBeenCalled()
  expect(readings[1]?.stop).not.toHaveBeenCalled()
})

test('the largest of those that began later gives way, and only where that is enough', () => {
  const bodies = createHeldBodies({ total: 1000, perCaller: 64 })
  const [first, small, large] = [beingRead(), beingRead(), beingRead()]
  const begun = bodies.open('a', first)
  begun.add(40)
  const later = bodies.open('a', small)
  later.add(1)
  const largest = bodies.open('a', large)
  largest.add(20)
  expect(() => later.add(50)).toThrow(expect.objectContaining(refusal))
  expect(large.stop).not.toHaveBeenCalled()
  begun.add(10)
  expect(large.stop).toHaveBeenCalledExactlyOnceWith(expect.objectContaining(refusal))
  expect(small.stop).not.toHaveBeenCalled()
  expect(() => largest.add(1)).toThrow(expect.objectContaining(refusal))
  largest.release()
  later.add(13)
  expect(() => later.add(1)).toThrow(expect.objectContaining(refusal))
})
