/** Settings of the edge, read once. */
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { readDns01, type Dns01Settings } from '../certs/dns/settings.ts'
import { readBlobStore } from '../shared/blobs/location.ts'
import { EnvReader, type Env } from '../shared/settings/env.ts'
import { hasLittleMemory } from '../shared/running/memory.ts'
import { readTraceSettings, type TraceSettings } from '../shared/running/traces.ts'
import { readRedisUrl } from '../shared/redis/url.ts'
import { readSecretKey } from '../shared/secrets/secret-key.ts'
import { readSharedSettings, type SharedSettings } from '../shared/settings/settings.ts'

export interface EdgeConfig extends SharedSettings {
  readonly workers: number
  /** Address that the listeners bind. Undefined: every address of this machine. */
  readonly bindAddress: string | undefined
  readonly redisUrl: string
  /** `file:<dir>` or `s3://bucket?endpoint=…`. */
  readonly blobStore: string
  readonly secretKey: string
  /** Controls behind the service host, tried in turn. */
  readonly controlUrls: readonly [string, ...string[]]
  /** Where this machine's copy of the routing table lies. */
  readonly replicaDir: string
  /** Undefined: no metrics listener. */
  readonly metricsPort: number | undefined
  /** Loopback, or a private address when another machine collects them. */
  readonly metricsHost: string
  /** Share of requests that get a line in the access log. */
  readonly accessLogSample: number
  readonly blobCacheBytes: number
  readonly limits: VisitorLimits
  readonly drainMs: number
  readonly sitesCertFile: string | undefined
  readonly sitesKeyFile: string | undefined
  readonly acmeDirectoryUrl: string | undefined
  readonly acmeEmail: string | undefined
  readonly acmeCaFile: string | undefined
  /** How the service's own names are proven to the CA; undefined: their certificate is a file, or the local CA's. */
  readonly dns01: Dns01Settings | undefined
  /** Where traces of requests go; undefined: there are none. */
  readonly traces: TraceSettings | undefined
}

/** Per visitor network (an IPv4 address, an IPv6 /64) and per worker. */
export interface VisitorLimits {
  readonly connections: number
  readonly handshakesPerSecond: number
  readonly requestsPerSecond: number
}

export function readEdgeConfig(environment: Env): EdgeConfig {
  const env = new EnvReader(environment)
  const shared = readSharedSettings(env)
  return env.finish({
    ...shared,
    workers: env.integer('EDGE_WORKERS', hasLittleMemory() ? 1 : availableParallelism(), 1, 256),
    bindAddress: env.optional('EDGE_BIND'),
    redisUrl: readRedisUrl(env, shared.dataDir),
    blobStore: readBlobStore(env, shared.dataDir),
    secretKey: readSecretKey(env, shared.dataDir),
    controlUrls: controlUrls(env, shared.controlPort),
    replicaDir: env.text('REPLICA_DIR', path.join(shared.dataDir, 'edge', 'replica')),
    // Off unless asked for: two stacks on one machine must not fight for a port.
    metricsPort: env.optional('METRICS_PORT') === undefined ? undefined : env.port('METRICS_PORT', 0),
    metricsHost: env.text('METRICS_HOST', '127.0.0.1'),
    accessLogSample: env.ratio('ACCESS_LOG_SAMPLE', 0),
    blobCacheBytes: env.integer('EDGE_CACHE_MB', 128, 1, 65_536) * 1_000_000,
    limits: {
      connections: env.integer('EDGE_CONNECTIONS_PER_IP', 512, 1, 1_000_000),
      handshakesPerSecond: env.integer('EDGE_HANDSHAKES_PER_IP', 200, 1, 1_000_000),
      requestsPerSecond: env.integer('EDGE_REQUESTS_PER_IP', 2000, 1, 10_000_000),
    },
    drainMs: env.durationMs('EDGE_DRAIN', '30s'),
    ...wildcardFiles(env),
    acmeDirectoryUrl: env.url('ACME_DIRECTORY_URL', ['https']),
    acmeEmail: env.optional('ACME_EMAIL'),
    acmeCaFile: env.file('ACME_CA_FILE'),
    providerName: readProviderName(env),
    traces: readTraceSettings(env),
    dns01: readOwnProofs(env, environment, shared),
  })
}

/** As control reads it. */
function readProviderName(env: EnvReader): string | undefined {
  const issuer = env.optional('OIDC_ISSUER')
  return issuer === undefined ? undefined : env.text('OIDC_NAME', URL.parse(issuer)?.hostname ?? issuer)
}

/** One without the other would silently mean the local CA. */
function wildcardFiles(env: EnvReader): Pick<EdgeConfig, 'sitesCertFile' | 'sitesKeyFile'> {
  const isHalf = (env.optional('SITES_CERT_FILE') === undefined) !== (env.optional('SITES_KEY_FILE') === undefined)
  if (isHalf) env.problem('SITES_CERT_FILE and SITES_KEY_FILE must be set together', undefined)
  return { sitesCertFile: env.file('SITES_CERT_FILE'), sitesKeyFile: env.file('SITES_KEY_FILE') }
}

/** A certificate that no one orders, or that is there twice, would be found out when visitors see a warning. */
function readOwnProofs(
  env: EnvReader,
  environment: Env,
  { dns01Kind, sitesDomain }: Pick<SharedSettings, 'dns01Kind' | 'sitesDomain'>,
): Dns01Settings | undefined {
  if (dns01Kind === undefined) return undefined
  if (env.optional('ACME_DIRECTORY_URL') === undefined)
    env.problem('DNS01 needs ACME_DIRECTORY_URL: the authority that shall be shown the proof', undefined)
  if (env.optional('SITES_CERT_FILE') !== undefined)
    env.problem('DNS01 and SITES_CERT_FILE both bring the wildcard certificate: set one of them', undefined)
  if (!sitesDomain.includes('.'))
    env.problem(`DNS01 needs a SITES_DOMAIN for which an authority may sign, not "${sitesDomain}"`, undefined)
  return readDns01(dns01Kind, env, environment)
}

function controlUrls(env: EnvReader, controlPort: number): [string, ...string[]] {
  const given = env.list('CONTROL_URLS')
  for (const url of given) {
    if (URL.parse(url)?.protocol !== 'http:')
      env.problem(`CONTROL_URLS must list http:// origins, not "${url}"`, undefined)
  }
  const [first = `http://127.0.0.1:${controlPort}`, ...others] = given
  return [first, ...others]
}
