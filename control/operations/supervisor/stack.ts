/**
 * The whole service on one machine, in order:
 *
 *   start  postgres → redis → control and edge side by side
 *   stop   edge (drains its visitors) → control → redis → postgres
 *
 * Whatever ends in between is started again.
 */
import { compileCacheDir } from '../compile-cache.ts'
import { forgetLocalServices, noteLocalServices } from '../../../shared/settings/local-services.ts'
import type { SupervisorConfig } from './config.ts'
import { openLogFile } from './processes/log-file.ts'
import { startPlane } from './processes/plane.ts'
import { endFamily } from './processes/processes.ts'
import { startPostgres, type Postgres } from './postgres/postgres.ts'
import { startRedis, type Redis } from './redis/redis.ts'
import type { Report } from './report.ts'
import { keepRunning, type Running, type StopPace, type Unit } from './processes/unit.ts'

export interface Stack {
  stop(pace?: StopPace): Promise<void>
  /** Ends the draining of a stop that is under way. */
  hurry(): void
}

/** Control finishes the uploads that are under way. */
const CONTROL_GRACE_MS = 15_000
/** The edge's own drain time, plus what it needs to notice that it is over. */
const EDGE_EXTRA_GRACE_MS = 5000

type UnitName = 'postgres' | 'redis' | 'control' | 'edge'
const STOP_ORDER: readonly UnitName[] = ['edge', 'control', 'redis', 'postgres']

/** Aborting `cancel` ends a start at once, with all that it began; later nothing is started again. */
export async function startStack(config: SupervisorConfig, report: Report, cancel: AbortSignal): Promise<Stack> {
  const units = new Map<UnitName, Unit>()
  let beingStopped: UnitName | undefined
  let isInHurry = false
  let postgres: Postgres | undefined
  let redis: Redis | undefined

  const note = () => {
    const processes: Record<string, number> = { supervisor: process.pid }
    for (const [name, { pid }] of units) if (pid !== undefined) processes[name] = pid
    noteLocalServices(config.dataDir, { databaseUrl: postgres?.url, redisUrl: redis?.url, processes })
  }

  async function add(
    name: UnitName,
    start: (cancel: AbortSignal) => Promise<Running>,
    detail?: () => string | undefined,
  ): Promise<void> {
    if (cancel.aborted) return
    const startedAt = Date.now()
    report.starting(name)
    units.set(name, await keepRunning({ name, start, report, onChange: note, cancel }))
    note()
    report.started(name, Date.now() - startedAt, detail?.())
  }

  async function stop(pace: StopPace = 'orderly'): Promise<void> {
    for (const name of STOP_ORDER) {
      const startedAt = Date.now()
      beingStopped = name
      const stopped = units.get(name)?.stop(pace)
      if (isInHurry) endDraining()
      if (!stopped) continue
      await stopped
      report.stopped(name, Date.now() - startedAt)
    }
    forgetLocalServices(config.dataDir)
  }

  /** Only the planes drain; the services end quickly by themselves and must end orderly. */
  function endDraining(): void {
    if (beingStopped !== 'edge' && beingStopped !== 'control') return
    const pid = units.get(beingStopped)?.pid
    if (pid !== undefined) endFamily(pid)
  }

  const plane = (name: 'control' | 'edge', graceMs: number) => {
    const log = openLogFile(config.dataDir, name)
    const onLog = (line: string) => {
      log(line)
      report.planeLine(name, line)
    }
    const main =
      name === 'control' ? new URL('../../main.ts', import.meta.url) : new URL('../../../edge/main.ts', import.meta.url)
    const { dataDir } = config
    return (cancelled: AbortSignal) =>
      startPlane({
        name,
        dataDir,
        main,
        graceMs,
        onLog,
        onWord: report.say,
        environment: planeEnvironment(),
        cancel: cancelled,
      })
  }

  const planeEnvironment = () => ({
    NODE_COMPILE_CACHE: compileCacheDir(config.dataDir),
    ...config.environment,
    ...(postgres ? { DATABASE_URL: postgres.url } : {}),
    ...(redis ? { REDIS_URL: redis.url } : {}),
  })

  try {
    if (config.databaseUrl === undefined) {
      const onLog = openLogFile(config.dataDir, 'postgres')
      const { dataDir } = config
      const start = async (cancelled: AbortSignal) =>
        (postgres = await startPostgres({ dataDir, onLog, cancel: cancelled }))
      await add('postgres', start)
    }
    if (config.redisUrl === undefined) {
      const { dataDir, searchPath } = config
      const onLog = openLogFile(dataDir, 'redis')
      const start = async (cancelled: AbortSignal) =>
        (redis = await startRedis({ dataDir, searchPath, onLog, standInPort: portOf(redis?.url), cancel: cancelled }))
      await add('redis', start, () => redis?.engine)
    }
    // Neither needs the other to get ready; together they are ready sooner.
    const planes = await Promise.allSettled([
      add('control', plane('control', CONTROL_GRACE_MS)),
      add('edge', plane('edge', config.edgeDrainMs + EDGE_EXTRA_GRACE_MS)),
    ])
    for (const outcome of planes) if (outcome.status === 'rejected') throw outcome.reason
  } catch (error) {
    await stop(cancel.aborted ? 'hurried' : 'orderly')
    throw error
  }
  return {
    stop,
    hurry() {
      isInHurry = true
      endDraining()
    },
  }
}

/** The stand-in must come back at the address that the planes know. */
function portOf(redisUrl: string | undefined): number | undefined {
  return redisUrl?.startsWith('redis://') ? Number(new URL(redisUrl).port) : undefined
}
