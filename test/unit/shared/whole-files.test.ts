/** Small secret files: what a power cut may leave of them, and what is done about it. */
import fs, { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { readSecretKey } from '../../../shared/secrets/secret-key.ts'
import { readOrCreate, replaceFile } from '../../../shared/secrets/whole-files.ts'
import { EnvReader } from '../../../shared/settings/env.ts'

const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-whole-files-'))
afterAll(() => rmSync(folder, { recursive: true }))
afterEach(() => {
  vi.restoreAllMocks()
  syncBuiltinESMExports()
})

/** Calls that decide what is on the disk after a power cut, in their order. */
function followDisk(): string[] {
  const done: string[] = []
  const sync = fs.fsyncSync
  vi.spyOn(fs, 'fsyncSync').mockImplementation((handle) => {
    done.push(fs.fstatSync(handle).isDirectory() ? 'sync folder' : 'sync file')
    sync(handle)
  })
  for (const name of ['linkSync', 'renameSync'] as const) {
    const real = fs[name]
    vi.spyOn(fs, name).mockImplementation((from, to) => {
      done.push('name it')
      real(from, to)
    })
  }
  syncBuiltinESMExports()
  return done
}

test.each([
  ['created', (file: string) => readOrCreate(file, () => 'a secret')],
  ['replaced', (file: string) => replaceFile(file, 'a secret')],
])('a file that is %s is on the disk before it has its name, and its name before it is used', (name, write) => {
  const home = path.join(folder, name)
  fs.mkdirSync(home)
  const done = followDisk()
  write(path.join(home, 'file'))
  expect(done).toEqual(['sync file', 'name it', 'sync folder'])
  expect(readdirSync(home)).toEqual(['file'])
  expect(readFileSync(path.join(home, 'file'), 'utf8')).toBe('a secret')
})

function keyIn(dataDir: string): string {
  const env = new EnvReader({})
  return env.finish({ key: readSecretKey(env, dataDir) }).key
}

test('a generated key is found again', () => {
  const home = path.join(folder, 'generated')
  const key = keyIn(home)
  expect(key).toMatch(/^[0-9a-f]{64}$/)
  expect(keyIn(home)).toBe(key)
})

test.each([
  ['nothing', ''],
  ['a part of the key', 'ab'.repeat(20)],
  ['zeroes', '\0'.repeat(65)],
])('a file of the key with %s in it is refused in a sentence, and stays', (_, content) => {
  const home = mkdtempSync(path.join(folder, 'torn-'))
  const file = path.join(home, 'secret.key')
  writeFileSync(file, content)
  expect(() => keyIn(home)).toThrow(/secret\.key holds no whole key.*delete it.*your copy/)
  expect(readFileSync(file, 'utf8')).toBe(content)
})
