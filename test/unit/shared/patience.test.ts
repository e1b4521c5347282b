import { expect, test } from 'vitest'
import { factorOf, MAX_PATIENCE } from '../../../shared/settings/patience.ts'

test.each([
  [undefined, 1],
  ['1', 1],
  ['5', 5],
  [String(MAX_PATIENCE), MAX_PATIENCE],
  // Settings name these as problems; no part may wait for ever, or not at all, meanwhile.
  ['', 1],
  ['0', 1],
  ['-3', 1],
  ['2.5', 1],
  ['Infinity', 1],
  ['much', 1],
  [String(MAX_PATIENCE + 1), 1],
])('PATIENCE=%s makes waits %i times as long', (text, factor) => {
  expect(factorOf(text)).toBe(factor)
})
