/** Settings of the supervisor. It reads those of both planes too, so that every wrong value is reported before anything starts. */
import { readEdgeConfig, type EdgeConfig } from '../../../edge/config.ts'
import { ConfigError, EnvReader, type Env } from '../../../shared/settings/env.ts'
import { readSharedSettings } from '../../../shared/settings/settings.ts'
import { readControlConfig } from '../../ground/config.ts'
import { prepareDataDir } from './data-dir.ts'
import type { WantedPort } from './preflight.ts'

export interface SupervisorConfig {
  readonly baseUrl: string
  readonly dataDir: string
  /** Set: another Postgres or Redis is used, and ours is not started. */
  readonly databaseUrl: string | undefined
  readonly redisUrl: string | undefined
  readonly ports: readonly WantedPort[]
  readonly edgeDrainMs: number
  /** Where the edge notes its workers. */
  readonly replicaDir: string
  readonly searchPath: string
  /** With less memory than this nothing is started. */
  readonly minMemoryMb: number
  /** What the planes inherit. */
  readonly environment: Env
}

/** What everything together takes on a small machine while something is published (OPERATING.md, "Size"). */
const MIN_MEMORY_MB = 1000

export function readSupervisorConfig(environment: Env): SupervisorConfig {
  const env = new EnvReader(environment)
  const { dataDir } = readSharedSettings(env)
  prepareDataDir(dataDir)
  const minMemoryMb = env.integer('MIN_MEMORY_MB', MIN_MEMORY_MB, 0, 10_000_000)
  const { edge, baseUrl } = readPlanes(environment)
  return env.finish({
    baseUrl,
    dataDir,
    databaseUrl: env.optional('DATABASE_URL'),
    redisUrl: env.optional('REDIS_URL'),
    ports: wantedPorts(edge),
    edgeDrainMs: edge.drainNoticeMs + edge.drainMs,
    replicaDir: edge.replicaDir,
    searchPath: env.text('PATH', '/usr/bin:/bin'),
    minMemoryMb,
    environment,
  })
}

function readPlanes(environment: Env): { edge: EdgeConfig; baseUrl: string } {
  const problems = new Set<string>()
  const collect = <Config>(read: (environment: Env) => Config): Config | undefined => {
    try {
      return read(environment)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      for (const problem of error.problems) problems.add(problem)
      return undefined
    }
  }
  const control = collect(readControlConfig)
  const edge = collect(readEdgeConfig)
  if (!control || !edge) throw new ConfigError([...problems])
  return { edge, baseUrl: control.baseUrl }
}

function wantedPorts(edge: EdgeConfig): WantedPort[] {
  return [
    { setting: 'EDGE_HTTPS_PORT', port: edge.httpsPort, address: edge.bindAddress },
    { setting: 'EDGE_HTTP_PORT', port: edge.httpPort, address: edge.bindAddress },
    { setting: 'CONTROL_PORT', port: edge.controlPort, address: '127.0.0.1' },
    { setting: 'METRICS_PORT', port: edge.metricsPort ?? 0, address: '127.0.0.1' },
  ]
}
