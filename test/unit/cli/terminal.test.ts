/** What the client writes where a person watches, where a script reads, and when it is interrupted. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createProgress } from '../../../cli/terminal/progress.ts'
import { createTerminal, type Terminal } from '../../../cli/terminal/terminal.ts'
import { startServiceStandIn, type ServiceStandIn } from '../../support/service-stand-in.ts'

let folder: string
let service: ServiceStandIn
beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-terminal-'))
  service = await startServiceStandIn()
})
afterEach(async () => {
  await service.close()
  await rm(folder, { recursive: true, force: true })
})

interface Watched {
  readonly terminal: Terminal
  readonly stdin: PassThrough & { isRaw: boolean }
  written(): string
}

/** A terminal on both ends that notes what is written, and whether the keyboard is echoed. */
function watchTerminal(env: Readonly<Record<string, string | undefined>>, json = false): Watched {
  const stdin = Object.assign(new PassThrough(), {
    isTTY: true,
    isRaw: false,
    setRawMode(isRaw: boolean) {
      stdin.isRaw = isRaw
    },
  })
  const output = Object.assign(new PassThrough(), { isTTY: true, columns: 80 })
  let written = ''
  output.on('data', (chunk: Buffer) => (written += chunk.toString()))
  return {
    terminal: createTerminal({ stdin, stdout: output, stderr: output, env }, json),
    stdin,
    written: () => written,
  }
}

async function useAll({ terminal, stdin }: Watched): Promise<void> {
  const progress = createProgress(terminal)
  progress.begin('Sending', 3, 3_000_000)
  progress.advance(1_000_000, 1)
  progress.finish()
  const asked = terminal.confirm('Sure?')
  stdin.write('y\n')
  expect(await asked).toBe(true)
}

test.each([
  [{ TERM: 'xterm' }, true],
  [{ TERM: 'xterm', NO_COLOR: '' }, true],
  [{ TERM: 'xterm', NO_COLOR: '1' }, false],
  [{ TERM: 'dumb' }, false],
])('%j draws over what it wrote: %s', async (env, expected) => {
  const watched = watchTerminal(env)
  await useAll(watched)
  expect(watched.written().includes('\u001b')).toBe(expected)
})

test.each([{ TERM: 'xterm' }, { TERM: 'dumb' }, { TERM: 'xterm', NO_COLOR: '1' }])(
  'a password that is typed is never echoed, %j',
  async (env) => {
    const watched = watchTerminal(env)
    const asked = watched.terminal.ask('Password: ', { hidden: true })
    expect(watched.stdin.isRaw).toBe(true)
    watched.stdin.write('open sesame\r')
    expect(await asked).toBe('open sesame')
    expect(watched.written()).toBe('Password: \n')
  },
)

test('--json prints one document, whatever is said afterwards', () => {
  const { terminal, written } = watchTerminal({}, true)
  terminal.data({ url: 'http://localhost:4000' })
  terminal.data({ error: 'interrupted' })
  expect(JSON.parse(written())).toEqual({ url: 'http://localhost:4000' })
})

test('Ctrl-C with --json ends with 130 and its document', async () => {
  await writeFile(path.join(folder, 'index.html'), 'x')
  const client = spawn(process.execPath, [path.resolve('cli/start.ts'), 'deploy', '--json'], {
    cwd: folder,
    env: { HOME: folder, DROPWAY_URL: service.url, DROPWAY_TOKEN: 'dw_x' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const asked = new Promise<void>((resolve) => {
    service.trouble = (call) => {
      if (call.endsWith('/finish')) resolve()
      return undefined
    }
  })
  let stdout = ''
  client.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  service.holds = (call) => call.endsWith('/finish')
  await asked
  client.kill('SIGINT')
  const [code] = await once(client, 'close')
  expect([code, JSON.parse(stdout)]).toEqual([
    130,
    { error: 'interrupted', detail: expect.stringContaining('Run the same command again') },
  ])
})
