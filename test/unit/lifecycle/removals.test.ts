import { expect, test } from 'vitest'
import { mayNotRemove } from '../../../control/ground/terms/removals.ts'

test.each([
  ['drops', 20, 0, false],
  ['drops', 21, 0, true],
  ['drops', 21, 209, true],
  ['drops', 21, 210, false],
  ['drops', 100, 1000, false],
  ['drops', 101, 1000, true],
  ['blobs', 20, 20, false],
  ['blobs', 21, 21, true],
  ['blobs', 500, 1000, false],
  ['blobs', 501, 1000, true],
] as const)('of all %s, %d removals of %d need someone to look first: %s', (what, due, all, expected) => {
  expect(mayNotRemove(what, due, all)).toBe(expected)
})
