/** The checks of `admin doctor`. Each asks one thing and says how to mend it. */
import { accessSync, constants, statfsSync } from 'node:fs'
import path from 'node:path'
import { splitLocation } from '../../../../shared/blobs/location.ts'
import { openBlobStore } from '../../../../shared/blobs/open.ts'
import { keys } from '../../../../shared/redis/keys.ts'
import { liveEdges, STILL_READING, type LiveEdge } from '../../../../shared/contracts/live-edges.ts'
import { readLocalServices } from '../../../../shared/settings/local-services.ts'
import {
  differencesOf,
  settingsOf,
  settingsSaid,
  type PlaneSettings,
} from '../../../../shared/contracts/plane-settings.ts'
import { openRedis } from '../../../../shared/redis/redis.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import { databaseProblem, DatabaseUnusable, READ_ONLY, reachDatabase } from '../../../ground/database/reach.ts'
import { openDatabase, type Pool } from '../../../ground/database/sql.ts'
import { memoryOf } from './memory.ts'
import {
  ANSWER_TIMEOUT_MS,
  CONNECT_TIMEOUT_MS,
  messageOf,
  ok,
  problem,
  START_IT,
  warning,
  type Check,
  type CommonConfig,
  type Finding,
} from './finding.ts'
import { backups } from './backup-check.ts'
import { connects } from './reachable.ts'
import { ownCertificateFindings } from './own-certificates.ts'
import { outboxBacklog } from '../../../ground/routing/outbox.ts'
import { databaseFacts, probeWriting } from '../queries.ts'
import { appliedMigrations, migrationNames } from '../../../ground/database/migrate.ts'

const MIN_NODE: readonly number[] = [26, 10, 0]
const LOW_DISK_BYTES = 2_000_000_000
const FULL_DISK_BYTES = 200_000_000
/** Tokens, certificates and Stripe signatures all compare times. */
const MAX_SKEW_MS = 2000
/** More waiting changes than this is not a moment's backlog. */
const MAX_BACKLOG = 1000

const nodeVersion: Check = () => {
  const version = process.versions.node
  const parts = version.split('.').map(Number)
  const isOld = MIN_NODE.reduce((order, part, index) => order || Math.sign((parts[index] ?? 0) - part), 0) < 0
  return [
    isOld
      ? problem('node', version, `Use Node ${MIN_NODE.join('.')} or later: "npm ci" installs it, npm scripts find it.`)
      : ok('node', version),
  ]
}

const disk: Check = ({ dataDir }) => {
  try {
    accessSync(dataDir, constants.W_OK)
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    return [
      problem(
        'disk',
        `${dataDir} ${isMissing ? 'does not exist' : 'cannot be written to'}`,
        `Set DATA_DIR to the directory of this installation${isMissing ? '' : ', or give it to the user that runs the service'}.`,
      ),
    ]
  }
  const { bavail, bsize } = statfsSync(dataDir)
  const free = bavail * bsize
  const detail = `${(free / 1e9).toFixed(1)} GB free in ${dataDir}`
  if (free < FULL_DISK_BYTES)
    return [problem('disk', detail, 'Free some space, or move DATA_DIR: publishing fails when the disk is full.')]
  return [
    free < LOW_DISK_BYTES
      ? warning('disk', detail, 'Free some space, or move DATA_DIR to a larger disk.')
      : ok('disk', detail),
  ]
}

const postgres: Check<ControlConfig> = async (config) => {
  const { databaseUrl: url } = config
  let sql: Pool | undefined
  try {
    const { isPooled, isReadOnly } = await reachDatabase(url)
    sql = openDatabase({ url, maxConnections: 1, isPooled })
    return [
      ...(await askPostgres(sql)),
      ...(isPooled ? [await poolerFinding(sql)] : []),
      isReadOnly ? problem('writing', READ_ONLY, PROMOTE) : await writingFinding(sql, url),
    ]
  } catch (error) {
    const mend = url.startsWith('/')
      ? `${START_IT} Its log is DATA_DIR/logs/postgres.log.`
      : 'Check DATABASE_URL, and that the server accepts us.'
    const said = error instanceof DatabaseUnusable ? error.message : `cannot be reached: ${messageOf(error)}`
    return [problem('postgres', said, mend)]
  } finally {
    await sql?.end({ timeout: 1 })
  }
}

const PROMOTE = 'Until then visitors notice nothing, and publishers hear 503.'

async function writingFinding(sql: Pool, url: string): Promise<Finding> {
  try {
    await probeWriting(sql)
    return ok('writing', 'Postgres takes changes')
  } catch (error) {
    const said = databaseProblem(error, url)?.message ?? messageOf(error)
    return problem('writing', said, 'Look at the log of Postgres.')
  }
}

/** Behind a pooler a statement outside a transaction has the limits of its role alone. */
async function poolerFinding(sql: Pool): Promise<Finding> {
  const { statement_timeout: limit } = await databaseFacts(sql)
  const detail = 'a pooler stands before Postgres: settings are made per transaction, mail is polled'
  if (limit !== '0') return ok('pooler', detail)
  return warning(
    'pooler',
    `${detail}; the role has no statement_timeout`,
    "Set one for statements outside transactions: alter role … set statement_timeout = '30s'.",
  )
}

