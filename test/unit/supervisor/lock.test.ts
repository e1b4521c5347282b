/** One supervisor per DATA_DIR: who holds it, and who does not any more. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { lockDataDir } from '../../../control/operations/supervisor/preflight.ts'

const HOLDER = fileURLToPath(new URL('../../support/lock-process.ts', import.meta.url))
const refusal = /^Dropway already runs on .*, here or in another container\. Stop it/
let dataDir: string

beforeEach(() => {
  dataDir = mkdtempSync(path.join(os.tmpdir(), 'dropway-lock-'))
  return () => rmSync(dataDir, { recursive: true })
})

async function startHolder(): Promise<{ process: ChildProcess; said: string }> {
  const holder = fork(HOLDER, [dataDir])
  onTestFinished(() => void holder.kill('SIGKILL'))
  const [said] = (await once(holder, 'message')) as [string]
  return { process: holder, said }
}

test('a second one is refused until the first gives it back', () => {
  const unlock = lockDataDir(dataDir)
  expect(() => lockDataDir(dataDir)).toThrow(refusal)
  unlock()
  lockDataDir(dataDir)()
})

test('a holder that is stopped still holds it; one that was killed does not', async () => {
  const { process: holder, said } = await startHolder()
  expect(said).toBe('held')
  holder.kill('SIGSTOP')
  expect(() => lockDataDir(dataDir)).toThrow(refusal)
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  lockDataDir(dataDir)()
})

test('of several that start at once, one gets it', async () => {
  const started = await Promise.all(Array.from({ length: 4 }, startHolder))
  const said = started.map((each) => each.said)
  expect(said.filter((word) => word === 'held')).toHaveLength(1)
  expect(said.filter((word) => refusal.test(word))).toHaveLength(3)
})
