/** `.dropwayignore` is read as git reads .gitignore: 550 sets of patterns, and what git said of each. */
import { expect, test } from 'vitest'
import { parseIgnore } from '../../../../cli/content/ignore/ignore.ts'
import answers from './answers.json' with { type: 'json' }
import { digitsOf, PATHS, SETS } from './corpus.ts'

const differing = SETS.filter((set, index) => {
  const ignore = parseIgnore(set)
  return digitsOf(PATHS.map(({ path, isFolder }) => ignore.leavesOut(path, isFolder))) !== answers[index]
})

test('no set of patterns leaves out anything else than git does', () => {
  expect(answers).toHaveLength(SETS.length)
  expect(differing).toEqual([])
})

test('the table says yes and no of every path, so that it can tell', () => {
  const bits = answers.map((digits) => [...digits].map((digit) => Number.parseInt(digit, 16)))
  const asked = PATHS.map((_, path) => new Set(bits.map((row) => (row[path >> 2]! >> (3 - (path & 3))) & 1)).size)
  expect(asked.every((kinds) => kinds === 2)).toBe(true)
})

/** What releases of git do not agree on goes by its documentation: other consecutive asterisks are one. */
test.each([
  ['/fo**/bar', 'foo/bar', true],
  ['/fo**/bar', 'foo/baz/bar', false],
  ['/fo**', 'foobar', true],
])('%s leaves out %s: %s', (pattern, path, isLeftOut) => {
  expect(parseIgnore(pattern).leavesOut(path, false)).toBe(isLeftOut)
})