/** How far apart the clocks are at least: it was asked for the time at some moment between these two. Pure. */
export function leastSkew(theirs: number, asked: number, answered: number): number {
  return Math.max(0, asked - theirs, theirs - answered)
}

async function askPostgres(sql: Pool): Promise<Finding[]> {
  const asked = Date.now()
  const { version, now } = await databaseFacts(sql)
  const skewMs = leastSkew(now.getTime(), asked, Date.now())
  const applied = new Set(await appliedMigrations(sql))
  const pending = (await migrationNames()).filter((name) => !applied.has(name))
  const backlog = pending.length > 0 ? 0 : await outboxBacklog(sql)
  return [
    ok('postgres', version),
    pending.length > 0
      ? problem('migrations', `${pending.length} not applied: ${pending.join(', ')}`, 'Start control: it applies them.')
      : ok('migrations', `${applied.size} applied`),
    skewMs > MAX_SKEW_MS
      ? problem(
          'clock',
          `${Math.round(skewMs)} ms away from that of Postgres`,
          'Set both clocks by NTP (e.g. "apt install systemd-timesyncd").',
        )
      : ok('clock', `agrees with Postgres within ${Math.max(1, Math.round(skewMs))} ms`),
    backlog > MAX_BACKLOG
      ? warning(
          'outbox',
          `${backlog} changes wait for Redis`,
          'Look at control.log: publication fails or Redis is slow.',
        )
      : ok('outbox', `${backlog} changes wait for Redis`),
  ]
}

const redis: Check = async (config) => {
  const client = openRedis(config.redisUrl, {
    lazyConnect: true,
    retryStrategy: () => null,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: ANSWER_TIMEOUT_MS,
  })
  // What the server refuses is told here; whoever waits for the connection only hears that it was closed.
  let refusal: Error | undefined
  client.on('error', (error: Error) => (refusal ??= error))
  try {
    await client.connect()
    const edges = await liveEdges(client)
    return [
      redisFinding(await client.info()),
      edges.length === 0
        ? problem('edges', 'none is alive', 'Start an edge; look at DATA_DIR/logs/edge.log.')
        : ok('edges', `${edges.length} alive`),
      refusedFinding(edges),
      unknownFinding(await client.scard(keys.unknown)),
      settingsFinding(await settingsSaid(client, Date.now()), config),
      ...(await ownCertificateFindings(client, config)),
    ]
  } catch (error) {
    return [unreachableRedis(messageOf(refusal ?? error), config)]
  } finally {
    client.disconnect()
  }
}

/** What Redis says to a wrong user or password, or to none. */
const NOT_ADMITTED = /WRONGPASS|NOAUTH|invalid (?:password|username)|Client sent AUTH/i

function unreachableRedis(said: string, { redisUrl }: CommonConfig): Finding {
  if (NOT_ADMITTED.test(said))
    return problem('redis', `refuses the user or the password of REDIS_URL: ${said}`, 'Correct them in REDIS_URL.')
  const mend = redisUrl.startsWith('/')
    ? `${START_IT} Its log is DATA_DIR/logs/redis.log.`
    : 'Check REDIS_URL, and that the server accepts us.'
  return problem('redis', `cannot be reached: ${said}`, mend)
}

/** A plane with another key cannot open what the others sealed; one with other names answers for other hosts. */
function settingsFinding(said: readonly PlaneSettings[], config: CommonConfig): Finding {
  const own = settingsOf('control', config)
  // Edges alone know the name server: they are compared with each other.
  const dns01Mark = said.find((other) => other.dns01Mark !== undefined)?.dns01Mark
  const differing = said.flatMap((other) =>
    differencesOf({ ...own, dns01Mark }, other).map((difference) => `${other.plane} ${difference}`),
  )
  if (differing.length === 0) return ok('settings', 'all planes share those of this command')
  return problem(
    'settings',
    differing.join('; '),
    'Give every plane, and this command, the same SECRET_KEY, BASE_URL, SITES_DOMAIN and DNS01, and every edge the same DNS01_… settings.',
  )
}

const MAX_NAMED = 5

/** Hosts that an edge serves as they were, because it cannot use what it was told last. */
function refusedFinding(edges: readonly LiveEdge[]): Finding {
  const told = edges.flatMap(({ state }) => [...(state?.refused ?? [])])
  const refused = new Map(told.filter(([, reason]) => reason !== STILL_READING))
  if (refused.size === 0) return ok('records', 'every edge could use all that it was told')
  const named = [...refused].slice(0, MAX_NAMED).map(([name, reason]) => `${name} (${reason})`)
  return problem(
    'records',
    `${refused.size} cannot be used by an edge: ${named.join('; ')}`,
    'Upgrade edges that are older than the controls; otherwise publish these once more.',
  )
}

