/**
 * The same worst inputs as `npm test` counts, judged by the clock and at the sizes that strangers may send: what counting
 * cannot see is how long the engine itself takes. Prints what it measured. To repeat one:
 * `DEEP=1 npx vitest run test/deep/growth -t "<name of the case>"`.
 */
import querystring from 'node:querystring'
import { describe, expect, test } from 'vitest'
import { renderMarkdown } from '../../control/drops/publishing/markdown/markdown.ts'
import { growthProblem, on } from '../support/growth.ts'
import { fill } from '../support/counting/cases.ts'
import { cases as edge } from '../unit/edge/cost.cases.ts'
import { cases as http } from '../unit/http/cost.cases.ts'
import { cases as publishing } from '../unit/publishing/complexity.cases.ts'
import { cases as patterns } from '../unit/shared/pattern-set-cost.cases.ts'

/** Larger inputs take minutes each, and the way there is the same. */
const MAX_SIZE = 1_000_000
const LONG = { timeout: 600_000 }

describe.each(Object.entries({ edge, http, patterns, publishing }))('%s', (_, cases) => {
  test.each(Object.entries(cases))('%s', LONG, async (name, { make, run, largest }) => {
    const problem = await growthProblem(on(make, run), Math.min(largest, MAX_SIZE))
    process.stdout.write(`${name}: ${problem ?? 'linear'} up to ${Math.min(largest, MAX_SIZE)}\n`)
    expect(problem).toBeUndefined()
  })
})

/** What Node reads for us, from strangers: none of it may grow faster than its input. */
describe('parsers of Node', () => {
  const PARSERS: Readonly<Record<string, [(n: number) => string, (text: string) => unknown, number]>> = {
    'JSON of brackets': [(n) => `[${fill('[],', n - (n % 3))}0]`, JSON.parse, 1_000_000],
    'JSON of escapes': [(n) => `"${fill('\\u0041', n - (n % 6))}"`, JSON.parse, 1_000_000],
    'an address of dots': [(n) => `https://a.example/${fill('../', n)}`, URL.parse, 16_384],
    'an address of escapes': [(n) => `https://a.example/${fill('%2e/', n)}`, URL.parse, 16_384],
    'a host of dots': [(n) => `https://${fill('a.', n)}`, URL.parse, 16_384],
    'text that is no UTF-8': [
      (n) => fill('\u00ff', n),
      (text) => new TextDecoder().decode(Buffer.from(text, 'latin1')),
      1_000_000,
    ],
    // No source uses it. URLSearchParams, a square of its pairs, is given no text of strangers (unit/shared/form.test.ts).
    'a query string, by querystring': [(n) => fill('a&', n), querystring.parse, 16_384],
    'an escaped path': [(n) => fill('%41', n - (n % 3)), decodeURIComponent, 16_384],
    headers: [(n) => fill('a, ', n), (text) => new Headers({ a: text }).get('a'), 16_384],
  }
  test.each(Object.entries(PARSERS))('%s', LONG, async (name, [make, run, largest]) => {
    const problem = await growthProblem(on(make, run), largest)
    process.stdout.write(`${name}: ${problem ?? 'linear'} up to ${largest}\n`)
    expect(problem).toBeUndefined()
  })
})

/** The thread has five seconds, and 30 ms for each kilobyte. */
describe('Markdown that the budget lets pass is rendered within the time limit', () => {
  const SIZE = 100_000
  const DOCUMENTS: Readonly<Record<string, (n: number) => string>> = {
    'nested lists': (n) => fill('1. a\n   - b\n     - c\n', n),
    quotes: (n) => fill('> a\n\n', n),
    'lists of three on a line': (n) => fill('- - - a\n', n),
    'deep lines': (n) => fill(`${'- '.repeat(90)}a\n`, n),
    emphasis: (n) => fill('**a', n),
    'links without a beginning': (n) => fill('](', n),
    'underlined headings': (n) => fill('a\n===\n', n),
    definitions: (n) => fill('[a]: b\n', n),
    items: (n) => fill('- a\n', n),
  }
  test.each(Object.entries(DOCUMENTS))('%s', LONG, (name, make) => {
    for (let size = SIZE; size >= 1000; size /= 2) {
      const source = make(size)
      const before = process.threadCpuUsage()
      try {
        renderMarkdown(source)
      } catch {
        continue
      }
      const { user, system } = process.threadCpuUsage(before)
      const ms = (user + system) / 1000
      process.stdout.write(`${name}: ${size} characters in ${Math.round(ms)} ms\n`)
      expect(ms).toBeLessThan(5000 + 30 * (size / 1000))
      return
    }
  })
})
