import { describe, expect, test } from 'vitest'
import { evaluate, type Outcome, type Preconditions } from '../../../edge/send/preconditions.ts'

const file = { etag: '"a"', size: 100 }
const nothing: Preconditions = {
  method: 'GET',
  ifMatch: undefined,
  ifNoneMatch: undefined,
  ifRange: undefined,
  range: undefined,
}
const ask = (asked: Partial<Preconditions>): Outcome => evaluate({ ...nothing, ...asked }, file)
const rangeOf = ([start, end]: [number, number]) => ({ start, end })
const ranges = (first: [number, number], ...others: [number, number][]): Outcome => ({
  kind: 'ranges',
  ranges: [rangeOf(first), ...others.map(rangeOf)],
})

describe('conditions, in the order of RFC 9110 §13.2.2', () => {
  test.each<[Partial<Preconditions>, Outcome['kind']]>([
    [{}, 'whole'],
    [{ ifMatch: '"a"' }, 'whole'],
    [{ ifMatch: '*' }, 'whole'],
    [{ ifMatch: ' * ' }, 'whole'],
    [{ ifMatch: '"b", "a"' }, 'whole'],
    [{ ifMatch: '"b"' }, 'precondition-failed'],
    [{ ifMatch: 'W/"a"' }, 'precondition-failed'],
    [{ ifMatch: '"b"', ifNoneMatch: '"a"' }, 'precondition-failed'],
    [{ ifNoneMatch: '"a"' }, 'not-modified'],
    [{ ifNoneMatch: 'W/"a"' }, 'not-modified'],
    [{ ifNoneMatch: '"b", W/"a"' }, 'not-modified'],
    [{ ifNoneMatch: '*' }, 'not-modified'],
    [{ ifNoneMatch: '"b"' }, 'whole'],
    [{ ifNoneMatch: '"", "a"' }, 'not-modified'],
    [{ ifNoneMatch: '"a"', range: 'bytes=0-1' }, 'not-modified'],
    [{ range: 'bytes=0-1', ifRange: '"a"' }, 'ranges'],
    [{ range: 'bytes=0-1', ifRange: ' "a" ' }, 'ranges'],
    [{ range: 'bytes=0-1', ifRange: '"b"' }, 'whole'],
    [{ range: 'bytes=0-1', ifRange: 'W/"a"' }, 'whole'],
    [{ range: 'bytes=0-1', ifRange: 'Wed, 31 Dec 2025 00:00:00 GMT' }, 'whole'],
    [{ range: 'bytes=0-1', method: 'HEAD' }, 'whole'],
  ])('%j → %s', (asked, kind) => {
    expect(ask(asked).kind).toBe(kind)
  })
})

describe('ranges', () => {
  test.each<[string, Outcome]>([
    ['bytes=0-0', ranges([0, 0])],
    ['bytes=0-', ranges([0, 99])],
    ['bytes=-1', ranges([99, 99])],
    ['bytes=-500', ranges([0, 99])],
    ['bytes=50-500', ranges([50, 99])],
    ['Bytes = 1-2', ranges([1, 2])],
    ['bytes=0-1, 5-6', ranges([0, 1], [5, 6])],
    ['bytes=0-1,,5-6', ranges([0, 1], [5, 6])],
    ['bytes=200-300, 0-1', ranges([0, 1])],
    ['bytes=100-', { kind: 'unsatisfiable' }],
    ['bytes=-0', { kind: 'unsatisfiable' }],
    ['bytes=', { kind: 'whole' }],
    ['bytes=-', { kind: 'whole' }],
    ['bytes=a-b', { kind: 'whole' }],
    ['bytes=5-1', { kind: 'whole' }],
    ['bytes=1.5-2', { kind: 'whole' }],
    ['items=0-1', { kind: 'whole' }],
    [' bytes=1-2', ranges([1, 2])],
    ['kilobytes=1-2', { kind: 'whole' }],
    ['bytes=x1-2', { kind: 'whole' }],
    ['bytes=1-2x', { kind: 'whole' }],
    ['bytes=0-99, 0-99', { kind: 'whole' }],
    // As long as the whole is still worth it, one byte more is not.
    ['bytes=0-49, 50-99', ranges([0, 49], [50, 99])],
    ['bytes=0-49, 49-99', { kind: 'whole' }],
    ['bytes=0-18446744073709551616', { kind: 'ranges', ranges: [{ start: 0, end: 99 }] }],
    [`bytes=${Array.from({ length: 50 }, (_, index) => `${index}-${index}`).join(',')}`, { kind: 'whole' }],
    ['bytes=99999999999999999999-', { kind: 'unsatisfiable' }],
    // Forty digits are a number, one more is a mistake.
    [`bytes=${'0'.repeat(39)}1-${'0'.repeat(39)}2`, ranges([1, 2])],
    [`bytes=${'0'.repeat(40)}1-2`, { kind: 'whole' }],
    [`bytes=1-${'0'.repeat(40)}2`, { kind: 'whole' }],
  ])('%s', (range, outcome) => {
    expect(ask({ range })).toEqual(outcome)
  })

  const single = (count: number): [number, number][] => Array.from({ length: count }, (_, index) => [index, index])
  test.each([
    [16, ranges([0, 0], ...single(16).slice(1))],
    [17, { kind: 'whole' }],
  ])('%d at once', (count, outcome) => {
    const range = `bytes=${single(count)
      .map((ends) => ends.join('-'))
      .join(',')}`
    expect(ask({ range })).toEqual(outcome)
  })

  test('nothing can be taken of nothing', () => {
    expect(evaluate({ ...nothing, range: 'bytes=0-' }, { etag: '"a"', size: 0 })).toEqual({
      kind: 'unsatisfiable',
    })
  })
})
