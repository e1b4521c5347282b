/** Many patterns asked at once say what each of them says alone, and cost no more for being many. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compilePattern, type PathPattern } from '../../../shared/path-pattern.ts'
import { createPatternSet, type PatternSet } from '../../../shared/pattern-set.ts'
import { growthOf } from '../../support/growth.ts'
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

describe('the compiled form', () => {
  test('of one pattern matches what its expression matched, with the same values', () => {
    fc.assert(
      fc.property(patternText, pathText, (from, path) => {
        const [pattern] = compiled(from)
        fc.pre(pattern !== undefined)
        const values = pattern.match(path)
        const expected = naiveMatch(from)(path)
        expect(values && Object.fromEntries(values)).toEqual(expected && Object.fromEntries(expected))
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

const MAX_PATH_CHARS = 8192
const deep = (chars: number): string => '/a'.repeat(chars / 2)
const long = (chars: number): string => `/${'a'.repeat(chars - 1)}`

/** Sets of rules that all share what they can with a hostile path and differ at the end; none matches. */
const hostile: Readonly<Record<string, (index: number) => string>> = {
  literals: (index) => `/a/a/${index}`,
  'placeholders everywhere': (index) =>
    `/${Array.from({ length: 24 }, (_, bit) => (((index * 2654435761) >>> bit) & 1 && bit < 12 ? `:p${bit}` : 'a')).join('/')}/x${index}`,
  'splats with an end': (index) => `/*/a/a/a/x${index}`,
  'splats before placeholders': (index) => `/a*/:a/:b/:c/x${index}`,
  'long beginnings': (index) => `/${'a/'.repeat(index % 500)}x${index}/*`,
  'letters before a splat': (index) => `/${'a'.repeat(1 + (index % 900))}b${index}*`,
}
const setOf = (make: (index: number) => string, count: number): PatternSet =>
  createPatternSet(Array.from({ length: count }, (_, index) => make(index)).flatMap(compiled))

describe.each(Object.entries(hostile))('%s', (_, make) => {
  test.each([
    ['deep', deep],
    ['long', long],
  ])('cost time linear in a %s path', (_name, pathOf) => {
    const set = setOf(make, 500)
    expect(set.matching(pathOf(MAX_PATH_CHARS))).toEqual([])
    expect(growthOf(pathOf, set.matching, MAX_PATH_CHARS)).toBeUndefined()
  })

  test('cost no more for being many than what they share with the path', () => {
    const paths = [deep(MAX_PATH_CHARS), long(MAX_PATH_CHARS)]
    const ask = (set: PatternSet) => paths.map((path) => set.matching(path))
    expect(growthOf((count) => setOf(make, count), ask, 2000)).toBeUndefined()
  })
})
