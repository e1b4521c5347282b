import { expect, test } from 'vitest'
import { createHeldBodies } from '../../../control/ground/http/bodies/held-bodies.ts'

const refusal = { status: 503, headers: { 'retry-after': expect.any(String) } }

test('one caller holds a part of the memory for bodies, all together no more than there is', () => {
  const bodies = createHeldBodies({ total: 100, perCaller: 40 })
  const [first, second] = [bodies.open('a'), bodies.open('a')]
  first.add(30)
  expect(() => second.add(11)).toThrow(expect.objectContaining(refusal))
  second.add(10)
  bodies.open('b').add(40)
  const third = bodies.open('c')
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
