/** Builds of one checkout: which one runs, and how long those before it stay for the processes that were started from them. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { beginBuild, createSourceNotes, dropBuild, placeBuild } from '../../../control/operations/building/placing.ts'
import { buildFolder, currentBuild, listFile } from '../../../shared/running/built.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const NOW_MS = Date.now()
let root: string

beforeEach(() => {
  root = mkdtempSync(path.join(os.tmpdir(), 'dropway-builds-'))
  writeFileSync(path.join(root, 'a.ts'), 'export const a = 1\n')
  return () => rmSync(root, { recursive: true })
})

const isThere = (build: string): boolean => existsSync(path.join(buildFolder(root, build), 'main.js'))

/** A build that is being written, as old as it was last written to. */
function begin(ageMs = 0, isSealed = false): string {
  const build = beginBuild(root, isSealed)
  const folder = buildFolder(root, build)
  writeFileSync(path.join(folder, 'main.js'), '')
  const seconds = (NOW_MS - ageMs) / 1000
  utimesSync(folder, seconds, seconds)
  return build
}

function place(build: string, nowMs = NOW_MS): void {
  const sources = createSourceNotes(root)
  sources.note('a.ts')
  placeBuild(root, { build, sources: sources.marks() }, nowMs)
}

test('a build runs once it is placed, and the one before it until then', () => {
  const first = begin()
  expect(currentBuild(root)).toBeUndefined()
  place(first)
  const second = begin()
  expect(currentBuild(root)).toBe(first)
  place(second)
  expect(currentBuild(root)).toBe(second)
})

test('one that was superseded stays for a day from then on, however old it is', () => {
  const first = begin(30 * DAY_MS)
  place(first, NOW_MS - 30 * DAY_MS)
  const second = begin()
  place(second)
  expect(isThere(first)).toBe(true)
  const third = begin()
  place(third, NOW_MS + 23 * HOUR_MS)
  expect([isThere(first), isThere(second)]).toEqual([true, true])
  place(begin(), NOW_MS + 25 * HOUR_MS)
  expect([isThere(first), isThere(second), isThere(third)]).toEqual([false, true, true])
})

test('several at once do not meet: each is whole, and the last one that is placed runs', () => {
  const builds = [begin(), begin(), begin()]
  for (const build of builds) place(build)
  expect(builds.map(isThere)).toEqual([true, true, true])
  expect(currentBuild(root)).toBe(builds[2])
})

test('what a killed build left goes a day later; one that failed leaves nothing', () => {
  const killed = begin(25 * HOUR_MS)
  const underWay = begin(23 * HOUR_MS)
  const failed = begin()
  dropBuild(root, failed)
  place(begin())
  expect([isThere(killed), isThere(underWay), isThere(failed)]).toEqual([false, true, false])
})

test('files that an earlier checkout built stay as long, for its processes', () => {
  const built = path.join(root, 'built')
  const scripts = path.join(built, 'scripts')
  const files = [path.join(built, 'control-plane.js'), path.join(scripts, 'page.js')]
  mkdirSync(scripts, { recursive: true })
  for (const file of [...files, listFile(root)]) writeFileSync(file, '{}')
  const longAgo = NOW_MS / 1000 - 30 * 86_400
  for (const file of [...files, scripts, listFile(root)]) utimesSync(file, longAgo, longAgo)
  place(begin())
  expect(files.map((file) => existsSync(file))).toEqual([true, true])
  place(begin(), NOW_MS + 23 * HOUR_MS)
  expect(files.map((file) => existsSync(file))).toEqual([true, true])
  place(begin(), NOW_MS + 25 * HOUR_MS)
  expect(files.map((file) => existsSync(file))).toEqual([false, false])
})

test.each([
  ['is edited', () => writeFileSync(path.join(root, 'a.ts'), 'export const a = 22\n')],
  ['vanishes', () => rmSync(path.join(root, 'a.ts'))],
])('a source that %s after it was read makes the build one of the past', (_how, happens) => {
  const sources = createSourceNotes(root)
  sources.note('a.ts')
  happens()
  sources.note('a.ts')
  placeBuild(root, { build: begin(), sources: sources.marks() })
  expect(currentBuild(root)).toBeUndefined()
})

test('the build of the image has the same name each time', () => {
  const [first, second] = [begin(0, true), begin(0, true)]
  expect([first, second]).toEqual(['sealed', 'sealed'])
  expect(isThere('sealed')).toBe(true)
})

test('the sources run while the build of the image is made anew, and where that fails', () => {
  place(begin(0, true))
  expect(currentBuild(root)).toBe('sealed')
  const again = begin(0, true)
  expect(currentBuild(root)).toBeUndefined()
  dropBuild(root, again)
  expect(currentBuild(root)).toBeUndefined()
  place(begin(0, true))
  expect(currentBuild(root)).toBe('sealed')
})
