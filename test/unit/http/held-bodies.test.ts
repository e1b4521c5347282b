import { expect, test, vi } from 'vitest'
import { createHeldBodies } from '../../../control/ground/http/bodies/held-bodies.ts'
import { SEED } from '../../support/depth.ts'
import { createRandom, type Random } from '../../support/random.ts'

const read = { isOver: () => true, stop: () => {} }
const refusal = { status: 503, headers: { 'retry-after': expect.any(String) } }

test('one caller holds a part of the memory for bodies, all together no more than there is', () => {
  const bodies = createHeldBodies({ total: 100, perCaller: 40 })
  const [first, second] = [bodies.open('a', read), bodies.open('a', read)]
  first.add(30)
  expect(() => bodies.open('a', read).add(11)).toThrow(expect.objectContaining(refusal))
  second.add(10)
  bodies.open('b', read).add(40)
  expect(() => bodies.open('c', read).add(21)).toThrow(expect.objectContaining(refusal))
  const third = bodies.open('c', read)
  third.add(20)
  first.release()
  first.release()
  third.add(20)
  second.add(10)
  second.add(-5)
  const fourth = bodies.open('a', read)
  fourth.add(5)
  expect(() => fourth.add(21)).toThrow(expect.objectContaining(refusal))
  // Refused once, it holds nothing, and gets nothing more.
  expect(() => fourth.add(1)).toThrow(expect.objectContaining(refusal))
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
  expect(() => bodies.open('a', beingRead()).add(50)).toThrow(expect.objectContaining(refusal))
  expect(large.stop).not.toHaveBeenCalled()
  begun.add(10)
  expect(large.stop).toHaveBeenCalledExactlyOnceWith(expect.objectContaining(refusal))
  expect(small.stop).not.toHaveBeenCalled()
  expect(() => largest.add(1)).toThrow(expect.objectContaining(refusal))
  largest.release()
  later.add(13)
  expect(() => later.add(1)).toThrow(expect.objectContaining(refusal))
})

/** One who sends: bit by bit, until all is there or it is refused; its answer goes out a while later. */
interface Sender {
  state: 'sending' | 'whole' | 'refused' | 'answered'
  sent: number
}

/** Five bodies of at most 30 from one caller who may hold 64, in an order of chance. */
function sendInAnyOrder(random: Random): Sender[] {
  const bodies = createHeldBodies({ total: 1000, perCaller: 64 })
  const size = random.between(20, 30)
  const senders = Array.from({ length: 5 }, (): Sender => ({ state: 'sending', sent: 0 }))
  const held = senders.map((sender) =>
    bodies.open('a', { isOver: () => sender.state === 'whole', stop: () => void (sender.state = 'refused') }),
  )
  while (senders.some(({ state }) => state === 'sending')) {
    const index = random.below(senders.length)
    const sender = senders[index]!
    if (sender.state === 'refused' && random.chance(0.2)) {
      held[index]!.release()
      sender.state = 'answered'
    } else if (sender.state === 'sending') {
      const bytes = Math.min(random.between(1, 6), size - sender.sent)
      try {
        held[index]!.add(bytes)
        sender.sent += bytes
        if (sender.sent === size) sender.state = 'whole'
      } catch {
        sender.state = 'refused'
      }
    }
  }
  return senders
}

test('whatever arrives when, at least two of those that fit beside each other become whole', () => {
  const random = createRandom(SEED)
  for (let round = 0; round < 3000; round++) {
    const whole = sendInAnyOrder(random).filter(({ state }) => state === 'whole')
    expect(whole.length, `round ${round}`).toBeGreaterThanOrEqual(2)
  }
})
