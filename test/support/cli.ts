/** The command-line client as its users have it: packed, installed into an empty folder, run by the machine's own Node. */
import { execFile, spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { inject } from 'vitest'
import { askBroker, type SharedThing } from './broker.ts'
import { runInProcess, type CallOptions, type CliResult, type RunOptions } from './cli-in-process.ts'

export type { CallOptions, CliResult, RunOptions }

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** Ours is newer than what users have; the client must run on theirs. */
const OWN_PATH = (process.env['PATH'] ?? '')
  .split(path.delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(path.delimiter)

export interface Cli {
  /** A folder of this test file's own, with the user's home in it. */
  readonly folder: string
  /** The installed program. */
  readonly bin: string
  /** What would be published, as a file. */
  readonly archive: string
  /** The PATH of people who have it. */
  readonly path: string
  run(args: readonly string[], options?: RunOptions): Promise<CliResult>
  /**
   * The same sources in the test's own process, which saves the start of a program (a quarter of a second of a
   * processor). For what a process, its signals or the machine's own Node have no part in: `run` has those.
   */
  call(args: readonly string[], options?: CallOptions): Promise<CliResult>
  /** The same in a pseudo-terminal; stdout and stderr arrive together. */
  runInTerminal(args: readonly string[], options?: RunOptions): Promise<CliResult>
  remove(): Promise<void>
}

/** Packed and installed once per run: two builds at a time would overwrite each other. */
export async function installSharedCli(): Promise<SharedThing<{ bin: string; archive: string }>> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-cli-'))
  const packed = await packCli(folder)
  const prefix = path.join(folder, 'installed')
  await mkdir(prefix)
  // It has no dependencies, so that no registry is asked.
  await npm(['install', '--offline', '--no-audit', '--no-fund', '--prefix', prefix, packed], folder)
  return {
    description: { bin: path.join(prefix, 'node_modules', '.bin', 'dropway'), archive: packed },
    stop: () => rm(folder, { recursive: true, force: true }),
  }
}

export async function openCli(): Promise<Cli> {
  const { bin, archive } = await askBroker<{ bin: string; archive: string }>(inject('broker'), 'cli')
  const folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-home-'))
  const baseEnv = { PATH: OWN_PATH, HOME: path.join(folder, 'home'), TERM: 'xterm' }
  const complete = (options: RunOptions): RunOptions => ({
    cwd: folder,
    ...options,
    env: { ...baseEnv, ...options.env },
  })
  return {
    folder,
    bin,
    archive,
    path: OWN_PATH,
    run: (args, options = {}) => run(bin, args, complete(options)),
    call: (args, options = {}) => runInProcess(args, { cwd: folder, ...options, env: { ...baseEnv, ...options.env } }),
    runInTerminal(args, options = {}) {
      const command = [bin, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
      return run('script', ['-qec', command, '/dev/null'], complete(options))
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/** The archive that would be published. */
async function packCli(destination: string): Promise<string> {
  const output = await npm(['pack', '--json', '--pack-destination', destination], path.join(ROOT, 'cli'))
  const [entry] = JSON.parse(output.slice(output.indexOf('['))) as [{ filename: string }]
  return path.join(destination, entry.filename)
}

async function npm(args: readonly string[], cwd: string): Promise<string> {
  const { stdout } = await promisify(execFile)('npm', args, {
    cwd,
    env: { ...process.env, npm_config_loglevel: 'error' },
  })
  return stdout
}

function run(command: string, args: readonly string[], options: RunOptions): Promise<CliResult> {
  const child = spawn(command, args, { cwd: options.cwd, env: options.env, stdio: ['pipe', 'pipe', 'pipe'] })
  if (child.pid !== undefined) options.onStart?.(child.pid)
  let stdout = ''
  let stderr = ''
  let responded = false
  function respond(): void {
    const answer = responded ? undefined : options.respond?.(stdout + stderr)
    if (answer === undefined) return
    responded = true
    void answer.then((text) => child.stdin.write(text))
  }
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString()
    respond()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
    respond()
  })
  // It may end without reading what was typed.
  child.stdin.on('error', () => {})
  options.signal?.addEventListener('abort', () => child.kill('SIGKILL'))
  // A terminal stays open as long as someone sits at it.
  if (options.respond === undefined) child.stdin.end(options.input ?? '')
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      const lines = stdout.replaceAll('\r\n', '\n').trimEnd().split('\n')
      resolve({ code: code ?? -1, stdout, stderr, lines, json: () => JSON.parse(stdout) })
    })
  })
}
