/** One supervisor per DATA_DIR: who holds it, and who does not any more. */
import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { awaitDataDir, lockDataDir } from '../../../control/operations/supervisor/preflight.ts'
import { startTimeOf } from '../../../control/operations/supervisor/processes/processes.ts'

const HOLDER = fileURLToPath(new URL('../../support/lock-process.ts', import.meta.url))
const refusal = /^Dropway already runs on .*, here or in another container, or this file system has no locks\. Stop it/
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

test('nothing is written beside it, so that a full disk is no hindrance', () => {
  const unlock = lockDataDir(dataDir)
  const names = readdirSync(dataDir)
  unlock()
  expect(names.toSorted()).toEqual(['supervisor.held', 'supervisor.lock'])
})

test('a file that cannot be opened is named', () => {
  mkdirSync(path.join(dataDir, 'supervisor.held'))
  expect(() => lockDataDir(dataDir)).toThrow(
    `${path.join(dataDir, 'supervisor.held')} cannot be opened. Free some space`,
  )
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

describe('a start beside a holder that is ending', () => {
  const PATIENCE_MS = 60_000
  const noCancel = new AbortController().signal

  test('waits for it, and has the lock afterwards', async () => {
    const { process: holder } = await startHolder()
    const taking = awaitDataDir(dataDir, noCancel, PATIENCE_MS)
    holder.kill('SIGKILL')
    const unlock = await taking
    expect(() => lockDataDir(dataDir)).toThrow(refusal)
    unlock()
  })

  test('is refused once its patience is over', async () => {
    const unlock = lockDataDir(dataDir)
    await expect(awaitDataDir(dataDir, noCancel, 0)).rejects.toThrow(refusal)
    unlock()
  })

  test('is given up when it is told to stop', async () => {
    const unlock = lockDataDir(dataDir)
    const stop = new AbortController()
    const taking = awaitDataDir(dataDir, stop.signal, PATIENCE_MS)
    stop.abort()
    await expect(taking).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
    unlock()
  })

  test('hears at once of anything else', async () => {
    mkdirSync(path.join(dataDir, 'supervisor.held'))
    await expect(awaitDataDir(dataDir, noCancel, PATIENCE_MS)).rejects.toThrow('cannot be opened')
  })
})

/** Process id and start time: all that the release before knows of a holder. */
const formerLock = (): string => path.join(dataDir, 'supervisor.lock')

test('one of the release before, which holds no lock of the kernel, is seen as long as it lives', async () => {
  const former = spawn('sleep', ['1000'])
  onTestFinished(() => void former.kill('SIGKILL'))
  const noted = `${former.pid} ${startTimeOf(former.pid!)}\n`
  writeFileSync(formerLock(), noted)
  expect(() => lockDataDir(dataDir)).toThrow(`Dropway already runs on ${dataDir} (process ${former.pid}). Stop it`)
  expect(readFileSync(formerLock(), 'utf8')).toBe(noted)
  former.kill('SIGKILL')
  await once(former, 'exit')
  lockDataDir(dataDir)()
})

test.each([
  ['of an id that another process has now', `${process.pid} 1\n`],
  ['that is empty', ''],
])('a note of the release before %s holds nothing', (_which, noted) => {
  writeFileSync(formerLock(), noted)
  lockDataDir(dataDir)()
})

test('the release before sees a holder, and finds nothing when it has stopped', () => {
  const unlock = lockDataDir(dataDir)
  expect(readFileSync(formerLock(), 'utf8').trim().split(' ').slice(0, 2)).toEqual([
    String(process.pid),
    startTimeOf(process.pid),
  ])
  unlock()
  expect(existsSync(formerLock())).toBe(false)
})

test('a note that a killed holder left counts for nothing, whichever process has its id and start time now', () => {
  const unlock = lockDataDir(dataDir)
  const left = readFileSync(formerLock())
  unlock()
  writeFileSync(formerLock(), left)
  lockDataDir(dataDir)()
})
