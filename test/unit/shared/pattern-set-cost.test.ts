/** Many patterns asked at once cost no more for being many. */
import { describe, expect, test } from 'vitest'
import { compilePattern } from '../../../shared/content/path-pattern.ts'
import { createPatternSet, type PatternSet } from '../../../shared/content/pattern-set.ts'
import { growthProblem, on } from '../../support/growth.ts'

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
function setOf(make: (index: number) => string, count: number): PatternSet {
  const patterns = Array.from({ length: count }, (_, index) => compilePattern(make(index)))
  return createPatternSet(patterns.flatMap((pattern) => ('problem' in pattern ? [] : [pattern])))
}

describe.each(Object.entries(hostile))('%s', (_, make) => {
  test.each([
    ['deep', deep],
    ['long', long],
  ])('cost time linear in a %s path', async (_name, pathOf) => {
    const set = setOf(make, 500)
    expect(set.matching(pathOf(MAX_PATH_CHARS))).toEqual([])
    expect(await growthProblem(on(pathOf, set.matching), MAX_PATH_CHARS)).toBeUndefined()
  })

  test('cost no more for being many than what they share with the path', async () => {
    const paths = [deep(MAX_PATH_CHARS), long(MAX_PATH_CHARS)]
    const ask = (set: PatternSet) => paths.map((path) => set.matching(path))
    expect(
      await growthProblem(
        on((count) => setOf(make, count), ask),
        2000,
      ),
    ).toBeUndefined()
  })
})
