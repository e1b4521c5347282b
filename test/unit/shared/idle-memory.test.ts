import { createHook } from 'node:async_hooks'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { createCollect, createIdleMemory, keepTickShape } from '../../../shared/running/idle-memory.ts'

const MINUTE_MS = 60_000
const [IDLE, BUSY] = [0.02, 0.3]

test.each([
  [
    'once after the start, when it is idle',
    [
      [IDLE, 0],
      [IDLE, 1],
      [IDLE, 60],
    ],
    [0],
  ],
  [
    'not while it is busy',
    [
      [BUSY, 0],
      [BUSY, 1],
      [IDLE, 2],
    ],
    [2],
  ],
  [
    'once after each busy time',
    [
      [IDLE, 0],
      [BUSY, 20],
      [IDLE, 30],
      [IDLE, 60],
    ],
    [0, 30],
  ],
  [
    'never twice within ten minutes',
    [
      [IDLE, 0],
      [BUSY, 1],
      [IDLE, 2],
      [IDLE, 9],
      [IDLE, 10],
      [IDLE, 11],
    ],
    [0, 10],
  ],
])('%s', (_, looks, expected) => {
  let minute = 0
  const collected: number[] = []
  const memory = createIdleMemory(() => collected.push(minute))
  for (const [share = 0, at = 0] of looks) {
    minute = at
    memory.look(share, at * MINUTE_MS)
  }
  expect(collected).toEqual(expected)
})

test('what nobody holds any more is gone afterwards', async () => {
  const forgotten = (() => new WeakRef(Buffer.alloc(10)))()
  // What was looked at in this turn is held until its end.
  await turn()
  createCollect()()
  expect(forgotten.deref()).toBeUndefined()
})

test('ticks have the same shape after a collection in a quiet moment as before', async () => {
  setFlagsFromString('--allow-natives-syntax')
  const haveSameShape = runInNewContext('(a, b) => %HaveSameMap(a, b)') as (a: object, b: object) => boolean
  const kept = keepTickShape()
  // V8 reads a function when it is first called.
  expect(haveSameShape({}, kept)).toBe(false)
  setFlagsFromString('--no-allow-natives-syntax')
  await turn()
  createCollect()()
  const ticks: object[] = []
  const hook = createHook({
    init: (_id, type, _trigger, tick: object) => void (type === 'TickObject' && ticks.push(tick)),
  })
  hook.enable()
  process.nextTick(() => {})
  hook.disable()
  expect(ticks.map((tick) => haveSameShape(tick, kept))).toEqual([true])
})
