/**
 * Where Redis is, as REDIS_URL says it:
 *
 *   /path/to/redis.sock                              a unix socket
 *   redis://[user:password@]host:6379[/db]           one server; rediss:// with TLS
 *   redis+sentinel://[user:password@]host:26379,host:26379/<master name>[/db]     found through Sentinel
 *   redis+cluster://[user:password@]host:6379,host:6379                           a cluster
 *
 * `rediss+sentinel` and `rediss+cluster` speak TLS to every server. All our keys share one hash tag, so in a cluster
 * they lie on one node and transactions work as on a single server.
 */
import type { EnvReader } from '../settings/env.ts'
import { localRedisUrl } from '../settings/local-services.ts'

export type RedisLocation =
  | { readonly kind: 'single'; readonly url: string }
  | ({ readonly kind: 'sentinel'; readonly master: string; readonly db: number } & Servers)
  | ({ readonly kind: 'cluster' } & Servers)

interface Servers {
  readonly servers: readonly { readonly host: string; readonly port: number }[]
  readonly tls: boolean
  readonly username: string | undefined
  readonly password: string | undefined
}

const DEFAULT_PORTS = { sentinel: 26_379, cluster: 6379 } as const

/** Throws with a message that does not repeat a password. */
export function parseRedisUrl(text: string): RedisLocation {
  const match = /^(rediss?)\+(sentinel|cluster):\/\/(?:([^@/]*)@)?([^/]+)(?:\/(.*))?$/.exec(text)
  if (!match) {
    if (text.startsWith('/') || /^rediss?:\/\/./.test(text)) return { kind: 'single', url: text }
    throw new Error('REDIS_URL must be a path, redis://…, rediss://…, redis+sentinel://… or redis+cluster://…')
  }
  const [, scheme, kindName, credentials = '', hosts = '', rest = ''] = match
  const kind = kindName === 'cluster' ? 'cluster' : 'sentinel'
  const [username, password] = credentials.split(':').map(decodeURIComponent)
  const servers: Servers = {
    servers: hosts.split(',').map((host) => parseServer(host, DEFAULT_PORTS[kind])),
    tls: scheme === 'rediss',
    username: username || undefined,
    password: password || undefined,
  }
  if (kind === 'cluster') return { kind, ...servers }
  const [master = '', db = '0'] = rest.split('/')
  if (master === '') throw new Error('REDIS_URL must name the master behind the sentinels: redis+sentinel://host/name')
  return { kind, master, db: Number(db) || 0, ...servers }
}

function parseServer(text: string, defaultPort: number): { host: string; port: number } {
  const [, host, port = defaultPort] = /^(\[[0-9a-f:]+\]|[^:]+)(?::(\d{1,5}))?$/i.exec(text.trim()) ?? []
  if (host === undefined) throw new Error('REDIS_URL must list its servers as host:port,host:port')
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}

/** REDIS_URL, else where the supervisor on this machine put its own. */
export function readRedisUrl(env: EnvReader, dataDir: string): string {
  const given = env.optional('REDIS_URL')
  if (given === undefined) return localRedisUrl(dataDir)
  try {
    parseRedisUrl(given)
  } catch (error) {
    env.problem((error as Error).message, undefined)
  }
  return given
}
