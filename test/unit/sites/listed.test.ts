/** What a list of files changes of the live version. */
import { expect, test } from 'vitest'
import {
  changesOf,
  replacedBy,
  requireConsistent,
  stayingOf,
  versionBytes,
} from '../../../control/drops/sites/uploads/listed.ts'

const hashOf = (content: string): string => content.padEnd(64, '0')
const file = (path: string, content = path, size = content.length) => ({ path, sha256: hashOf(content), size })
const live = new Map(['a', 'b', 'c'].map((path) => [path, { hash: hashOf(path), size: 1 }]))

test.each([
  { list: [file('a'), file('b'), file('c')], changed: [], removed: [], hasOtherNames: false },
  { list: [file('c'), file('b'), file('a')], changed: [], removed: [], hasOtherNames: false },
  { list: [file('a'), file('b', 'new'), file('c')], changed: ['b'], removed: [], hasOtherNames: false },
  { list: [file('a'), file('b', 'b', 2), file('c')], changed: ['b'], removed: [], hasOtherNames: false },
  { list: [file('a'), file('c')], changed: [], removed: ['b'], hasOtherNames: false },
  { list: [file('a'), file('b'), file('c'), file('d')], changed: ['d'], removed: [], hasOtherNames: true },
  { list: [file('a'), file('d'), file('c')], changed: ['d'], removed: ['b'], hasOtherNames: true },
  { list: [file('a'), file('a'), file('c')], changed: [], removed: ['b'], hasOtherNames: true },
  { list: [file('a'), file('b'), file('b', 'new'), file('c')], changed: ['b'], removed: [], hasOtherNames: true },
])('of three files: $changed changed, $removed removed', ({ list, changed, removed, hasOtherNames }) => {
  const found = changesOf(live, list)
  expect({ ...found, changed: found.changed.map(({ path }) => path) }).toEqual({ changed, removed, hasOtherNames })
  const without = replacedBy(live, found)
  const stays = ['a', 'b', 'c'].filter((path) => !without.has(path))
  expect(stayingOf(live, without)).toEqual({ files: stays.length, bytes: stays.length })
})

test('the same bytes have one size, whether or not they are the live version’s', () => {
  const check = (...list: ReturnType<typeof file>[]) => requireConsistent(live, list, changesOf(live, list).changed)
  expect(() => check(file('a'), file('d', 'd', 5), file('e', 'd', 5))).not.toThrow()
  expect(() => check(file('d', 'd', 5), file('e', 'd', 6))).toThrow('"e" has the hash of a file with another size')
  expect(() => check(file('a'), file('e', 'a', 6))).toThrow('"e" has the hash of a file with another size')
  // Nothing in the list says that it has another one.
  expect(() => check(file('b'), file('e', 'a', 6))).not.toThrow()
})

test('what no visitor can ask for takes no room', () => {
  const list = [file('a'), file('.DS_Store', 'clutter'), file('page', 'text')]
  expect(versionBytes(list, changesOf(live, list).changed)).toBe(5)
})
