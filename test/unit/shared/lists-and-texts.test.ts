/** Small functions that say what is there, so that no caller has to assert it. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { before } from '../../../shared/values/before.ts'
import { pairs } from '../../../shared/redis/pairs.ts'
import { stepAt } from '../../../shared/running/steps.ts'
import { sideBySide } from '../../../shared/values/side-by-side.ts'
import { arrayLiteral, parseTextArray } from '../../../control/ground/database/array-types.ts'
import { one } from '../../../control/ground/database/sql.ts'

test.each([
  ['/a?b', '?', '/a'],
  ['/a?b?c', '?', '/a'],
  ['?b', '?', ''],
  ['/a', '?', '/a'],
  ['', '?', ''],
])('the text of %j before %j is %j', (text, mark, expected) => expect(before(text, mark)).toBe(expected))

test.each([
  [[], []],
  [['a', '1'], [['a', '1']]],
  [
    ['a', '1', 'b', ''],
    [
      ['a', '1'],
      ['b', ''],
    ],
  ],
  [['a', '1', 'b'], [['a', '1']]],
  [['', '1'], [['', '1']]],
])('%j in pairs is %j', (flat, expected) => expect([...pairs(flat)]).toEqual(expected))

test.each([
  [0, 10],
  [1, 20],
  [2, 30],
  [99, 30],
])('step %d of three takes %d: the last one repeats', (index, expected) =>
  expect(stepAt([10, 20, 30], index)).toBe(expected),
)

test('lists go side by side, and only when they are of the same length', () => {
  expect(sideBySide(['a', 'b'], [1, undefined])).toEqual([
    ['a', 1],
    ['b', undefined],
  ])
  expect(() => sideBySide(['a'], [])).toThrow('1 and 0 do not go together')
})

test('a query that must have a row says so when it has none', () => {
  expect(one([{ count: 0 }])).toEqual({ count: 0 })
  expect(() => one([])).toThrow('has none')
})

test('a list for Postgres is read back as it was, whatever is in its texts', () => {
  const element = fc.oneof(fc.string(), fc.constantFrom(null, '', 'NULL', '"', '\\', 'a,b', '{}', 'a'.repeat(64)))
  fc.assert(
    fc.property(fc.array(element), (list) => {
      expect(parseTextArray(arrayLiteral(list))).toEqual(list)
      const hashes = list.filter((one) => one !== null && !/["\\]/.test(one))
      expect(parseTextArray(arrayLiteral(hashes))).toEqual(hashes)
    }),
  )
})
