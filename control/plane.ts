/** The control plane, from its settings to its end. */
import { ConfigError, OPERATOR_NEEDED, type Env } from '../shared/settings/env.ts'
import { systemClock } from '../shared/running/clock.ts'
import { createLog } from '../shared/running/log.ts'
import { keepFilesPrivate } from '../shared/secrets/private-files.ts'
import { giveBackWhenIdle } from '../shared/running/idle-memory.ts'
import { answerPings } from '../shared/running/watchdog/heartbeat.ts'
import { hangOnSignal } from '../shared/running/watchdog/test-hook.ts'
import { startWatchdog } from '../shared/running/watchdog/watchdog.ts'
import { createApp } from './composition/app.ts'
import { readControlConfig } from './ground/config.ts'
import { DatabaseUnusable, databaseProblem, reachDatabase, READ_ONLY } from './ground/database/reach.ts'
import { surviveStrayErrors } from './ground/stray-errors.ts'

/** Runs until it is told to stop; what an operator can mend is one sentence on standard error. */
export async function runControl(env: Env): Promise<void> {
  try {
    await serve(env)
  } catch (error) {
    const isMendable = error instanceof ConfigError || error instanceof DatabaseUnusable
    console.error(isMendable ? error.message : error)
    process.exit(error instanceof ConfigError ? OPERATOR_NEEDED : 1)
  }
}

async function serve(env: Env): Promise<void> {
  keepFilesPrivate()
  const config = readControlConfig(env)
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
    onMigrating: (migrating) => process.send?.({ migrating }),
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
