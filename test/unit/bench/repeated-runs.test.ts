/** What runs of the same tests say together: green only if each was, and each had the same tests. */
import { expect, test } from 'vitest'
import { duration, type Run, sayTogether } from '../../repeat/runs.ts'

const GREEN: Run = {
  commit: 'c',
  command: 'npm test',
  beside: 0,
  seconds: 481,
  stolen: 0.004,
  passed: 9,
  skipped: 0,
  failed: [],
  tests: 'digest',
}

test.each<[string, Partial<Run>[], boolean, string]>([
  ['no run', [], false, ''],
  ['one run', [{}], true, '1 alone: 1 green, 8:01'],
  [
    'runs beside others are told for themselves',
    [{ beside: 2, seconds: 650 }, {}, { seconds: 59.6 }],
    true,
    '2 alone: 2 green, 8:01, 1:00\n1 beside 2 busy loops: 1 green, 10:50',
  ],
  ['a host with others', [{ stolen: 0.117 }], true, '1 alone: 1 green, 8:01 (12 % to others of the host)'],
  [
    'a red run',
    [{ failed: ['a > b'] }, {}, { failed: ['a > b', 'c'] }],
    false,
    '3 alone: 1 green, 8:01, 8:01, 8:01\nred 2 ×: a > b\nred 1 ×: c',
  ],
  ['a run without tests', [{ passed: 0 }], false, '1 alone: 0 green, 8:01'],
  [
    'another set of tests',
    [{}, { tests: 'another' }],
    false,
    '2 alone: 2 green, 8:01, 8:01\nnot the same tests each time: compare names-digest, names-another',
  ],
])('%s', (_, changes, isGreen, text) => {
  expect(sayTogether(changes.map((change) => ({ ...GREEN, ...change })))).toEqual({ text, isGreen })
})

test.each([
  [59.4, '59 s'],
  [59.5, '1:00'],
  [605, '10:05'],
])('%f seconds are %s', (seconds, text) => {
  expect(duration(seconds)).toBe(text)
})
