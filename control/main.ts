/** The control plane as a process: `npm run control`, or a child of the supervisor. */
import { ConfigError } from '../shared/settings/env.ts'
import { systemClock } from '../shared/running/clock.ts'
import { createLog } from '../shared/running/log.ts'
import { keepFilesPrivate } from '../shared/running/private-files.ts'
import { giveBackWhenIdle } from '../shared/running/idle-memory.ts'
import { answerPings } from '../shared/running/watchdog/heartbeat.ts'
import { hangOnSignal } from '../shared/running/watchdog/test-hook.ts'
import { startWatchdog } from '../shared/running/watchdog/watchdog.ts'
import { createApp } from './composition/app.ts'
import { readControlConfig } from './ground/config.ts'
import { DatabaseUnusable, databaseProblem, reachDatabase, READ_ONLY } from './ground/database/reach.ts'
import { surviveStrayErrors } from './ground/stray-errors.ts'

async function main(): Promise<void> {
  keepFilesPrivate()
  widenThreadPool()
  const config = readControlConfig(process.env)
  const log = createLog('control', config.logLevel)
  const { isPooled, isReadOnly } = await reachDatabase(config.databaseUrl)
  if (isReadOnly) throw new DatabaseUnusable(READ_ONLY)
  if (isPooled) log.info('a pooler stands before Postgres: settings are made per transaction, mail is polled')
  const watchdog = startWatchdog({ name: 'control' })
  const app = createApp({
    config,
    clock: systemClock,
    log,
    onRequest: watchdog.note,
    isDatabasePooled: isPooled,
  })
  const port = await app.start().catch((error: unknown) => {
    throw databaseProblem(error, config.databaseUrl) ?? error
  })
  surviveStrayErrors(log)
  answerPings()
  giveBackWhenIdle()
  hangOnSignal(config.testHooks === 'hang')
  log.info({ port }, 'ready')
  const ownerLink = await app.services.newcomers.ownerLink()
  if (ownerLink !== undefined) tellOperator(`Nobody has an account here yet. The owner signs up at ${ownerLink}`)
  process.send?.({ ready: true, port })

  let stopping = false
  const stop = (): void => {
    if (stopping) return
    stopping = true
    app.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'did not stop cleanly')
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  // Without its supervisor it would hold the port that the next one needs.
  process.on('disconnect', stop)
}

/** To the terminal and to nothing else: whoever reads it can act on it. */
function tellOperator(word: string): void {
  if (process.send) process.send({ word })
  else process.stdout.write(`${word}\n`)
}

/**
 * Node gives all threads of a process four more for files, and each blob waits for the disk there. The disk makes as many
 * durable at once as wait. Read when the first of these threads starts, which no import does.
 */
function widenThreadPool(): void {
  process.env['UV_THREADPOOL_SIZE'] ??= '16'
}

try {
  await main()
} catch (error) {
  const isMendable = error instanceof ConfigError || error instanceof DatabaseUnusable
  console.error(isMendable ? error.message : error)
  process.exit(1)
}
