/** What two versions do not share, in whatever order their files come, and without looking at what they share. */
import { expect, test } from 'vitest'
import { differing, losesNothing } from '../../../control/drops/publishing/manifest/differing.ts'
import type { ManifestFiles } from '../../../shared/contracts/manifest.ts'
import { createRandom } from '../../support/random.ts'

type Entry = ManifestFiles[number]

const entry = (path: string, content: number): Entry => [
  path,
  { hash: String(content).padStart(64, '0'), size: content, type: 'text/plain' },
]

test.each([1, 2, 3, 4, 5, 6])('is what comparing every name would find, sorted or not, seed %i', (seed) => {
  const random = createRandom(seed)
  const isSorted = seed % 2 === 1
  const order = (entries: Entry[]): Entry[] =>
    isSorted ? entries.toSorted(([a], [b]) => (a < b ? -1 : 1)) : entries.toSorted(() => random.next() - 0.5)
  for (let round = 0; round < 50; round++) {
    const before = order(
      Array.from({ length: 30 }, (_, index) => entry(`file-${index}`, 1)).filter(() => random.chance(0.7)),
    )
    const kept = before.filter(() => random.chance(0.8)).map((one) => (random.chance(0.1) ? entry(one[0], 2) : one))
    const names = new Set(kept.map(([path]) => path))
    const after = order([
      ...kept,
      ...[3, 7, 40, 41].map((index) => entry(`file-${index}`, 3)).filter(([path]) => !names.has(path)),
    ])
    const [old, fresh] = [new Map(before), new Map(after)]
    const expected = [...new Set([...old.keys(), ...fresh.keys()])]
      .filter((path) => old.get(path) !== fresh.get(path))
      .map((path) => ({ path, before: old.get(path), after: fresh.get(path) }))
    const byPath = (a: { path: string }, b: { path: string }): number => (a.path < b.path ? -1 : 1)
    expect(differing(before, after).toSorted(byPath)).toEqual(expected.toSorted(byPath))
    expect(losesNothing(before, after)).toBe([...old.keys()].every((path) => fresh.has(path)))
  }
})

test('of entries that both share, nothing is read', () => {
  const untouchable = new Proxy(entry('shared', 1), { get: () => expect.fail('a shared entry was looked at') })
  const [old, fresh] = [entry('a', 1), entry('a', 2)]
  expect(differing([untouchable, old, untouchable], [untouchable, fresh, untouchable])).toEqual([
    { path: 'a', before: old[1], after: fresh[1] },
  ])
})
