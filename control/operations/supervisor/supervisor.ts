/** The whole service on this machine, until it is told to stop. */
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { ConfigError, OPERATOR_NEEDED, type Env } from '../../../shared/settings/env.ts'
import { giveBackWhenIdle } from '../../../shared/running/idle-memory.ts'
import { keepFilesPrivate } from '../../../shared/secrets/private-files.ts'
import { readSupervisorConfig, type SupervisorConfig } from './config.ts'
import { endOrphans } from './orphans.ts'
import { awaitDataDir, requireFreePorts, requireMemory, SetUpRefused, StartRefused } from './preflight.ts'
import { unlessCancelled } from './processes/processes.ts'
import { createReport, type Report } from './report.ts'
import { startStack, type Stack } from './stack.ts'

const HELP = `Runs Dropway on this machine: Postgres, Redis, the control plane and the edge.

  npm start              start everything; the last line is "ready <address>"
  npm start -- --help    show this

Stop it with Ctrl-C or SIGTERM: it drains and keeps all data. A second Ctrl-C does not wait.

Settings are environment variables. The ones you may want first:
  BASE_URL          address of the service           https://localhost:8443
  SITES_DOMAIN      drops live at <slug>.<domain>     localhost
  DATA_DIR          everything that is kept           ./data
  EDGE_HTTPS_PORT   8443     EDGE_HTTP_PORT  8080     CONTROL_PORT  8787
  DATABASE_URL      a Postgres to use instead of the embedded one
  REDIS_URL         a Redis to use instead of a local one
README.md lists all of them. Logs of each process are in DATA_DIR/logs.
`

/** Runs until it is told to stop; a start that is refused ends with one sentence on standard error. */
export async function runSupervisor(env: Env): Promise<void> {
  try {
    await serve(env)
  } catch (error) {
    process.stderr.write(`${describe(error)}\n`)
    process.exit(error instanceof ConfigError || error instanceof SetUpRefused ? OPERATOR_NEEDED : 1)
  }
}

async function serve(env: Env): Promise<void> {
  const { values } = parseArgs({ options: { help: { type: 'boolean', short: 'h' } } })
  if (values.help) {
    process.stdout.write(HELP)
    return
  }
  keepFilesPrivate()
  // The process that started us may be gone: unread lines are no reason to stop serving.
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  const report = createReport(process.stdout)

  const stop = onStopSignal()
  const config = readSupervisorConfig(env)
  requireMemory(config.minMemoryMb)

  const stack = await startUnlessStopped(config, report, stop.first)
  if (stack) {
    report.ready(config.baseUrl)
    giveBackWhenIdle()
    await aborted(stop.first)
    report.stopping()
    void aborted(stop.second).then(() => stack.hurry())
    await stack.stop()
  }
  report.say('stopped')
  process.exit()
}

/** Undefined: the operator stopped the start, and what it had begun has ended. */
async function startUnlessStopped(
  config: SupervisorConfig,
  report: Report,
  cancel: AbortSignal,
): Promise<Stack | undefined> {
  try {
    process.on('exit', await awaitDataDir(config.dataDir, cancel))
    const orphans = await unlessCancelled(cancel, endOrphans(config))
    if (orphans > 0) report.say(`ended ${orphans} processes that a killed start had left on ${config.dataDir}`)
    await requireFreePorts(config.ports)
    const stack = await startStack(config, report, cancel)
    if (!cancel.aborted) return stack
    await stack.stop('hurried')
  } catch (error) {
    if (!cancel.aborted) throw error
  }
  return undefined
}

/** One Ctrl-C arrives twice: from the terminal, and from npm, which passes its own on. */
const SAME_SIGNAL_MS = 500

interface StopSignals {
  /** Aborted when the operator wants everything to end. */
  readonly first: AbortSignal
  /** Aborted when the operator has lost patience. */
  readonly second: AbortSignal
}

function onStopSignal(): StopSignals {
  let firstAt: number | undefined
  const first = new AbortController()
  const second = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      firstAt ??= Date.now()
      first.abort()
      if (Date.now() - firstAt > SAME_SIGNAL_MS) second.abort()
    })
  }
  return { first: first.signal, second: second.signal }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

function describe(error: unknown): string {
  const { message, stack, code } = error as NodeJS.ErrnoException
  if (error instanceof StartRefused || error instanceof ConfigError || isUsageError(error)) return message
  if (code === 'ENOSPC') return `The disk is full: ${message}. Free some space, or set DATA_DIR to a larger disk.`
  return stack ?? message
}

function isUsageError(error: unknown): boolean {
  return String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS')
}
