/** The whole service as `npm start` runs it, over the stand-in for Redis as in the image, for what is measured from outside. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { cpuMs, processTree, proportionalMb } from '../../test/support/processes.ts'
import { freePorts } from '../../test/support/stack.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const SUPERVISOR = 'control/operations/supervisor/main.ts'

export interface Whole {
  readonly pid: number
  /** From the call of the program to its last line, and the processor time of all its processes until then. */
  readonly ready: { readonly seconds: number; readonly cpuSeconds: number }
  /** What it has said so far. */
  output(): string
  stop(): Promise<void>
}

export interface Place {
  readonly dataDir: string
  readonly port: number
  readonly env: Readonly<Record<string, string>>
  remove(): void
}

/** Where a service lives over several starts. */
export async function createPlace(env: Readonly<Record<string, string>> = {}): Promise<Place> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-bench-'))
  const [https, http, control] = await freePorts(3)
  const dataDir = path.join(folder, 'data')
  return {
    dataDir,
    port: https!,
    env: {
      HOME: folder,
      // Only Node: no redis-server is found.
      PATH: path.dirname(process.execPath),
      DATA_DIR: dataDir,
      EDGE_HTTPS_PORT: String(https),
      EDGE_HTTP_PORT: String(http),
      CONTROL_PORT: String(control),
      // As `npm start` sets it.
      NODE_COMPILE_CACHE: path.join(ROOT, 'node_modules/.cache/compiled'),
      ...env,
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** `onStart` hears of the process before it has done anything that counts. */
export async function startWhole({ env }: Place, onStart: (pid: number) => void = () => {}): Promise<Whole> {
  const begunMs = performance.now()
  const child = spawn(process.execPath, [SUPERVISOR], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const pid = child.pid!
  onStart(pid)
  let said = ''
  const exited = once(child, 'exit')
  const ready = new Promise<void>((resolve, reject) => {
    const hear = (chunk: Buffer): void => {
      said += chunk.toString()
      if (/^ready /m.test(said)) resolve()
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    void exited.then(() => reject(new Error(`it ended:\n${said}`)))
  })
  await ready
  return {
    pid,
    ready: { seconds: (performance.now() - begunMs) / 1000, cpuSeconds: cpuMs(pid) / 1000 },
    output: () => said,
    async stop() {
      child.kill('SIGTERM')
      await exited
    },
  }
}

/** Megabytes of each process below one, by what it is; pages that several share count in parts. */
export function memoryByProcess(pid: number): Map<string, number> {
  const megabytes = new Map<string, number>()
  for (const each of processTree(pid)) {
    const name = nameOf(readFileSync(`/proc/${each}/cmdline`, 'utf8').split('\0'))
    megabytes.set(name, (megabytes.get(name) ?? 0) + proportionalMb(each))
  }
  return megabytes
}

/** The program, without its path. Guards are shells, and Postgres writes what it does over its name. */
function nameOf(words: readonly string[]): string {
  const program = words.find((word) => /(?:main|stand-in)\.(?:ts|js)$/.test(word))
  if (program === undefined) return /postgres/.test(words[0] ?? '') ? 'postgres' : path.basename(words[0] ?? '')
  const name = ['stand-in', 'supervisor', 'control', 'edge'].find((part) => program.includes(part)) ?? program
  return name === 'edge' ? (words.includes('worker') ? 'edge, workers' : 'edge, primary') : name
}
