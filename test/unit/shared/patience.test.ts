import { expect, test } from 'vitest'
import { EnvReader } from '../../../shared/settings/env.ts'
import { readPatience } from '../../../shared/settings/patience.ts'

test.each([
  [undefined, 1],
  ['', 1],
  ['1', 1],
  ['5', 5],
  // Settings name these as problems; no part may wait for ever, or not at all, meanwhile.
  ['0', 1],
  ['-3', 1],
  ['2.5', 1],
  ['6', 1],
  ['Infinity', 1],
  ['much', 1],
])('PATIENCE=%s makes waits %i times as long', (text, factor) => {
  expect(readPatience(new EnvReader({ PATIENCE: text }))).toBe(factor)
})
