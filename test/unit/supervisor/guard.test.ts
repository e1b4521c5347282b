import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { endNoted, endWithUs } from '../../../control/operations/supervisor/processes/guard.ts'

test('a note about a child is whole for everybody who reads it, also while the next one is written', async () => {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'guard-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  const guarded = { dataDir, name: 'plane', signal: 'SIGTERM' } as const
  const start = () => {
    const child = spawn('sleep', ['600'])
    onTestFinished(() => void child.kill('SIGKILL'))
    endWithUs(child, guarded)
    return child
  }

  const first = start()
  const reader = openSync(path.join(dataDir, 'run', 'plane.json'), 'r')
  onTestFinished(() => closeSync(reader))
  const second = start()
  const ended = once(second, 'exit')

  expect(JSON.parse(readFileSync(reader, 'utf8'))).toMatchObject({ pid: first.pid })
  expect(readdirSync(path.join(dataDir, 'run'))).toEqual(['plane.json'])
  expect(await endNoted(dataDir)).toBe(1)
  expect(await ended).toEqual([null, 'SIGTERM'])
})
