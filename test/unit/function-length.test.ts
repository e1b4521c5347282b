/** Functions fit a screen: none is longer than 120 lines, and the run says which are on their way to 70. */
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync, Visitor } from 'vite'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** More does not fit any screen. */
const MAX_LINES = 120
/** What we want to come to. */
const WANTED_LINES = 70

interface LongFunction {
  readonly place: string
  readonly lines: number
}

function functionsOf(file: string): LongFunction[] {
  const text = readFileSync(path.join(ROOT, file), 'utf8')
  const ends = [...text.matchAll(/\n/g)].map(({ index }) => index)
  const lineOf = (offset: number): number => ends.filter((end) => end < offset).length + 1
  const found: LongFunction[] = []
  const note = ({ start, end, id }: { start: number; end: number; id?: { name: string } | null }): void => {
    // Most functions are too short to be counted line by line.
    if (end - start < WANTED_LINES) return
    const lines = lineOf(end) - lineOf(start) + 1
    found.push({ place: `${file}:${lineOf(start)} ${id?.name ?? ''}`.trimEnd(), lines })
  }
  const visitor = new Visitor({ FunctionDeclaration: note, FunctionExpression: note, ArrowFunctionExpression: note })
  visitor.visit(parseSync(file, text).program)
  return found
}

const functions = globSync('{shared,certs,edge,control,cli}/**/*.ts', {
  cwd: ROOT,
  exclude: (name) => name.includes('node_modules') || name.includes('dist'),
})
  .flatMap(functionsOf)
  .toSorted((one, other) => other.lines - one.lines)

const listed = (least: number): string[] =>
  functions.filter(({ lines }) => lines > least).map(({ place, lines }) => `${lines} ${place}`)

test('functions are really read', () => {
  expect(functions.length).toBeGreaterThan(1000)
})

test(`no function is longer than ${MAX_LINES} lines`, () => {
  console.log([`longer than ${WANTED_LINES} lines:`, ...listed(WANTED_LINES)].join('\n'))
  expect(listed(MAX_LINES)).toEqual([])
})
