import { chmodSync, lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { prepareDataDir } from '../../../control/operations/supervisor/data-dir.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-data-dir-'))
  chmodSync(folder, 0o755)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const modeOf = (name: string): number => lstatSync(path.join(folder, name)).mode & 0o777

test('an empty folder is closed to others', () => {
  prepareDataDir(folder)
  expect(modeOf('.')).toBe(0o700)
})

test('a folder that others use is refused and stays as it is', () => {
  writeFileSync(path.join(folder, 'of-somebody-else.txt'), 'hello', { mode: 0o644 })
  expect(() => prepareDataDir(folder)).toThrow(/open to other users and not Dropway's own.*chmod 700/)
  expect([modeOf('.'), modeOf('of-somebody-else.txt')]).toEqual([0o755, 0o644])
  // Closed by hand, it may be used.
  chmodSync(folder, 0o700)
  prepareDataDir(folder)
})

test('what an earlier release left open is closed, and links are not followed', () => {
  const outside = mkdtempSync(path.join(os.tmpdir(), 'dropway-outside-'))
  chmodSync(outside, 0o755)
  mkdirSync(path.join(folder, 'redis'), { mode: 0o755 })
  writeFileSync(path.join(folder, 'redis', 'old.aof'), 'secret', { mode: 0o644 })
  writeFileSync(path.join(folder, 'program'), '', { mode: 0o755 })
  symlinkSync(outside, path.join(folder, 'elsewhere'))
  prepareDataDir(folder)
  expect([modeOf('.'), modeOf('redis'), modeOf('redis/old.aof'), modeOf('program')]).toEqual([
    0o700, 0o700, 0o600, 0o700,
  ])
  expect(lstatSync(outside).mode & 0o777).toBe(0o755)
  rmSync(outside, { recursive: true })
})

test.each(['/dev/null', '/proc/dropway'])('%s cannot be used', (file) => {
  expect(() => prepareDataDir(file)).toThrow(/DATA_DIR .* cannot be used/)
})
