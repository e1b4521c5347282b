/** The command-line client in the test's own process: what a run prints and returns, without the start of a program. */
import { PassThrough } from 'node:stream'
import { main } from '../../cli/main.ts'

export interface CliResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** Lines of stdout without the last line break. */
  readonly lines: readonly string[]
  json<Value = any>(): Value // oxlint-disable-line typescript/no-explicit-any -- a test asserts the shape right after
}

export interface RunOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  /** What to type once it is asked for; given everything that was printed so far, until it answers. */
  respond?(output: string): Promise<string> | undefined
  /** Kills the process. */
  readonly signal?: AbortSignal
  /** Told once, with the process that runs. */
  onStart?(pid: number): void
}

export type CallOptions = Omit<RunOptions, 'signal' | 'onStart'> & {
  /** A person sits at a terminal: both ends of it are one. */
  readonly terminal?: boolean
}

export type InProcessOptions = CallOptions & { readonly cwd: string }

export async function runInProcess(words: readonly string[], options: InProcessOptions): Promise<CliResult> {
  const { cwd, env = {}, input, terminal = false } = options
  const isTTY = terminal
  const stdin = Object.assign(new PassThrough(), { isTTY, setRawMode: () => {} })
  const stdout = Object.assign(new PassThrough(), { isTTY, columns: 100 })
  const stderr = Object.assign(new PassThrough(), { isTTY, columns: 100 })
  const printed = { stdout: '', stderr: '' }
  let hasResponded = false
  function respond(): void {
    const answer = hasResponded ? undefined : options.respond?.(printed.stdout + printed.stderr)
    if (answer === undefined) return
    hasResponded = true
    void answer.then((text) => stdin.write(text))
  }
  for (const [name, stream] of [
    ['stdout', stdout],
    ['stderr', stderr],
  ] as const)
    stream.on('data', (chunk: Buffer) => {
      printed[name] += chunk.toString()
      respond()
    })
  if (options.respond === undefined) stdin.end(input ?? '')
  const code = await main({
    argv: ['node', 'dropway', ...words],
    env: { TERM: 'xterm', ...env },
    stdin,
    stdout,
    stderr,
    cwd: () => cwd,
  })
  // What was written last is read in a turn of its own.
  await new Promise((resolve) => setImmediate(resolve))
  const lines = printed.stdout.trimEnd().split('\n')
  return { code, ...printed, lines, json: () => JSON.parse(printed.stdout) }
}
