/**
 * The whole service on one machine, in order:
 *
 *   start  everything at once: the planes load their modules until they are told where postgres and redis are
 *   stop   edge (drains its visitors) → control → redis → postgres
 *
 * Whatever ends in between is started again.
 */
import { compileCacheDir } from '../compile-cache.ts'
import { allocatorSettings } from '../../../shared/running/memory.ts'
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

const MAIN = {
  control: new URL('../../main.ts', import.meta.url),
  edge: new URL('../../../edge/main.ts', import.meta.url),
}

/** Aborting `cancel` ends a start at once, with all that it began; later nothing is started again. */
export async function startStack(config: SupervisorConfig, report: Report, cancel: AbortSignal): Promise<Stack> {
  const units = new Map<UnitName, Unit>()
  const failed = new AbortController()
  /** Aborted: the operator gave the start up, or a part of it failed. */
  const givenUp = AbortSignal.any([cancel, failed.signal])
  let beingStopped: UnitName | undefined
  let isInHurry = false
  let postgres: Postgres | undefined
  let redis: Redis | undefined

  const note = () => {
    const processes: Record<string, number> = { supervisor: process.pid }
    for (const name of STOP_ORDER.toReversed()) {
      const pid = units.get(name)?.pid
      if (pid !== undefined) processes[name] = pid
    }
    noteLocalServices(config.dataDir, { databaseUrl: postgres?.url, redisUrl: redis?.url, processes })
  }

  async function add(
    name: UnitName,
    start: (cancel: AbortSignal) => Promise<Running>,
    detail?: () => string | undefined,
  ): Promise<void> {
    if (givenUp.aborted) return
    const startedAt = Date.now()
    report.starting(name)
    units.set(name, await keepRunning({ name, start, report, onChange: note, cancel: givenUp }))
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

  const plane = (name: 'control' | 'edge', graceMs: number, services: Promise<unknown>) => {
    const log = openLogFile(config.dataDir, name)
    const onLog = (line: string) => {
      log(line)
      report.planeLine(name, line)
    }
    const { dataDir } = config
    const environment = environmentOf(name, config)
    return (cancelled: AbortSignal) =>
      startPlane({
        name,
        dataDir,
        main: MAIN[name],
        graceMs,
        onLog,
        onWord: report.say,
        environment,
        addresses: services.then(addressesNow),
        cancel: cancelled,
      })
  }

  const addressesNow = () => ({
    ...(postgres ? { DATABASE_URL: postgres.url } : {}),
    ...(redis ? { REDIS_URL: redis.url } : {}),
  })

  async function addPostgres(): Promise<void> {
    const { dataDir } = config
    const onLog = openLogFile(dataDir, 'postgres')
    await add('postgres', async (cancelled) => (postgres = await startPostgres({ dataDir, onLog, cancel: cancelled })))
  }

  async function addRedis(): Promise<void> {
    const { dataDir, searchPath } = config
    const onLog = openLogFile(dataDir, 'redis')
    const start = async (cancelled: AbortSignal) =>
      (redis = await startRedis({ dataDir, searchPath, onLog, standInPort: portOf(redis?.url), cancel: cancelled }))
    await add('redis', start, () => redis?.engine)
  }

  const redisStarts = config.redisUrl === undefined ? addRedis() : Promise.resolve()
  const postgresStarts = config.databaseUrl === undefined ? addPostgres() : Promise.resolve()
  const services = Promise.all([redisStarts, postgresStarts])
  const starts = [
    services,
    add('control', plane('control', CONTROL_GRACE_MS, services)),
    add('edge', plane('edge', config.edgeDrainMs + EDGE_EXTRA_GRACE_MS, redisStarts)),
  ]
  try {
    await Promise.all(starts)
  } catch (error) {
    // Nothing of what was begun beside it is left alone.
    failed.abort()
    await Promise.allSettled([redisStarts, postgresStarts, ...starts])
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

/** What the supervisor tells a plane, unless the operator says otherwise. */
function environmentOf(
  name: keyof typeof MAIN,
  { dataDir, environment }: Pick<SupervisorConfig, 'dataDir' | 'environment'>,
): SupervisorConfig['environment'] {
  return { NODE_COMPILE_CACHE: compileCacheDir(dataDir), ...allocatorSettings(name), ...environment }
}
