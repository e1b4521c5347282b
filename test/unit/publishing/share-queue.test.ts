import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createShareQueue } from '../../../shared/running/threads/share-queue.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const MAX_WAIT_MS = 1000

function queueOf(share: number) {
  const givenUp: string[] = []
  const queue = createShareQueue<string>({ share, maxWaitMs: MAX_WAIT_MS, onGivenUp: (item) => givenUp.push(item) })
  const add = (owner: string, ...items: string[]): void => {
    for (const item of items) queue.add(owner, item)
  }
  const takeAll = (): string[] => {
    const taken: string[] = []
    for (let item = queue.take(); item !== undefined; item = queue.take()) taken.push(item)
    return taken
  }
  return { queue, givenUp, add, takeAll }
}

test('callers take turns, each in the order of their own jobs', () => {
  const { add, takeAll } = queueOf(10)
  add('a', 'a1', 'a2', 'a3')
  add('b', 'b1')
  add('c', 'c1', 'c2')
  expect(takeAll()).toEqual(['a1', 'b1', 'c1', 'a2', 'c2', 'a3'])
})

test('a caller holds no more than their share, and gets the next place when one is given back', () => {
  const { queue, add, takeAll } = queueOf(2)
  add('a', 'a1', 'a2', 'a3')
  expect(takeAll()).toEqual(['a1', 'a2'])
  queue.release('a')
  expect(takeAll()).toEqual(['a3'])
  expect(queue.size).toBe(0)
})

test('who holds nothing for too long is given up, with all that they have waiting', () => {
  const { queue, givenUp, add } = queueOf(1)
  add('a', 'a1')
  vi.advanceTimersByTime(MAX_WAIT_MS / 2)
  add('a', 'a2')
  vi.advanceTimersByTime(MAX_WAIT_MS / 2)
  expect(givenUp).toEqual(['a1', 'a2'])
  expect(queue.size).toBe(0)
})

test('who waits for their own jobs is not given up', () => {
  const { queue, givenUp, add, takeAll } = queueOf(1)
  add('a', 'a1', 'a2')
  expect(takeAll()).toEqual(['a1'])
  vi.advanceTimersByTime(10 * MAX_WAIT_MS)
  expect(givenUp).toEqual([])
  queue.release('a')
  expect(takeAll()).toEqual(['a2'])
  queue.release('a')
  vi.advanceTimersByTime(10 * MAX_WAIT_MS)
  expect(givenUp).toEqual([])
})

test('draining leaves nothing behind', () => {
  const { queue, givenUp, add, takeAll } = queueOf(1)
  add('a', 'a1', 'a2')
  add('b', 'b1')
  expect(takeAll()).toEqual(['a1', 'b1'])
  expect(queue.drain()).toEqual(['a2'])
  queue.release('a')
  queue.release('b')
  vi.advanceTimersByTime(10 * MAX_WAIT_MS)
  expect(givenUp).toEqual([])
  expect(queue.size).toBe(0)
})

test('what is removed is never taken, and leaves the clock of the rest as it was', () => {
  const { queue, givenUp, add, takeAll } = queueOf(1)
  add('a', 'a1', 'a2', 'a3')
  expect(queue.take()).toBe('a1')
  expect([queue.remove('a', 'a2'), queue.remove('a', 'a2'), queue.remove('b', 'a3')]).toEqual([true, false, false])
  expect(queue.size).toBe(1)
  queue.release('a')
  vi.advanceTimersByTime(MAX_WAIT_MS - 1)
  add('a', 'a4')
  expect(queue.remove('a', 'a4')).toBe(true)
  vi.advanceTimersByTime(1)
  expect(givenUp).toEqual(['a3'])
  expect(takeAll()).toEqual([])
})
