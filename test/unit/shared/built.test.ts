import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { builtName, isBuilt, listFile, sourceMark } from '../../../shared/running/built.ts'

let root: string
const source = (): string => path.join(root, 'a.ts')

beforeEach(() => {
  root = mkdtempSync(path.join(os.tmpdir(), 'dropway-built-'))
  mkdirSync(path.dirname(listFile(root)))
  writeFileSync(source(), 'export const a = 1\n')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const buildFrom = (marks: object): void => writeFileSync(listFile(root), JSON.stringify(marks))

test('the built form runs while its sources are as they were', () => {
  buildFrom({ 'a.ts': sourceMark(source()) })
  expect(isBuilt(`${root}/`)).toBe(true)
})

test.each([
  ['one of them was edited', () => writeFileSync(source(), 'export const a = 22\n')],
  ['one of them was written anew with as many bytes', () => utimesSync(source(), 1, 1)],
  ['one of them is gone', () => rmSync(source())],
  ['the list is gone: a build was interrupted', () => rmSync(listFile(root))],
  ['the list is half a list', () => writeFileSync(listFile(root), '{"a.ts":')],
])('the sources run when %s', (_what, happens) => {
  buildFrom({ 'a.ts': sourceMark(source()) })
  happens()
  expect(isBuilt(`${root}/`)).toBe(false)
})

test('nothing is compared where the list is empty, as in the image', () => {
  buildFrom({})
  rmSync(source())
  expect(isBuilt(`${root}/`)).toBe(true)
})

test('files of the built form are named by the path of their source', () => {
  expect(builtName('edge/processes/edge.ts')).toBe('edge-processes-edge.js')
})
