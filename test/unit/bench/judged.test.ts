/** A figure beside its bar: what is said of it, and the table that is kept of all of them. */
import { expect, test } from 'vitest'
import { isMet, tableText, verdictOn, withFigure, type Judged } from '../../../bench/judged.ts'

const judged: Judged = { row: 'a small page', figure: 3.456_789, unit: 'ms', bar: 4 }
const many: Judged = { row: 'publishes a second', figure: 199, unit: '', bar: 200, isLeast: true }
const found = { day: '2026-11-19', commit: 'abcdef12', loadAverage: 0.4 }

test.each([
  [judged, true, 'a small page: 3.457 ms (bar: at most 4 ms)  met'],
  [{ ...judged, figure: 4 }, true, 'a small page: 4 ms (bar: at most 4 ms)  met'],
  [{ ...judged, figure: 4.01 }, false, 'a small page: 4.01 ms (bar: at most 4 ms)  MISSED'],
  [many, false, 'publishes a second: 199 (bar: at least 200)  MISSED'],
  [{ ...many, figure: 200 }, true, 'publishes a second: 200 (bar: at least 200)  met'],
  [{ ...judged, figure: 12_345.67, bar: 20_000 }, true, 'a small page: 12346 ms (bar: at most 20000 ms)  met'],
])('%j', (each, holds, sentence) => {
  expect(isMet(each)).toBe(holds)
  expect(verdictOn(each)).toBe(sentence)
})

test('a figure that is no number misses its bar', () => {
  expect(isMet({ ...judged, figure: Number.NaN })).toBe(false)
  expect(isMet({ ...many, figure: Number.NaN })).toBe(false)
})

test('the first figure of a row stays as what was before, and other rows stay as they are', () => {
  const first = withFigure({}, 'publish', { ...judged, figure: 7.6 }, { ...found, day: '2026-11-18' })
  const other = withFigure(first, 'publish', many, found)
  const last = withFigure(other, 'publish', { ...judged, bar: 3 }, found)
  expect(last['publish']).toEqual({
    'a small page': {
      unit: 'ms',
      bar: 3,
      before: { figure: 7.6, day: '2026-11-18', commit: 'abcdef12', loadAverage: 0.4 },
      after: { figure: 3.456_789, ...found },
    },
    'publishes a second': {
      unit: '',
      bar: 200,
      isLeast: true,
      before: { figure: 199, ...found },
      after: { figure: 199, ...found },
    },
  })
})

test('the table has a line for each row, and what misses its bar stands out', () => {
  const once = withFigure({}, 'publish', many, found)
  const first = withFigure(once, 'publish', { ...judged, figure: 7.6 }, { day: '2026-11-18' })
  const lines = tableText('x64', withFigure(first, 'publish', judged, found)).split('\n')
  expect(lines[0]).toBe('# Figures beside their bars, x64')
  expect(lines.slice(-3)).toEqual([
    '| publish | publishes a second | at least 200 | – | **199 (2026-11-19, abcdef12, load 0.4)** |',
    '| publish | a small page | at most 4 ms | 7.6 ms (2026-11-18) | 3.457 ms (2026-11-19, abcdef12, load 0.4) |',
    '',
  ])
})