function unknownFinding(count: number): Finding {
  if (count === 0) return ok('addresses', 'edges serve none that the database does not know')
  return warning(
    'addresses',
    `edges serve ${count} that the database does not know, from before it was restored`,
    '"admin takedown <address>" removes one, "admin republish --remove-unknown all" removes them all.',
  )
}

function redisFinding(info: string): Finding {
  const value = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1]
  const version = value('valkey_version') ?? value('redis_version') ?? 'of unknown version'
  if (value('aof_enabled') === '1') return ok('redis', version)
  return warning(
    'redis',
    `${version}, without an append-only file`,
    'After a restart of Redis control republishes everything; install redis-server (or set REDIS_URL) to keep counts and limits too.',
  )
}

const controlListener: Check<ControlConfig> = async ({ controlPort, controlHost }) => {
  const place = `${controlHost}:${controlPort}`
  try {
    const answer = await fetch(`http://${place}/healthz`, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) })
    const { status, detail } = (await answer.json()) as { status?: string; detail?: string }
    return [
      status === 'degraded'
        ? problem('control', `listens on ${place}, but ${detail}`, 'Look at the other findings, and at control.log.')
        : ok('control', `listens on ${place}`),
    ]
  } catch {
    return [
      problem(
        'control',
        `nothing answers on ${place} (CONTROL_PORT)`,
        `${START_IT} Its log is DATA_DIR/logs/control.log.`,
      ),
    ]
  }
}

/** `s3://key:secret@bucket/prefix?…` → `s3://bucket/prefix` */
function withoutSecrets(url: string): string {
  return splitLocation(url)
    .url.replace(/\?.*$/, '')
    .replace(/\/\/.*@/, '//')
}

const blobs: Check = async ({ blobStore }) => {
  try {
    await openBlobStore({ url: blobStore }).has('0'.repeat(64))
    return [ok('blob store', withoutSecrets(blobStore))]
  } catch (error) {
    return [
      problem(
        'blob store',
        messageOf(error),
        'Check BLOB_STORE: its endpoint, its bucket, and that the store accepts our credentials.',
      ),
    ]
  }
}

/** Mails ask to be answered when a drop was taken down or an account was changed: someone has to read that. */
const answers: Check<ControlConfig> = ({ smtpUrl, mailFrom, contact }) => {
  if (contact !== undefined) return [ok('answers to mails', `go to ${contact}`)]
  if (smtpUrl === undefined || !/no-?reply/i.test(mailFrom)) return []
  return [
    warning(
      'answers to mails',
      `go to ${mailFrom}`,
      'Set CONTACT_EMAIL to an address that is read: appeals come there.',
    ),
  ]
}

const outside: Check<ControlConfig> = async ({
  smtpUrl,
  acmeDirectoryUrl,
  stripeApiBase,
  stripeSecretKey,
  dataDir,
}) => {
  const wanted = [
    smtpUrl === undefined ? undefined : { check: 'mail', setting: 'SMTP_URL', url: smtpUrl },
    acmeDirectoryUrl === undefined
      ? undefined
      : { check: 'certificate authority', setting: 'ACME_DIRECTORY_URL', url: acmeDirectoryUrl },
    stripeSecretKey === undefined
      ? undefined
      : { check: 'payments', setting: 'STRIPE_API_BASE', url: stripeApiBase ?? 'https://api.stripe.com' },
  ].filter((entry) => entry !== undefined)
  const findings = await Promise.all(wanted.map(reachability))
  return smtpUrl === undefined
    ? [ok('mail', `written to ${path.join(dataDir, 'mail')} (SMTP_URL is not set)`), ...findings]
    : findings
}

const DEFAULT_PORTS: ReadonlyMap<string, number> = new Map([
  ['http:', 80],
  ['smtps:', 465],
  ['smtp:', 587],
])

async function reachability({
  check,
  setting,
  url,
}: {
  check: string
  setting: string
  url: string
}): Promise<Finding> {
  const { hostname, port, protocol } = new URL(url)
  const target = Number(port) || (DEFAULT_PORTS.get(protocol) ?? 443)
  return (await connects(target, hostname))
    ? ok(check, `${hostname}:${target} can be reached`)
    : problem(check, `${hostname}:${target} cannot be reached`, `Check ${setting} and the firewall.`)
}

const memory: Check = ({ dataDir }) => {
  const processes = readLocalServices(dataDir)?.processes
  if (!processes) return []
  const parts = memoryOf(processes)
  const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`
  const total = parts.reduce((sum, { bytes }) => sum + bytes, 0)
  const each = parts.map(
    ({ name, bytes, processes: count }) => `${name} ${megabytes(bytes)}${count > 1 ? ` in ${count}` : ''}`,
  )
  return [ok('memory', `${megabytes(total)}: ${each.join(', ')}`)]
}

/** For a machine of any role. */
export const commonChecks: readonly Check[] = [nodeVersion, disk, redis, blobs, memory]

/** For one that runs a control. */
export const controlChecks: readonly Check<ControlConfig>[] = [postgres, controlListener, outside, answers, backups]
