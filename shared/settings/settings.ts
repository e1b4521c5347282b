/** Settings that both planes, the supervisor and the admin command read alike. */
import path from 'node:path'
import type { EnvReader } from './env.ts'
import { isHostname } from '../http/hosts.ts'
import type { Look } from '../pages/look.ts'
import { isRefusedByBrowsers } from './refused-ports.ts'
import { readPatience } from './patience.ts'
import { readLook } from './look.ts'
import { isNetwork } from '../http/ip.ts'

const DNS01_KINDS = ['rfc2136', 'acme-dns', 'command'] as const
export type Dns01Kind = (typeof DNS01_KINDS)[number]

export interface SharedSettings {
  /** Origin of the service itself, e.g. https://localhost:8443. */
  readonly baseUrl: string
  /** Host of `baseUrl` without the port. */
  readonly serviceHost: string
  /** Drops live at `<slug>.<sitesDomain>`. */
  readonly sitesDomain: string
  /** Public port of drop addresses: that of `baseUrl`; undefined when it is 443. */
  readonly publicPort: number | undefined
  readonly dataDir: string
  readonly httpsPort: number
  readonly httpPort: number
  readonly controlPort: number
  readonly logLevel: string
  readonly trustedProxies: readonly string[]
  /** How long a plane that was told to stop says so at /readyz, while it still takes everyone. */
  readonly drainNoticeMs: number
  /** Its name, logo, colour and links, the same on every page and in every mail. */
  readonly look: Look
  /** How names are proven by DNS; undefined where they are not. Edges prove, control offers wildcards where they do. */
  readonly dns01Kind: Dns01Kind | undefined
  /** `hang`: SIGUSR2 stops the event loop for ever. For tests of the watchdog alone. */
  readonly testHooks: 'off' | 'hang'
}

export function readSharedSettings(env: EnvReader): SharedSettings {
  const httpsPort = env.port('EDGE_HTTPS_PORT', 8443)
  const baseUrl = env.origin('BASE_URL', httpsPort === 443 ? 'https://localhost' : `https://localhost:${httpsPort}`)
  const url = new URL(baseUrl)
  const sitesDomain = env.text('SITES_DOMAIN', 'localhost').toLowerCase()
  if (!isHostname(sitesDomain)) env.problem(`SITES_DOMAIN must be a domain name, not "${sitesDomain}"`, undefined)
  if (isRefusedByBrowsers(Number(url.port)))
    env.problem(
      `BASE_URL has the port ${url.port}, which browsers open for no one; set EDGE_HTTPS_PORT, or BASE_URL, to another`,
      undefined,
    )
  // Taken where the parts wait for one another; here its problem is told.
  readPatience(env)
  return {
    baseUrl,
    serviceHost: url.hostname,
    sitesDomain,
    publicPort: url.port === '' ? undefined : Number(url.port),
    dataDir: path.resolve(env.text('DATA_DIR', './data')),
    httpsPort,
    httpPort: env.port('EDGE_HTTP_PORT', 8080),
    controlPort: env.port('CONTROL_PORT', 8787),
    logLevel: env.oneOf('LOG_LEVEL', ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'], 'info'),
    trustedProxies: readTrustedProxies(env),
    drainNoticeMs: env.durationMs('DRAIN_NOTICE', '1s'),
    look: readLook(env),
    dns01Kind: readDns01Kind(env),
    testHooks: env.oneOf('TEST_HOOKS', ['off', 'hang'], 'off'),
  }
}

function readDns01Kind(env: EnvReader): Dns01Kind | undefined {
  return env.optional('DNS01') === undefined ? undefined : env.oneOf('DNS01', DNS01_KINDS, 'rfc2136')
}

function readTrustedProxies(env: EnvReader): string[] {
  const entries = env.list('TRUSTED_PROXIES')
  for (const entry of entries) {
    if (!isNetwork(entry))
      env.problem(`TRUSTED_PROXIES must list addresses and networks such as 10.0.0.0/8, not "${entry}"`, undefined)
  }
  return entries
}

/** The public address of a host that we serve: `https://<host>[:port]`. */
export function addressOf(settings: Pick<SharedSettings, 'publicPort'>, host: string): string {
  return settings.publicPort === undefined ? `https://${host}` : `https://${host}:${settings.publicPort}`
}
