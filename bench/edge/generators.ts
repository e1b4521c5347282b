/** Load generators, each on its own core: they run for some seconds, or for so many requests, and say what was answered. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import os from 'node:os'
import path from 'node:path'
import { findProgram, isInstalled } from '../../test/support/programs.ts'
import type { Protocol } from './rows.ts'

export const LOAD_CORE = Math.min(1, os.availableParallelism() - 1)
const HANDSHAKE_CLIENTS = 4
const H1_CONNECTIONS = 32
const H2_CONNECTIONS = 8
const H2_STREAMS = 16
const CONNECTING = path.join(import.meta.dirname, 'connecting.ts')
const AUTOCANNON = path.resolve(import.meta.dirname, '../../node_modules/.bin/autocannon')

export interface Target {
  readonly port: number
  readonly host: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** What every answer must be; 200 when it is not said. */
  readonly status?: number
  /** A file with an address per line, asked for in turn instead of the path. */
  readonly addresses?: string
  /** A ticket of another server, in base64. */
  readonly ticket?: string
}

export const canGenerate: Readonly<Record<Protocol, boolean>> = {
  h1: true,
  h2: isInstalled('h2load'),
  handshake: isInstalled('openssl'),
  hybrid: true,
  resumption: true,
}

/** Many times what is asked for: a generator that hangs must not hold up the others. */
const MAX_RUN_MS = 180_000

async function run(program: string, args: readonly string[]): Promise<string> {
  const child = spawn('taskset', ['-c', String(LOAD_CORE), findProgram(program) ?? program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_NO_WARNINGS: '1' },
    timeout: MAX_RUN_MS,
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  await once(child, 'close')
  return output
}

export async function loadH2(
  target: Target,
  length: { readonly seconds: number } | { readonly requests: number },
): Promise<number> {
  const { port, host, path: file, headers = {}, status = 200, addresses } = target
  const output = await run('h2load', [
    ...('seconds' in length ? ['-D', String(Math.ceil(length.seconds))] : ['-n', String(length.requests)]),
    ...['-c', String(H2_CONNECTIONS), '-m', String(H2_STREAMS)],
    ...Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
    `--connect-to=127.0.0.1:${port}`,
    ...(addresses === undefined ? [`https://${host}:${port}${file}`] : ['-i', addresses]),
  ])
  const codes = /status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx/.exec(output)?.slice(1).map(Number) ?? []
  const wanted = Math.floor(status / 100) - 2
  const good = codes[wanted] ?? 0
  if (good === 0 || codes.some((count, at) => at !== wanted && count > 0)) throw new Error(`h2load: ${output}`)
  return good
}

export function loadH1(target: Target, seconds: number): Promise<number> {
  return isInstalled('wrk') ? loadWithWrk(target, seconds) : loadWithAutocannon(target, seconds)
}

async function loadWithWrk({ port, host, path: file, headers = {} }: Target, seconds: number): Promise<number> {
  const length = ['-t', '1', '-c', String(H1_CONNECTIONS), '-d', `${Math.ceil(seconds)}s`]
  const said = Object.entries({ Host: host, ...headers }).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const output = await run('wrk', [...length, ...said, `https://127.0.0.1:${port}${file}`])
  const match = /(\d+) requests in/.exec(output)
  if (!match || /Non-2xx/.test(output)) throw new Error(`wrk: ${output}`)
  return Number(match[1])
}

async function loadWithAutocannon({ port, host, path: file, headers = {} }: Target, seconds: number): Promise<number> {
  const length = ['-c', String(H1_CONNECTIONS), '-d', String(Math.ceil(seconds)), '--json', '--no-progress']
  const said = Object.entries({ host, ...headers }).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const output = await run(AUTOCANNON, [...length, ...said, `https://127.0.0.1:${port}${file}`])
  const { '2xx': good, non2xx } = JSON.parse(output.slice(output.indexOf('{'))) as { '2xx': number; non2xx: number }
  if (good === 0 || non2xx > 0) throw new Error(`autocannon: ${output}`)
  return good
}

export async function loadHandshakes({ port, host }: Target, seconds: number): Promise<number> {
  const args = ['s_time', '-connect', `127.0.0.1:${port}`, '-new', '-time', String(Math.ceil(seconds))]
  const outputs = await Promise.all(Array.from({ length: HANDSHAKE_CLIENTS }, () => run('openssl', args)))
  return outputs.reduce((sum, output) => {
    const match = /(\d+) connections in \d+ real seconds/.exec(output)
    if (!match) throw new Error(`openssl s_time on ${host}: ${output}`)
    return sum + Number(match[1])
  }, 0)
}

/** With the key of today's browsers. */
export async function loadHybrid(target: Target, seconds: number): Promise<number> {
  const { made, hybrid } = await connect(target, seconds, 'anew')
  if (hybrid < made) throw new Error(`${made - hybrid} of ${made} connections agreed on another key`)
  return made
}

/** Every connection must have been resumed. */
export async function loadResumptions(target: Target, seconds: number): Promise<number> {
  const { made, resumed } = await connect(target, seconds, target.ticket ?? 'own')
  if (resumed < made) throw new Error(`${made - resumed} of ${made} connections made a full handshake`)
  return made
}

interface Connected {
  readonly made: number
  readonly resumed: number
  readonly hybrid: number
}

async function connect({ port, host }: Target, seconds: number, how: string): Promise<Connected> {
  return JSON.parse(await run(process.execPath, [CONNECTING, String(port), host, String(seconds), how])) as Connected
}
