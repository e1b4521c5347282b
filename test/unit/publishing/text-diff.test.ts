import { expect, test } from 'vitest'
import { diffLines } from '../../../control/drops/publishing/comparison/text-diff.ts'

const signs = { same: ' ', added: '+', removed: '-' } as const
const drawn = (before: string, after: string): string[] =>
  diffLines(before, after).map(({ kind, text }) => `${signs[kind]}${text}`)

test.each([
  ['a\nb\nc\n', 'a\nb\nc\n', [' a', ' b', ' c']],
  ['a\nb\nc\n', 'a\nx\nc\n', [' a', '-b', '+x', ' c']],
  ['a\nc', 'a\nb\nc', [' a', '+b', ' c']],
  ['a\nb\nc', 'a\nc', [' a', '-b', ' c']],
  ['', 'a', ['+a']],
  ['a', '', ['-a']],
  ['a\r\nb', 'a\nb', [' a', ' b']],
  ['a\na', 'a', [' a', '-a']],
])('%j to %j', (before, after, expected) => {
  expect(drawn(before, after)).toEqual(expected)
})

/** A small generator with a seed, so that a failure can be seen again. */
function random(seed: number): () => number {
  let state = seed
  return () => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31
}

test('both texts can be read from it, whatever they are, and nothing is longer than needed', () => {
  for (let seed = 1; seed <= 500; seed++) {
    const next = random(seed)
    const text = (): string[] => Array.from({ length: Math.floor(next() * 12) }, () => 'abcd'[Math.floor(next() * 4)]!)
    const [before, after] = [text(), text()]
    const lines = diffLines(before.join('\n'), after.join('\n'))
    const read = (without: 'added' | 'removed'): string[] =>
      lines.filter(({ kind }) => kind !== without).map((line) => line.text)
    expect(read('added'), `seed ${seed}`).toEqual(before)
    expect(read('removed'), `seed ${seed}`).toEqual(after)
    expect(lines.filter(({ kind }) => kind === 'same').length, `seed ${seed}`).toBe(longestCommon(before, after))
  }
})

function longestCommon(one: readonly string[], other: readonly string[]): number {
  let row = Array.from({ length: other.length + 1 }, () => 0)
  for (const line of one) {
    const above = row
    row = [0]
    for (const [index, candidate] of other.entries())
      row.push(line === candidate ? above[index]! + 1 : Math.max(above[index + 1]!, row[index]!))
  }
  return row.at(-1)!
}

test('texts with nothing in common are shown one after the other', () => {
  const before = Array.from({ length: 3000 }, (_, index) => `old ${index}`)
  const after = Array.from({ length: 3000 }, (_, index) => `new ${index}`)
  const lines = diffLines(before.join('\n'), after.join('\n'))
  expect(lines.map(({ text }) => text)).toEqual([...before, ...after])
})
