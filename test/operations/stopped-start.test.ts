/** A signal during the start: the start ends at once, nothing is begun after it, and nothing stays behind. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { GIVEN } from '../support/given.ts'
import { isRunning, processTree, until } from '../support/processes.ts'
import { freePorts } from '../support/stack.ts'

interface Start {
  readonly dataDir: string
  readonly pid: number
  readonly output: string[]
  /** Sends the signal and resolves the exit code. */
  interrupt(signal: NodeJS.Signals): Promise<unknown>
}

async function begin(settings: Readonly<Record<string, string>> = {}): Promise<Start> {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-stopped-'))
  const [https, http, control] = await freePorts(3)
  const env = {
    PATH: process.env['PATH']!,
    ...GIVEN,
    DATA_DIR: dataDir,
    EDGE_HTTPS_PORT: String(https),
    EDGE_HTTP_PORT: String(http),
    CONTROL_PORT: String(control),
    EDGE_WORKERS: '2',
    ...settings,
  }
  const supervisor = spawn(process.execPath, ['control/operations/supervisor/main.ts'], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output: string[] = []
  for (const input of [supervisor.stdout, supervisor.stderr])
    createInterface({ input }).on('line', (line) => output.push(line))
  return {
    dataDir,
    pid: supervisor.pid!,
    output,
    async interrupt(signal) {
      supervisor.kill(signal)
      return (await once(supervisor, 'close'))[0]
    },
  }
}

test.each<NodeJS.Signals>(['SIGINT', 'SIGTERM'])(
  '%s while the database is being created: it is given up',
  async (signal) => {
    for (let tries = 1; ; tries++) {
      const start = await begin()
      await until(() => existsSync(path.join(start.dataDir, 'postgres.new')), 'initdb to begin')
      const processes = processTree(start.pid)
      const wasLate = initdbOf(processes) === undefined
      expect(await start.interrupt(signal)).toBe(0)
      await until(() => !processes.some(isRunning), 'everything to end')
      const left = await readdir(start.dataDir)
      await rm(start.dataDir, { recursive: true, force: true })
      // This process stood still for so long that the database was there already.
      if (wasLate && tries < 20) continue
      expect([start.output, left.includes('postgres')]).toEqual([['stopped'], false])
      return
    }
  },
)

/** Held where it is: it would be done in a moment. Undefined when it is. */
function initdbOf(processes: readonly number[]): number | undefined {
  return processes.find((pid) => {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('initdb')) return false
      process.kill(pid, 'SIGSTOP')
      return true
    } catch {
      return false
    }
  })
}

test('SIGINT while a plane does not get ready: it is not waited for', async () => {
  // With a database that says nothing, control stays at its start until it has been stopped.
  const silent = net.createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  onTestFinished(() => void silent.close())
  const { port } = silent.address() as net.AddressInfo
  const start = await begin({ DATABASE_URL: `postgres://127.0.0.1:${port}/main` })
  const control = path.join(start.dataDir, 'run', 'control.json')
  await until(() => existsSync(control), 'control to be started')
  const processes = processTree(start.pid)
  // The planes never get ready; the supervisor would wait for a minute.
  const planes = processTree(start.pid).filter((pid) => isPlane(start, pid))
  expect(planes.length).toBeGreaterThan(0)
  for (const pid of planes) process.kill(pid, 'SIGSTOP')

  expect(await start.interrupt('SIGINT')).toBe(0)

  expect(start.output.at(-1)).toBe('stopped')
  expect(start.output.filter((line) => /ready|did not start/.test(line))).toEqual([])
  await until(() => !processes.some(isRunning), 'everything to end')
  await rm(start.dataDir, { recursive: true, force: true })
})

function isPlane({ dataDir }: Start, pid: number): boolean {
  return ['control', 'edge'].some((name) => {
    const note = path.join(dataDir, 'run', `${name}.json`)
    return existsSync(note) && (JSON.parse(readFileSync(note, 'utf8')) as { pid: number }).pid === pid
  })
}
