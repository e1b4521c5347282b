/** Logs in DATA_DIR: bounded, and never a reason to stop. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openLogFile } from '../../../control/operations/supervisor/processes/log-file.ts'

let dataDir: string
let file: string

beforeEach(() => {
  dataDir = mkdtempSync(path.join(os.tmpdir(), 'dropway-logs-'))
  file = path.join(dataDir, 'logs', 'control.log')
  mkdirSync(path.dirname(file))
  writeFileSync(file, '')
  truncateSync(file, 10_000_001)
})
afterEach(() => rmSync(dataDir, { recursive: true }))

test('a full log is put aside and a new one begins', () => {
  openLogFile(dataDir, 'control')('first')
  expect(statSync(`${file}.1`).size).toBe(10_000_001)
  expect(readFileSync(file, 'utf8')).toBe('first\n')
})

test('a full log that cannot be put aside grows no further, and the writer goes on', () => {
  mkdirSync(path.join(`${file}.1`, 'in the way'), { recursive: true })
  openLogFile(dataDir, 'control')('lost')
  expect(statSync(file).size).toBe(10_000_001)
})
