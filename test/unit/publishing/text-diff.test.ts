import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { compareTexts } from '../../../control/drops/publishing/comparison/compare-texts.ts'
import { diffLines, type DiffLine } from '../../../control/drops/publishing/comparison/text-diff.ts'
import { createRandom } from '../../support/random.ts'

const ROOT = path.resolve(import.meta.dirname, '../../..')

/** Where the budget is enough. */
function compared(before: string, after: string): DiffLine[] {
  const lines = diffLines(before, after)
  if (!lines) throw new Error('over budget')
  return lines
}

const signs = { same: ' ', added: '+', removed: '-' } as const
const drawn = (before: string, after: string): string[] =>
  compared(before, after).map(({ kind, text }) => `${signs[kind]}${text}`)

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

test('both texts can be read from it, whatever they are, and nothing is longer than needed', () => {
  for (let seed = 1; seed <= 500; seed++) {
    const random = createRandom(seed)
    const text = (): string[] => Array.from({ length: random.below(12) }, () => random.pick(['a', 'b', 'c', 'd']))
    const [before, after] = [text(), text()]
    const lines = compared(before.join('\n'), after.join('\n'))
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
  const lines = compared(before.join('\n'), after.join('\n'))
  expect(lines.map(({ text }) => text)).toEqual([...before, ...after])
})

/** Nothing of it is the same at either end, and the line in the middle fits everywhere. */
const hostile = (version: number): string =>
  `o${version}\n${'a\n'.repeat(98_000)}${Array.from({ length: 402 }, (_, index) => `${version} ${index}\n`).join('')}`

test('long texts that differ too much are not shown, and neither is what takes more steps than the budget', () => {
  expect(diffLines(hostile(0), hostile(1))).toBeUndefined()
  expect(diffLines('a\nb\n'.repeat(100), 'b\na\n\n'.repeat(100), 100)).toBeUndefined()
  expect(diffLines('a\nb\n', 'a\nc\n', 100)).toHaveLength(3)
})

test('a page gets the lines near changes, cut, and says how many more there are', async () => {
  const before = Array.from({ length: 1000 }, (_, index) => `line ${index}`)
  const after = before.map((line, index) => (index === 10 || index === 500 ? 'x'.repeat(400) : line))
  const blobs = new Map([
    ['old', before.join('\n')],
    ['new', after.join('\n')],
    ['hostile', hostile(0)],
    ['other', hostile(1)],
    ['many', Array.from({ length: 3000 }, (_, index) => `m ${index}`).join('\n')],
  ])
  const store = { read: async (hash: string) => Buffer.from(blobs.get(hash) ?? '') }
  const [changed, tooMuch, long] = await compareTexts(store, [
    { path: 'a.txt', before: 'old', after: 'new' },
    { path: 'b.txt', before: 'hostile', after: 'other' },
    { path: 'c.txt', before: 'old', after: 'many' },
  ])
  expect(changed?.shown?.hidden).toBe(0)
  expect(changed?.shown?.lines.map(({ text, isAfterGap }) => `${isAfterGap ? '… ' : ''}${text.slice(0, 9)}`)).toEqual([
    ...['… line 8', 'line 9', 'line 10', 'xxxxxxxxx', 'line 11', 'line 12'],
    ...['… line 498', 'line 499', 'line 500', 'xxxxxxxxx', 'line 501', 'line 502'],
  ])
  expect(changed?.shown?.lines[3]?.text).toBe(`${'x'.repeat(300)}…`)
  expect(tooMuch).toEqual({ path: 'b.txt', shown: undefined })
  expect([long?.shown?.lines.length, long?.shown?.hidden]).toEqual([300, 3700])
})

test('an honest text of thousands of lines with hundreds of changes is within the budget', () => {
  const before = Array.from({ length: 5000 }, (_, index) => `line ${index % 700}`)
  const after = before.map((line, index) => (index % 30 === 0 ? `${line} changed` : line))
  const lines = compared(before.join('\n'), after.join('\n'))
  expect(lines.filter(({ kind }) => kind === 'added').length).toBe(167)
})

const COMPARISON = 'control/drops/publishing/comparison'

test('texts are compared in worker threads only, but for two short quotes of a comment', () => {
  const importersOf = (module: string): string[] =>
    globSync('{control,edge,shared}/**/*.ts', { cwd: ROOT })
      .filter((file) =>
        readFileSync(path.join(ROOT, file), 'utf8')
          .matchAll(/^import (?!type)[^']*'([^']*)'/gm)
          .some(([, imported]) => path.join(path.dirname(file), imported!) === `${COMPARISON}/${module}`),
      )
      .map((file) => path.basename(file))
      .toSorted()
  expect(importersOf('text-diff.ts')).toEqual(['anchors.ts', 'compare-texts.ts', 'thread-view.ts'])
  expect(importersOf('anchors.ts')).toEqual(['figures.ts', 'place-threads.ts'])
  // The view asks for the name of an element alone.
  expect(importersOf('figures.ts')).toEqual(['place-threads.ts', 'thread-view.ts'])
  for (const module of ['compare-texts.ts', 'place-threads.ts'])
    expect(importersOf(module)).toEqual(['content-worker.ts'])
})
