import { mkdirSync, mkdtempSync, rmdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { buildFolder, builtName, currentBuild, listFile, sourceMark } from '../../../shared/running/built.ts'

let root: string
const source = (): string => path.join(root, 'a.ts')

beforeEach(() => {
  root = mkdtempSync(path.join(os.tmpdir(), 'dropway-built-'))
  mkdirSync(path.dirname(listFile(root)))
  writeFileSync(source(), 'export const a = 1\n')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

function buildFrom(sources: object): void {
  mkdirSync(buildFolder(root, 'b1'))
  writeFileSync(listFile(root), JSON.stringify({ build: 'b1', sources }))
}

test('the built form runs while its sources are as they were', () => {
  buildFrom({ 'a.ts': sourceMark(source()) })
  expect(currentBuild(root)).toBe('b1')
})

test.each([
  ['one of them was edited', () => writeFileSync(source(), 'export const a = 22\n')],
  ['one of them was written anew with as many bytes', () => utimesSync(source(), 1, 1)],
  ['one of them is gone', () => rmSync(source())],
  ['there is no list: nothing was built', () => rmSync(listFile(root))],
  ['the list is one of an earlier checkout', () => writeFileSync(listFile(root), '{}')],
  ['the build that the list names is gone', () => rmdirSync(buildFolder(root, 'b1'))],
  ['the list is half a list', () => writeFileSync(listFile(root), '{"build":"b1","sou')],
])('the sources run when %s', (_what, happens) => {
  buildFrom({ 'a.ts': sourceMark(source()) })
  happens()
  expect(currentBuild(root)).toBeUndefined()
})

test('nothing is compared where the list is empty, as in the image', () => {
  buildFrom({})
  rmSync(source())
  expect(currentBuild(root)).toBe('b1')
})

test('files of the built form are named by the path of their source', () => {
  expect(builtName('edge/processes/edge.ts')).toBe('edge-processes-edge.js')
})
