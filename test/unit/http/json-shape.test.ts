import fc from 'fast-check'
import { expect, test } from 'vitest'
import { requireJsonShape } from '../../../control/ground/http/bodies/json-shape.ts'
import { ApiError } from '../../../shared/contracts/errors.ts'

const BOUNDS = { maxDepth: 4, maxValues: 10 }

function problemOf(text: string): string | undefined {
  try {
    requireJsonShape(Buffer.from(text), BOUNDS)
    return undefined
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError)
    return (error as ApiError).message
  }
}

test.each([
  '{}',
  '[[[[]]]]',
  '[[[[]]],[[[]]]]',
  '"[[[[[[[["',
  String.raw`["\"[[[[[[", "\\", {"a]":"{{{{{"}]`,
  '[1,2,3,4,5,6,7,8,9]',
  '{"a":"1,2,3,4,5,6,7,8,9,10,11,12"}',
])('%s passes', (text) => expect(problemOf(text)).toBeUndefined())

test.each(['[[[[[', '{"a":[{"b":[[1]]}]}', String.raw`["\\",[[[[`])('%s is too deep', (text) =>
  expect(problemOf(text)).toContain('nested'),
)

test.each(['[1,2,3,4,5,6,7,8,9,10,11]', `{${Array.from({ length: 12 }, (_, index) => `"k${index}":1`).join()}}`])(
  '%s has too many values',
  (text) => expect(problemOf(text)).toContain('values'),
)

test('what JSON.stringify writes is judged by its real depth', () => {
  const depthOf = (value: unknown): number =>
    typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => {
      const shape = { maxDepth: 4, maxValues: Infinity }
      let isTooDeep = false
      try {
        requireJsonShape(Buffer.from(JSON.stringify(value)), shape)
      } catch {
        isTooDeep = true
      }
      expect(isTooDeep).toBe(depthOf(value) > 4)
    }),
  )
})
