import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { GIVEN } from '../support/given.ts'
import { isRunning, processTree, until } from '../support/processes.ts'
import {
  freePorts,
  run,
  startStack,
  type Account,
  type OwnStack,
  type ProcessName,
  type Published,
} from '../support/stack.ts'

const SUPERVISOR = 'control/operations/supervisor/main.ts'
const ALREADY_RUNS = /^Dropway already runs on .* Stop it, or set DATA_DIR to another directory\.\n$/

describe('a running stack', () => {
  let stack: OwnStack
  let account: Account

  beforeAll(async () => {
    stack = await startStack({ workers: 2 })
    account = await stack.createAccount('business')
  })
  afterAll(() => stack?.stop())

  test.each<ProcessName>(['control', 'redis', 'postgres', 'edge'])(
    'kill -9 of %s: it comes back, visitors and acknowledged publishes are unharmed',
    async (victim) => {
      const standing = await stack.publish(account, '<p>standing</p>')
      const visitors = startVisitors(stack, standing.slug)
      const publisher = startPublisher(stack, account)
      await publisher.acknowledgedMore()
      const before = stack.pids()[victim]!

      stack.kill(victim)

      await until(() => !isRunning(before), `${victim} to be dead`)
      await until(() => (stack.pids()[victim] ?? before) !== before, `${victim} to be started again`)
      await publisher.acknowledgedMore()
      const acknowledged = await publisher.stop()
      const failures = await visitors.stop()

      for (const { slug, page } of acknowledged) expect((await stack.visit(slug)).text()).toContain(page)
      expect((await stack.visit(standing.slug)).status).toBe(200)
      if (victim !== 'edge') expect(failures).toEqual([])
    },
  )

  test('a second start on the same DATA_DIR is refused, from another container too', async () => {
    const { code, stderr } = await run([SUPERVISOR], stack.env)
    expect(stderr).toMatch(ALREADY_RUNS)
    expect(code).toBe(1)
    const before = stack.pids()
    // Process ids and shared memory of its own, and other ports: nothing but the files tells of the first one.
    const apart = ['--user', '--map-root-user', '--pid', '--ipc', '--net', '--fork', '--kill-child', '--mount-proc']
    const args = [...apart, process.execPath, SUPERVISOR]
    const second = spawn('unshare', args, { env: stack.env, stdio: ['ignore', 'ignore', 'pipe'] })
    onTestFinished(() => void second.kill('SIGKILL'))
    expect(await text(second.stderr)).toMatch(ALREADY_RUNS)
    expect(stack.pids()).toEqual(before)
  })

  test('the doctor finds it well and prints what memory it takes', async () => {
    const { code, stdout } = await stack.admin('doctor', '--json')
    const findings = JSON.parse(stdout) as { check: string; state: string; detail: string }[]
    expect(findings.filter(({ state }) => state === 'problem')).toEqual([])
    expect(findings.map(({ check }) => check)).toEqual(
      expect.arrayContaining([
        'node',
        'disk',
        'postgres',
        'clock',
        'redis',
        'edges',
        'control',
        'edge https',
        'memory',
      ]),
    )
    expect(findings.find(({ check }) => check === 'memory')!.detail).toMatch(
      /^\d+ MB: supervisor \d+ MB in \d+, postgres/,
    )
    expect(code).toBe(0)
  })
})

test('quiet when idle; a stop leaves no process; starts after a stop and after a kill lose nothing', async () => {
  // A path too long for a unix socket, which must be no hindrance.
  const home = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-long-'))
  const stack = await startStack({
    npm: true,
    env: { DATA_DIR: path.join(home, 'd'.repeat(100), 'e'.repeat(40)) },
  })
  for (let round = 0; round < 2; round++) {
    const before = await jobsDone(stack)
    await expect.poll(() => jobsDone(stack)).not.toBe(before)
  }
  expect(stack.output.at(-1)).toBe(`ready ${stack.baseUrl}`)

  const account = await stack.createAccount()
  const site = await stack.publish(account, '<p>first</p>')
  const stopped = processTree(stack.pids()['supervisor']!)
  expect(stopped.length).toBeGreaterThan(5)
  await stack.restart()
  expect(stopped.filter(isRunning)).toEqual([])
  expect((await stack.visit(site.slug)).text()).toContain('<p>first</p>')
  await stack.publish(account, '<p>second</p>', site)

  const { control, edge } = stack.pids()
  stack.kill('supervisor')
  await until(() => ![control!, edge!].some(isRunning), 'the planes to end with their supervisor')
  await stack.restart()
  expect((await stack.visit(site.slug)).text()).toContain('<p>second</p>')

  const running = processTree(stack.pids()['supervisor']!)
  expect(await stack.stop()).toBe(0)
  expect(running.filter(isRunning)).toEqual([])
  await rm(home, { recursive: true, force: true })
})

