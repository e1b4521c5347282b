/** Many patterns asked at once say what each of them says alone. What they cost: pattern-set-cost.test.ts. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compilePattern, type PathPattern } from '../../../shared/content/path-pattern.ts'
import { createPatternSet } from '../../../shared/content/pattern-set.ts'
import { naiveMatch } from '../../support/naive-patterns.ts'

/** Few letters, so that patterns and paths meet. */
const segment = fc.constantFrom('a', 'b', 'ab', 'aa', 'a.b', ':x', '', 'é')
const patternSegment = fc.oneof(
  segment.filter((text) => text !== ':x'),
  fc.constantFrom(':x', ':y', ':z', '*', 'a*', '*b', 'a*b', '*:x', 'a:x'),
)
const patternText = fc
  .tuple(fc.array(patternSegment, { maxLength: 5 }), fc.constantFrom('', '/'))
  .map(([segments, end]) => `/${segments.join('/')}${end}`)
const pathText = fc
  .tuple(
    fc.array(
      segment.filter((text) => text !== ''),
      { maxLength: 7 },
    ),
    fc.constantFrom('', '/'),
  )
  .map(([segments, end]) => `/${segments.join('/')}${segments.length > 0 ? end : ''}`)

function compiled(from: string): PathPattern[] {
  const pattern = compilePattern(from)
  return 'problem' in pattern ? [] : [pattern]
}

describe('of several patterns', () => {
  test.each([
    [['/a', '/b', '/a'], '/a', [0, 2]],
    [['/a', '/b', '/a'], '/a/', [0, 2]],
    [['/a', '/a/'], '/a', [0, 1]],
    [['/', '/a'], '/', [0]],
    [['/a'], '/ab', []],
    [['/a', '/:x', '/a'], '/a/', [0, 1, 2]],
    [['/news/*', '/news', '/*'], '/news', [0, 1, 2]],
    [['/news/*', '/*'], '/newsletter', [1]],
    [['/news/*', '/*'], '/news/', [0, 1]],
    [['/:x/*', '/:x'], '/a/b', [0]],
    [['/a*', '/ab*', '/abc*', '/b*'], '/abx', [0, 1]],
    [['/*c', '/*bc', '/*abc', '/*b'], '/xbc/', [0, 1]],
    [['/*c', '/*bc', '/*/'], '/xbc', [0, 1, 2]],
    [['/*/:x/z', '/*/z', '/a/*/z'], '/a/b/z', [0, 1, 2]],
    [['/a/:x/c', '/a/:x/d', '/:y/b/c'], '/a/b/c', [0, 2]],
    [['/a/:x'], '/a/', []],
    [[], '/a', []],
  ])('%j on %s: %j', (froms, path, positions) => {
    expect(createPatternSet(froms.flatMap(compiled)).matching(path)).toEqual(positions)
  })
})

describe('the compiled form', () => {
  test('of one pattern matches what its expression matched, with the same values', () => {
    fc.assert(
      fc.property(patternText, pathText, (from, path) => {
        const [pattern] = compiled(from)
        fc.pre(pattern !== undefined)
        const values = pattern.match(path)
        const expected = naiveMatch(from)(path)
        expect(values).toEqual(expected && pattern.names.map((name) => expected.get(name)))
      }),
      { numRuns: 20_000 },
    )
  })

  test('of many patterns finds those that match alone, in the order of the file', () => {
    fc.assert(
      fc.property(fc.array(patternText, { maxLength: 30 }), fc.array(pathText, { maxLength: 10 }), (texts, paths) => {
        const froms = texts.filter((from) => compiled(from).length > 0)
        const set = createPatternSet(froms.flatMap(compiled))
        for (const path of paths) {
          const expected = froms.flatMap((from, position) => (naiveMatch(from)(path) ? [position] : []))
          expect(set.matching(path), path).toEqual(expected)
        }
      }),
      { numRuns: 3000 },
    )
  })
})
