/** What a supervisor leaves behind when it is killed: nothing after a moment, and nothing that hinders the next start. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import tls from 'node:tls'
import { afterEach, expect, test } from 'vitest'
import { GIVEN } from '../support/given.ts'
import { isRunning, processTree, until } from '../support/processes.ts'
import { freePorts, startStack, type OwnStack } from '../support/stack.ts'

const SUPERVISOR = 'control/operations/supervisor/main.ts'
/** Without redis-server on its path the service runs on the stand-in. */
const ONLY_NODE = path.dirname(process.execPath)

let stack: OwnStack | undefined
afterEach(async () => {
  await stack?.stop()
  stack = undefined
})

/** A stack with more to end than processes: visitors and an upload would be waited for. */
async function startBusyStack(env: Readonly<Record<string, string>> = {}) {
  const running = await startStack({ workers: 2, env: { EDGE_DRAIN: '10m', ...env } })
  stack = running
  const account = await running.createAccount()
  const site = await running.publish(account, '<p>kept</p>')
  const upload = await beginUpload(running)
  return {
    running,
    async comesBack(): Promise<void> {
      upload.destroy()
      await running.restart()
      expect((await running.visit(site.slug)).text()).toContain('<p>kept</p>')
    },
  }
}

async function killAndWaitForAll(running: OwnStack): Promise<void> {
  const processes = everyProcess(running)
  expect(processes.length).toBeGreaterThan(6)
  running.kill('supervisor')
  await until(() => !processes.some(isRunning), 'everything to end with the supervisor')
}

test('kill -9 of the supervisor, over the stand-in for Redis: everything ends by itself, and the next start loses nothing', async () => {
  const { running, comesBack } = await startBusyStack({ PATH: ONLY_NODE })
  await killAndWaitForAll(running)
  await comesBack()
})

test('kill -9 of the supervisor: everything ends by itself; what heeds no signal and has lost its guard is ended by the next start', async () => {
  const { running, comesBack } = await startBusyStack()
  await killAndWaitForAll(running)
  await comesBack()

  const { supervisor } = running.pids()
  const left = everyProcess(running).filter((pid) => pid !== supervisor)
  for (const pid of left) halt(pid)
  running.kill('supervisor')
  await comesBack()
  expect(left.filter(isRunning)).toEqual([])
})

test.each(['postgres.new', 'logs/edge.log'])(
  'kill -9 of the supervisor as soon as there is %s: nothing stays, and the next start gets ready',
  async (sign) => {
    const dataDir = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-killed-'))
    const [https, http, control] = await freePorts(3)
    const env = {
      PATH: process.env['PATH']!,
      ...GIVEN,
      DATA_DIR: dataDir,
      EDGE_HTTPS_PORT: String(https),
      EDGE_HTTP_PORT: String(http),
      CONTROL_PORT: String(control),
      EDGE_WORKERS: '2',
    }
    const first = begin(env)
    await until(() => existsSync(path.join(dataDir, sign)), `${sign} to be there`)
    const processes = processTree(first.pid!)
    first.kill('SIGKILL')
    await once(first, 'exit')
    await until(() => !processes.some(isRunning), 'everything to end with the supervisor')

    stack = await startStack({ env })
    expect((await stack.fetch('/healthz')).status).toBe(200)
  },
)

function begin(env: Readonly<Record<string, string>>): ChildProcess {
  return spawn(process.execPath, [SUPERVISOR], { env, stdio: 'ignore' })
}

/** The shells that wait for the end of the supervisor. */
function isGuard(pid: number): boolean {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('guard.sh')
}

/** Some processes of Postgres and Redis come and go: one that has gone meanwhile is no more. */
function halt(pid: number): void {
  try {
    process.kill(pid, isGuard(pid) ? 'SIGKILL' : 'SIGSTOP')
  } catch (error) {
    if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

function everyProcess(running: OwnStack): number[] {
  return processTree(running.pids()['supervisor']!)
}

/** An upload that stays unfinished: the edge and control would both wait for it. */
async function beginUpload({ httpsPort, ca, baseUrl }: OwnStack): Promise<tls.TLSSocket> {
  const socket = tls.connect({ port: httpsPort, host: '127.0.0.1', servername: 'localhost', ca })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  socket.write(
    `POST /api/v1/drops HTTP/1.1\r\nhost: ${new URL(baseUrl).host}\r\ncontent-type: multipart/form-data; boundary=x\r\ncontent-length: 1000\r\n\r\n--x\r\n`,
  )
  return socket
}
