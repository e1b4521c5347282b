/** Many patterns asked at once, by paths that share what they can with all of them. */
import { compilePattern } from '../../../shared/content/path-pattern.ts'
import { createPatternSet, type PatternSet } from '../../../shared/content/pattern-set.ts'
import { workCase, type WorkCase } from '../../support/counting/cases.ts'

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

const paths = [deep(MAX_PATH_CHARS), long(MAX_PATH_CHARS)]

export const cases: Readonly<Record<string, WorkCase>> = Object.fromEntries(
  Object.entries(hostile).flatMap(([name, make]) => {
    const set = setOf(make, 500)
    const path = { largest: MAX_PATH_CHARS, counted: MAX_PATH_CHARS }
    return [
      [`${name}: a deep path`, workCase(deep, set.matching, path)],
      [`${name}: a long path`, workCase(long, set.matching, path)],
      [
        `${name}: as many as a site may have`,
        workCase(
          (count) => setOf(make, count),
          (patterns) => paths.map((one) => patterns.matching(one)),
          { largest: 2000, counted: 2000, maxPerUnit: 2000 },
        ),
      ],
    ]
  }),
)
