/** Settings of dns-01. Without `DNS01` nothing of it is used. */
import { isIP } from 'node:net'
import { z } from 'zod'
import { isHostname } from '../../shared/http/hosts.ts'
import type { Env, EnvReader } from '../../shared/settings/env.ts'
import type { Dns01Kind } from '../../shared/settings/settings.ts'

/** RFC 8945 §6 without what is broken or cut short. */
export const tsigAlgorithms = ['hmac-sha256', 'hmac-sha384', 'hmac-sha512', 'hmac-sha224', 'hmac-sha1'] as const

export interface TsigKey {
  readonly name: string
  readonly algorithm: (typeof tsigAlgorithms)[number]
  readonly secret: Buffer
}

/** Where updates go: a name or an address, and a port. */
export interface DnsServer {
  readonly host: string
  readonly port: number
}

interface Common {
  /** Address of the resolver that looks names up; the machine's own where it is not set. */
  readonly resolver: string | undefined
  /** For how long name servers are asked whether they show a record. */
  readonly waitMs: number
}

export interface Rfc2136Settings extends Common {
  readonly kind: 'rfc2136'
  readonly server: DnsServer
  readonly key: TsigKey
  /** The zone that is updated; found by asking the server where it is not set. */
  readonly zone: string | undefined
}

export interface AcmeDnsSettings extends Common {
  readonly kind: 'acme-dns'
  readonly url: string
  readonly account: AcmeDnsAccount
}

export interface CommandSettings extends Common {
  readonly kind: 'command'
  readonly command: string
  /** The only variables that the command gets to see. */
  readonly environment: Readonly<Record<string, string>>
}

export type Dns01Settings = Rfc2136Settings | AcmeDnsSettings | CommandSettings

/** What `POST /register` of an acme-dns server answers. */
const accountSchema = z.object({
  fulldomain: z.string().refine(isHostname),
  subdomain: z.string().min(1),
  username: z.string().min(1),
  password: z.string().min(1),
})
export type AcmeDnsAccount = z.infer<typeof accountSchema>

/** A hook gets these, and what begins with DNS01_HOOK_: no secret of the service, whoever wrote the hook. */
const HARMLESS = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR']
const HOOK_PREFIX = 'DNS01_HOOK_'

const DNS_PORT = 53

export function readDns01(kind: Dns01Kind, env: EnvReader, environment: Env): Dns01Settings {
  const common = { resolver: env.ipAndPort('DNS_RESOLVER'), waitMs: env.durationMs('DNS01_WAIT', '2m') }
  switch (kind) {
    case 'rfc2136':
      return { kind, ...common, ...readServer(env) }
    case 'acme-dns':
      return {
        kind,
        ...common,
        url:
          env.url('DNS01_ACME_DNS_URL', ['https', 'http'])?.replace(/\/$/, '') ?? required(env, 'DNS01_ACME_DNS_URL'),
        account: readAccount(env),
      }
    case 'command':
      return {
        kind,
        ...common,
        command: env.optional('DNS01_COMMAND') ?? required(env, 'DNS01_COMMAND'),
        environment: hookEnvironment(environment),
      }
    default:
      return kind satisfies never
  }
}

/** Where proofs are shown and by whom, in one text: the same on all edges of a service. Commands are each machine's own. */
export function accountText(settings: Dns01Settings): string {
  switch (settings.kind) {
    case 'rfc2136': {
      const { server, zone, key } = settings
      return JSON.stringify([server.host, server.port, zone, key.name, key.algorithm, key.secret.toString('base64')])
    }
    case 'acme-dns':
      return JSON.stringify([settings.url, settings.account])
    case 'command':
      return settings.kind
    default:
      return settings satisfies never
  }
}

function required(env: EnvReader, name: string): string {
  return env.problem(`${name} must be set where DNS01=${env.text('DNS01', '')}`, '')
}

function readServer(env: EnvReader): Pick<Rfc2136Settings, 'server' | 'key' | 'zone'> {
  const raw = env.optional('DNS01_SERVER') ?? required(env, 'DNS01_SERVER')
  const zone = env.optional('DNS01_ZONE')?.toLowerCase().replace(/\.$/, '')
  if (zone !== undefined && !isHostname(zone)) env.problem(`DNS01_ZONE must be a domain name, not "${zone}"`, undefined)
  const server = parseServer(raw)
  if (raw !== '' && server === undefined)
    env.problem(`DNS01_SERVER must be a name server such as ns1.example.com or 192.0.2.1:53, not "${raw}"`, undefined)
  return { server: server ?? { host: '', port: DNS_PORT }, key: readKey(env), zone }
}

/** `ns1.example.com`, `192.0.2.1:5353`, `[2001:db8::1]:53`, `2001:db8::1`; undefined for anything else. */
export function parseServer(text: string): DnsServer | undefined {
  if (isIP(text) !== 0) return { host: text, port: DNS_PORT }
  const [, inBrackets, plain = '', digits] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const port = digits === undefined ? DNS_PORT : Number(digits)
  const host = (inBrackets ?? plain).toLowerCase()
  const isUsable = inBrackets === undefined ? isIP(host) === 4 || isHostname(host) : isIP(host) === 6
  return isUsable && port > 0 && port <= 65_535 ? { host, port } : undefined
}

function readKey(env: EnvReader): TsigKey {
  const name = (env.optional('DNS01_TSIG_KEY') ?? required(env, 'DNS01_TSIG_KEY')).toLowerCase().replace(/\.$/, '')
  const text = env.optional('DNS01_TSIG_SECRET') ?? required(env, 'DNS01_TSIG_SECRET')
  const secret = Buffer.from(text, 'base64')
  // The message does not repeat it: it is a secret.
  if (text !== '' && (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || secret.length < 16))
    env.problem('DNS01_TSIG_SECRET must be base64 of 16 bytes or more, as tsig-keygen writes it', undefined)
  return { name, algorithm: env.oneOf('DNS01_TSIG_ALGORITHM', tsigAlgorithms, 'hmac-sha256'), secret }
}

function readAccount(env: EnvReader): AcmeDnsAccount {
  const none: AcmeDnsAccount = { fulldomain: '', subdomain: '', username: '', password: '' }
  const text = env.optional('DNS01_ACME_DNS_ACCOUNT') ?? required(env, 'DNS01_ACME_DNS_ACCOUNT')
  if (text === '') return none
  try {
    return accountSchema.parse(JSON.parse(text))
  } catch {
    return env.problem(
      'DNS01_ACME_DNS_ACCOUNT must be the JSON that POST /register of acme-dns answers (fulldomain, subdomain, username, password)',
      none,
    )
  }
}

function hookEnvironment(environment: Env): Record<string, string> {
  const entries = Object.entries(environment).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && (HARMLESS.includes(entry[0]) || entry[0].startsWith(HOOK_PREFIX)),
  )
  return Object.fromEntries(entries)
}
