/** How long a start may take: as long as there is progress, or a migration. */
import { EventEmitter } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { readyOrFailure } from '../../../control/operations/supervisor/postgres/postgres.ts'
import { startPlane } from '../../../control/operations/supervisor/processes/plane.ts'
import type { PipedChild } from '../../../control/operations/supervisor/processes/processes.ts'

const HOUR_MS = 3_600_000
const MAIN = new URL('../../support/starting-process.ts', import.meta.url)

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

function start({ migrates }: { migrates: boolean }) {
  const dataDir = mkdtempSync(path.join(os.tmpdir(), 'dropway-start-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  const migrated = path.join(dataDir, 'migrated')
  const { promise: atWork, resolve } = Promise.withResolvers<string>()
  const started = startPlane({
    name: 'control',
    dataDir,
    main: MAIN,
    environment: migrates ? { MIGRATED: migrated } : {},
    addresses: Promise.resolve({}),
    graceMs: 1000,
    onLog() {},
    onWord: resolve,
    cancel: new AbortController().signal,
  })
  return { started, atWork, endMigration: () => writeFileSync(migrated, '') }
}

test('a plane that migrates for an hour is waited for', async () => {
  const { started, atWork, endMigration } = start({ migrates: true })
  await atWork
  vi.advanceTimersByTime(HOUR_MS)
  endMigration()
  const plane = await started
  vi.useRealTimers()
  await plane.stop('hurried')
})

test('a plane that does nothing of the kind is given up', async () => {
  const { started, atWork } = start({ migrates: false })
  const refused = expect(started).rejects.toThrow('it did not get ready within 60 s')
  await atWork
  vi.advanceTimersByTime(HOUR_MS)
  await refused
})

/** A server of Postgres that says what it is told to say. */
function fakeServer() {
  const stderr = new PassThrough()
  const kill = vi.fn<(signal: string) => void>()
  const server = Object.assign(new EventEmitter(), { stderr, kill, exitCode: null, signalCode: null })
  let heard = Promise.withResolvers<void>()
  const outcome = readyOrFailure(server as unknown as PipedChild, () => heard.resolve())
  const say = async (line: string): Promise<void> => {
    heard = Promise.withResolvers()
    stderr.write(`${line}\n`)
    await heard.promise
  }
  return { outcome, say, kill }
}

test('Postgres may recover for as long as it makes progress', async () => {
  const { outcome, say, kill } = fakeServer()
  for (let turn = 0; turn < 60; turn++) {
    vi.advanceTimersByTime(50_000)
    await say('LOG:  redo in progress, elapsed time: 10.00 s, current LSN: 0/1')
  }
  await say('LOG:  database system is ready to accept connections')
  expect(await outcome).toBeUndefined()
  expect(kill).not.toHaveBeenCalled()
  expect(vi.getTimerCount()).toBe(0)
})

test('Postgres that is silent is given up', async () => {
  const { outcome, say, kill } = fakeServer()
  await say('LOG:  starting')
  vi.advanceTimersByTime(60_000)
  expect(await outcome).toBe('It took too long.')
  expect(kill).toHaveBeenCalledWith('SIGKILL')
})
