/** `npm start`: runs the whole service on this machine until it is told to stop. */
import { parseArgs } from 'node:util'
import { ConfigError } from '../../../shared/settings/env.ts'
import { keepFilesPrivate } from '../../../shared/running/private-files.ts'
import { readSupervisorConfig } from './config.ts'
import { lockDataDir, requireFreePorts, StartRefused } from './preflight.ts'
import { createReport } from './report.ts'
import { startStack } from './stack.ts'

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

async function main(): Promise<void> {
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

  const config = readSupervisorConfig(process.env)
  const unlock = lockDataDir(config.dataDir)
  process.on('exit', unlock)
  await requireFreePorts(config.ports)

  const stop = onStopSignal()
  const stack = await startStack(config, report)
  if (!stop.requested) report.ready(config.baseUrl)
  await stop.first
  report.stopping()
  void stop.second.then(() => stack.hurry())
  await stack.stop()
  report.say('stopped')
  process.exit()
}

/** One Ctrl-C arrives twice: from the terminal, and from npm, which passes its own on. */
const SAME_SIGNAL_MS = 500

interface StopSignals {
  readonly requested: boolean
  readonly first: Promise<void>
  /** The operator has lost patience. */
  readonly second: Promise<void>
}

function onStopSignal(): StopSignals {
  let firstAt: number | undefined
  const first = Promise.withResolvers<void>()
  const second = Promise.withResolvers<void>()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      firstAt ??= Date.now()
      first.resolve()
      if (Date.now() - firstAt > SAME_SIGNAL_MS) second.resolve()
    })
  }
  return {
    get requested() {
      return firstAt !== undefined
    },
    first: first.promise,
    second: second.promise,
  }
}

try {
  await main()
} catch (error) {
  const mendable = error instanceof StartRefused || error instanceof ConfigError || isUsageError(error)
  process.stderr.write(`${mendable ? (error as Error).message : (error as Error).stack}\n`)
  process.exitCode = 1
}

function isUsageError(error: unknown): boolean {
  return String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS')
}
