/** Which history the next publication belongs to, from a table. */
import { describe, expect, test } from 'vitest'
import {
  nextOrdinal,
  standingOf,
  unknownAllowance,
  type PublishedState,
} from '../../../control/ground/routing/history-rules.ts'
import {
  decodeHistory,
  encodeEpoch,
  relationOf,
  revisionFloor,
  type History,
} from '../../../shared/contracts/history.ts'

const own = { ordinal: 4, id: 'own', ofThisLife: true, removedUnknown: 0 }
const nothing: PublishedState = { writer: undefined, newest: undefined, edges: { all: [], lasting: [] } }
const seen = (...histories: History[]) => ({ all: histories, lasting: histories })
const at = (ordinal: number, n: number) => revisionFloor(ordinal) + n

describe('a database publishes', () => {
  test.each<[what: string, history: typeof own, published: PublishedState, kind: string]>([
    ['to an empty Redis', own, nothing, 'go on'],
    ['to its own', own, { ...nothing, writer: own, newest: { revision: at(4, 9), ours: at(4, 9) } }, 'go on'],
    ['over an older history', own, { ...nothing, writer: { ordinal: 3, id: 'x' } }, 'go on'],
    [
      'over revisions of an older history',
      own,
      { ...nothing, newest: { revision: at(3, 9), ours: undefined } },
      'go on',
    ],
    ['beside edges that lag', own, { ...nothing, writer: own, edges: seen(own, { ordinal: 2, id: 'x' }) }, 'go on'],
    ['a new history in another life', { ...own, ofThisLife: false }, { ...nothing, writer: own }, 'begin'],
    [
      'a new history where it was set back',
      own,
      { ...nothing, newest: { revision: at(4, 9), ours: at(4, 8) } },
      'begin',
    ],
    [
      'a new history where the host is gone',
      own,
      { ...nothing, newest: { revision: at(4, 9), ours: undefined } },
      'begin',
    ],
    ['a new history above an edge', own, { ...nothing, writer: own, edges: seen({ ordinal: 5, id: 'x' }) }, 'begin'],
    ['its own first where Redis is no one’s', own, { ...nothing, edges: seen({ ordinal: 5, id: 'x' }) }, 'go on'],
    [
      'its own while an edge has just come',
      own,
      { ...nothing, writer: own, edges: { all: [{ ordinal: 5, id: 'x' }], lasting: [] } },
      'go on',
    ],
    [
      'a new history above a rival edge',
      own,
      { ...nothing, writer: own, edges: seen({ ordinal: 4, id: 'x' }) },
      'begin',
    ],
    ['nothing where a newer one publishes', own, { ...nothing, writer: { ordinal: 5, id: 'x' } }, 'refuse'],
    ['nothing where a rival publishes', own, { ...nothing, writer: { ordinal: 4, id: 'x' } }, 'refuse'],
    ['nothing where a newer one has', own, { ...nothing, newest: { revision: at(5, 1), ours: undefined } }, 'refuse'],
  ])('%s', (_, history, published, kind) => {
    expect(standingOf(history, published).kind).toBe(kind)
  })

  test('a new history is larger than everything that anyone holds', () => {
    const edges = { all: [{ ordinal: 9, id: 'x' }], lasting: [] }
    expect(nextOrdinal(own, { ...nothing, edges })).toBe(10)
    expect(nextOrdinal(own, { ...nothing, writer: { ordinal: 11, id: 'x' }, edges })).toBe(12)
    expect(nextOrdinal(own, { ...nothing, newest: { revision: at(20, 1), ours: undefined }, edges })).toBe(21)
  })
})

test('addresses without a drop are removed by themselves up to one in a hundred, once per history', () => {
  expect(unknownAllowance(own, 100)).toBe(20)
  expect(unknownAllowance(own, 100_000)).toBe(1000)
  expect(unknownAllowance({ ...own, removedUnknown: 990 }, 100_000)).toBe(10)
})

test('an epoch names its history; one of a release without histories names none', () => {
  expect(decodeHistory(encodeEpoch({ ordinal: 7, id: 'ab12' }, 'unique'))).toEqual({ ordinal: 7, id: 'ab12' })
  expect(decodeHistory('0b0d5a0c-6d3f-4f0e-9b7a-1d2c3b4a5f6e')).toBeUndefined()
  expect(decodeHistory(null)).toBeUndefined()
})

test('histories are ordered by ordinal; the same ordinal under another id is a rival', () => {
  const [a, b] = [
    { ordinal: 1, id: 'a' },
    { ordinal: 1, id: 'b' },
  ]
  expect([relationOf(a, a), relationOf(a, b)]).toEqual(['same', 'rival'])
  expect([relationOf({ ...a, ordinal: 2 }, b), relationOf(a, { ...b, ordinal: 2 })]).toEqual(['newer', 'older'])
})