describe('what cannot start says why in one sentence', () => {
  let folder: string
  let env: Record<string, string>

  beforeAll(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-refused-'))
    const [https, http, control] = await freePorts(3)
    env = {
      PATH: process.env['PATH']!,
      ...GIVEN,
      DATA_DIR: path.join(folder, 'data'),
      EDGE_HTTPS_PORT: String(https),
      EDGE_HTTP_PORT: String(http),
      CONTROL_PORT: String(control),
    }
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  test.each(['EDGE_HTTPS_PORT', 'EDGE_HTTP_PORT', 'CONTROL_PORT'])('a busy %s', async (setting) => {
    const other = net.createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as net.AddressInfo
    const { code, stdout, stderr } = await run([SUPERVISOR], { ...env, [setting]: String(port) })
    other.close()
    expect(stderr).toBe(
      `Port ${port} is already in use. Stop the program that has it, or set ${setting} to another port.\n`,
    )
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  })

  test('a DATA_DIR that is a file, lies in a file, or cannot be created', async () => {
    const file = path.join(folder, 'file')
    await writeFile(file, '')
    for (const [dataDir, reason] of [
      [file, 'it is not a directory'],
      [path.join(file, 'below'), 'it is not a directory'],
      ['/proc/dropway', 'it cannot be created'],
    ] as const) {
      const { code, stderr } = await run([SUPERVISOR], { ...env, DATA_DIR: dataDir })
      expect(stderr).toBe(
        `DATA_DIR ${dataDir} cannot be used: ${reason}. Set DATA_DIR to a directory that you can write to.\n`,
      )
      expect(code).toBe(1)
    }
  })

  test('a database that does not answer, and one that refuses', async () => {
    const silent = net.createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as net.AddressInfo
    for (const [place, reason] of [
      [`127.0.0.1:${port}/main`, `Postgres does not answer at 127.0.0.1:${port}/main.`],
      ['127.0.0.1:1/main', 'Postgres cannot be reached at 127.0.0.1:1/main (ECONNREFUSED).'],
    ] as const) {
      const { code, stderr } = await run([SUPERVISOR], { ...env, DATABASE_URL: `postgres://user:secret@${place}` })
      expect(stderr.split('\n')).toEqual([expect.stringContaining(`The control plane did not start: ${reason}`), ''])
      expect(stderr).not.toContain('secret')
      expect(code).toBe(1)
    }
    silent.close()
  })

  test('less memory than it needs', async () => {
    const { code, stdout, stderr } = await run([SUPERVISOR], { ...env, MIN_MEMORY_MB: '9000000' })
    expect(stderr).toMatch(/^Dropway needs 9000000 MB of memory and has \d+ MB here\. .* MIN_MEMORY_MB .*\n$/)
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' })
  })

  test('wrong settings, all of them at once, of both planes', async () => {
    const wrong = { BASE_URL: 'nowhere', EDGE_WORKERS: 'many', JOB_INTERVAL: 'often' }
    const { code, stderr } = await run([SUPERVISOR], { ...env, ...wrong })
    for (const name of Object.keys(wrong)) expect(stderr).toContain(`- ${name} must be`)
    expect(code).toBe(78)
  })

  test.each(['control', 'edge'])(
    'wrong settings of the %s plane alone, by the code that systemd stops at',
    async (plane) => {
      const { code, stderr } = await run([`${plane}/main.ts`], { ...env, BASE_URL: 'nowhere' })
      expect(stderr).toContain('- BASE_URL must be')
      expect(code).toBe(78)
    },
  )

  test('--help explains, an unknown option is refused', async () => {
    const help = await run([SUPERVISOR, '--help'], env)
    expect(help).toMatchObject({ code: 0, stderr: '' })
    expect(help.stdout).toContain('DATA_DIR')
    expect(await run([SUPERVISOR, '--fast'], env)).toMatchObject({ code: 1, stdout: '' })
  })

  test('the doctor beside no stack names what is down and how to mend it', async () => {
    const { code, stdout } = await run(['control/operations/admin/main.ts', 'doctor'], env)
    expect(stdout).toMatch(/FAIL postgres .*\n +→ Start Dropway with "npm start"/)
    expect(stdout).toMatch(/FAIL control .*\n +→ /)
    expect(code).toBe(1)
  })

  test('an admin command beside no stack says that it cannot reach it', async () => {
    const { code, stdout, stderr } = await run(['control/operations/admin/main.ts', 'republish'], env)
    expect(stderr).toMatch(/^Postgres cannot be reached .* Is Dropway running/)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  })
})

/** Visits the drop again and again; `stop` tells every answer that was not the page. */
function startVisitors(stack: OwnStack, slug: string): { stop(): Promise<string[]> } {
  const failures: string[] = []
  let stopping = false
  const visit = async (h2: boolean) => {
    while (!stopping) {
      await stack.visit(slug, '/', { h2 }).then(
        ({ status }) => status !== 200 && failures.push(`status ${status}`),
        (error: unknown) => failures.push(String(error)),
      )
      await sleep(20)
    }
  }
  const visitors = [visit(true), visit(false)]
  return {
    async stop() {
      stopping = true
      await Promise.all(visitors)
      return failures
    },
  }
}

interface Acknowledged {
  readonly slug: string
  readonly page: string
}

/** Publishes one version after the other to one drop; only a 201 counts, and its page must stay until the next one. */
function startPublisher(stack: OwnStack, account: Account) {
  const last = new Map<string, Acknowledged>()
  let count = 0
  let stopping = false
  async function publish(): Promise<void> {
    const site: Published = await stack.publish(account, '<p>version 0</p>')
    while (!stopping) {
      const page = `<p>version ${count + 1}</p>`
      const done = await stack.publish(account, page, site).then(
        () => true,
        // Not acknowledged: it may have gone live or not; the next attempt publishes the same page.
        () => false,
      )
      if (done) {
        last.set(site.slug, { slug: site.slug, page })
        count++
      }
      await sleep(20)
    }
  }
  const publishing = publish()
  return {
    async acknowledgedMore() {
      const goal = count + 2
      await until(() => count >= goal, 'further publishes to be acknowledged')
    },
    async stop() {
      stopping = true
      await publishing
      return [...last.values()]
    },
  }
}

/** When control's jobs came to a good end, as its metrics say: what one of them wrote comes before that. */
async function jobsDone({ controlPort }: OwnStack): Promise<string> {
  const metrics = await (await fetch(`http://127.0.0.1:${controlPort}/metrics`)).text()
  const lines = metrics.match(/^dropway_control_job_last_success_timestamp_seconds.*$/gm)
  if (lines === null) throw new Error('control tells of no jobs')
  return lines.join('\n')
}
