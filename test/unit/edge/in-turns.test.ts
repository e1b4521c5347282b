import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { inTurns } from '../../../edge/accept/in-turns.ts'

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

test('hundreds at once are handled a few per turn, in their order', async () => {
  const handled: number[] = []
  const add = inTurns((n: number) => void handled.push(n))
  for (const n of numbers(300)) add(n)
  expect(handled).toEqual([])
  const perTurn: number[] = []
  while (handled.length < 300) {
    const before = handled.length
    await turn()
    perTurn.push(handled.length - before)
  }
  expect(handled).toEqual(numbers(300))
  expect(Math.max(...perTurn)).toBe(10)
})

test('what comes while others are handled has its turn too', async () => {
  const handled: string[] = []
  const add = inTurns((name: string) => {
    handled.push(name)
    if (name === 'first') add('later')
  })
  add('first')
  await turn()
  await turn()
  expect(handled).toEqual(['first', 'later'])
  add('much later')
  await turn()
  expect(handled).toEqual(['first', 'later', 'much later'])
})
