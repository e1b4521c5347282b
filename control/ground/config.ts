/** Settings of the control plane, read once. */
import { readFileSync } from 'node:fs'
import { parseS3Url, readBlobStore } from '../../shared/blobs/location.ts'
import { MINUTE_MS } from '../../shared/running/clock.ts'
import { EnvReader, type Env } from '../../shared/settings/env.ts'
import { isLoopbackName } from '../../shared/http/ip.ts'
import { localDatabaseUrl } from '../../shared/settings/local-services.ts'
import { readRedisUrl } from '../../shared/redis/url.ts'
import { readTraceSettings, type TraceSettings } from '../../shared/running/traces.ts'
import { readSecretKey } from '../../shared/secrets/secret-key.ts'
import { parsePlanFile } from './terms/plan-file.ts'
import { termsOf, type Terms } from './terms/plans.ts'
import { readSignIn, type SignInSettings } from './terms/provider.ts'
import { readSignUp, type SignUpPolicy } from './terms/sign-up.ts'
import { senderOf } from '../../shared/settings/look.ts'
import { readSharedSettings, type SharedSettings } from '../../shared/settings/settings.ts'

/** The operator's own texts (terms, privacy, imprint, help) in DATA_DIR, each a file of Markdown. */
export const PAGES_FOLDER = 'pages'

export interface ControlConfig extends SharedSettings, SignInSettings {
  /** Loopback, or a private address when the edges are other machines. */
  readonly controlHost: string
  readonly databaseUrl: string
  readonly redisUrl: string
  /** `file:<dir>` or `s3://bucket?endpoint=…`. */
  readonly blobStore: string
  readonly secretKey: string
  /** Unset: mails are written into `<dataDir>/mail`. */
  readonly smtpUrl: string | undefined
  /** May `/dev/mail` show those files? They hold links that open accounts: only where the service is this machine's own. */
  readonly showsMails: boolean
  readonly mailFrom: string
  /** Where people reach the operator: a mail address, shown on the pages about the service. Answers to mails go there. */
  readonly contact: string | undefined
  /** Who may have an account without the operator making it. */
  readonly signUp: SignUpPolicy
  /** May strangers publish? Off, and with any of their limits at 0. */
  readonly allowsAnonymous: boolean
  /** What plans allow, and whether any are sold. */
  readonly terms: Terms
  readonly stripeSecretKey: string | undefined
  readonly stripeWebhookSecrets: readonly string[]
  readonly stripeApiBase: string | undefined
  readonly dnsResolver: string | undefined
  /** Where backups go by themselves; undefined: nowhere. */
  readonly backupTo: string | undefined
  readonly backupEveryMs: number
  /** How long a backup is kept; the newest ones stay. */
  readonly backupKeepMs: number
  /** Where traces of requests go; undefined: there are none. */
  readonly traces: TraceSettings | undefined
  /** Unset: custom domains get certificates of the local CA, and nothing asks whether a public CA could see them. */
  readonly acmeDirectoryUrl: string | undefined
  /** What a CAA record must name so that our CA may issue. */
  readonly caaIdentities: readonly string[]
  /** Public port of the edge's plain listener, where a CA looks for http-01 answers. */
  readonly challengePort: number
  /** May a custom domain's address be looked at although it is not a public one? Only where it harms no one. */
  readonly allowPrivateAddresses: boolean
  /** The same for this machine's own addresses: on a laptop, where the service itself is at one. */
  readonly allowLoopback: boolean
  /** What an apex domain's A and AAAA records should say; unset: what the host of BASE_URL resolves to. */
  readonly publicAddresses: readonly string[]
  /** First pause between two checks of a domain that is not ready; later ones are multiples. */
  readonly domainCheckMs: number
  readonly anonymousLifetimeMs: number
  readonly freeIdleLifetimeMs: number
  readonly recoveryWindowMs: number
  /** How long before a free drop expires its owner hears of it. */
  readonly expiryWarningsMs: readonly number[]
  /** How long before it is removed for good. */
  readonly removalWarningMs: number
  /** An account that was never verified is closed so long after its sign-up, and its owner hears of it so long before. */
  readonly unverifiedLifetimeMs: number
  readonly unverifiedWarningsMs: readonly number[]
  /** How long a renamed slug redirects, and a deleted one stays blocked, before another owner may take it. */
  readonly slugCooldownMs: number
  /** After an account is closed: how long logs and mail records still name its person. */
  readonly personalDataKeptMs: number
  /** How long a file of a former version stays reachable after it was replaced; 0: not at all. */
  readonly keepOldFilesMs: number
  /** How long the audit log and the list of publishes reach back; undefined: for ever. */
  readonly recordsKeptMs: number | undefined
  readonly jobIntervalMs: number
  /** How long a code that lets a viewer in works, and how long a browser is let in by it. */
  readonly viewerCodeLifetimeMs: number
  readonly viewerAdmissionMs: number
  readonly geoHeader: string | undefined
  /** Anonymous drops per hour from one network, and from one browser. */
  readonly anonymousPerHour: number
  /** May OAuth clients describe themselves in a document that we fetch? Off where the service cannot reach the internet. */
  readonly readsClientDocuments: boolean
  /** Is there an MCP endpoint that publishes without an account, and how many pages an hour does it take from all together? */
  readonly mcpAnonymous: boolean
  readonly mcpAnonymousPerHour: number
  /** What live anonymous drops may store, all together and from one network. */
  readonly anonymousStorageBytes: number
  readonly anonymousNetworkStorageBytes: number
  /** Issuers of workflow tokens that are trusted besides the built-in forges, exactly as written. */
  readonly trustedIssuers: readonly string[]
  /** Versions per hour of one organisation. */
  readonly uploadsPerHour: number
}

/** `postgres://…`, or the directory of a unix socket. */
function readDatabaseUrl(env: EnvReader): string | undefined {
  const given = env.optional('DATABASE_URL')
  return given?.startsWith('/') ? given : env.url('DATABASE_URL', ['postgres', 'postgresql'])
}

/** A public service without a mail server would keep everyone's links in a folder and never say so. */
function readMail(env: EnvReader, { serviceHost }: SharedSettings): Pick<ControlConfig, 'smtpUrl' | 'showsMails'> {
  const smtpUrl = env.url('SMTP_URL', ['smtp', 'smtps'])
  const isLocal = isLoopbackName(serviceHost)
  const toFiles = env.oneOf('MAIL_TO_FILES', ['0', '1'], '0') === '1'
  if (smtpUrl === undefined && env.optional('SMTP_URL') === undefined && !isLocal && !toFiles)
    env.problem(
      `SMTP_URL must be set, because BASE_URL (${serviceHost}) is not this machine alone: smtp://user:password@host:port, or MAIL_TO_FILES=1 to only write mails into DATA_DIR/mail`,
      undefined,
    )
  return { smtpUrl, showsMails: smtpUrl === undefined && isLocal }
}

type AnonymousSettings = Pick<
  ControlConfig,
  'allowsAnonymous' | 'anonymousPerHour' | 'anonymousStorageBytes' | 'anonymousNetworkStorageBytes'
>

function readAnonymous(env: EnvReader): AnonymousSettings {
  const limits = {
    anonymousPerHour: env.integer('ANONYMOUS_PER_HOUR', 60, 0, 1_000_000),
    anonymousStorageBytes: env.integer('ANONYMOUS_STORAGE_MB', 20_000, 0, 1_000_000_000) * 1_000_000,
    anonymousNetworkStorageBytes: env.integer('ANONYMOUS_NETWORK_STORAGE_MB', 500, 0, 1_000_000_000) * 1_000_000,
  }
  const isOn = env.oneOf('ANONYMOUS', ['on', 'off'], 'on') === 'on'
  return { ...limits, allowsAnonymous: isOn && Object.values(limits).every((limit) => limit > 0) }
}

function readTerms(env: EnvReader): Terms {
  const mode = env.oneOf('PLANS', ['table', 'single', 'unlimited'], 'table')
  const file = env.file('PLANS_FILE')
  if (file === undefined) return termsOf(mode)
  const { plans, invalid } = parsePlanFile(readFileSync(file, 'utf8'))
  for (const problem of invalid) env.problem(`PLANS_FILE: ${problem}`, undefined)
  return termsOf(mode, invalid.length === 0 ? plans : undefined)
}

/** Plain http only on this machine: whoever can answer for an issuer can publish. */
function readTrustedIssuers(env: EnvReader): readonly string[] {
  const issuers = env.list('TRUSTED_ISSUERS')
  for (const issuer of issuers) {
    const url = URL.parse(issuer)
    const isPlain = url?.protocol === 'http:' && isLoopbackName(url.hostname)
    if (!url || (url.protocol !== 'https:' && !isPlain) || url.search !== '' || url.hash !== '')
      env.problem(`TRUSTED_ISSUERS: "${issuer}" must be an https address (http on this machine alone)`, undefined)
  }
  return issuers
}

type McpAnonymousSettings = Pick<ControlConfig, 'mcpAnonymous' | 'mcpAnonymousPerHour'>

/** None an hour is the same as off, and so is what strangers may do nowhere. */
function readMcpAnonymous(env: EnvReader, { allowsAnonymous }: AnonymousSettings): McpAnonymousSettings {
  const isOn = env.oneOf('MCP_ANONYMOUS', ['on', 'off'], 'on') === 'on'
  const mcpAnonymousPerHour = env.integer('MCP_ANONYMOUS_PER_HOUR', 600, 0, 1_000_000)
  return { mcpAnonymous: allowsAnonymous && isOn && mcpAnonymousPerHour > 0, mcpAnonymousPerHour }
}

/** A place that cannot be read is found out at the start, not at night. */
function readBackups(env: EnvReader): Pick<ControlConfig, 'backupTo' | 'backupEveryMs' | 'backupKeepMs'> {
  const backupTo = env.optional('BACKUP_TO')
  if (backupTo?.startsWith('s3:')) {
    try {
      parseS3Url(`${backupTo}${backupTo.includes('?') ? '&' : '?'}cache=/`)
    } catch {
      env.problem(
        'BACKUP_TO must be a directory, or look like s3://key:secret@bucket[/prefix]?endpoint=https://…',
        undefined,
      )
    }
  } else if (backupTo !== undefined && !/^(?:file:.|\/|\.)/.test(backupTo))
    env.problem(
      'BACKUP_TO must be a path such as /backups, or s3://key:secret@bucket[/prefix]?endpoint=https://…',
      undefined,
    )
  const backupEveryMs = env.durationMs('BACKUP_EVERY', '1d')
  if (backupEveryMs < MINUTE_MS) env.problem('BACKUP_EVERY must be a minute or more', undefined)
  return { backupTo, backupEveryMs, backupKeepMs: env.durationMs('BACKUP_KEEP', '30d') }
}

export function readControlConfig(environment: Env): ControlConfig {
  const env = new EnvReader(environment)
  const shared = readSharedSettings(env)
  const anonymous = readAnonymous(env)
  return env.finish({
    ...shared,
    controlHost: env.text('CONTROL_HOST', '127.0.0.1'),
    databaseUrl: readDatabaseUrl(env) ?? localDatabaseUrl(shared.dataDir),
    redisUrl: readRedisUrl(env, shared.dataDir),
    blobStore: readBlobStore(env, shared.dataDir),
    secretKey: readSecretKey(env, shared.dataDir),
    ...readMail(env, shared),
    mailFrom: env.text('MAIL_FROM', senderOf(shared.look.name, `no-reply@${shared.serviceHost}`)),
    traces: readTraceSettings(env),
    ...readBackups(env),
    contact: env.optional('CONTACT_EMAIL'),
    signUp: readSignUp(env),
    ...anonymous,
    terms: readTerms(env),
    ...readSignIn(env),
    stripeSecretKey: env.optional('STRIPE_SECRET_KEY'),
    stripeWebhookSecrets: env.list('STRIPE_WEBHOOK_SECRET'),
    stripeApiBase: env.url('STRIPE_API_BASE', ['https', 'http']),
    dnsResolver: env.ipAndPort('DNS_RESOLVER'),
    acmeDirectoryUrl: env.url('ACME_DIRECTORY_URL', ['https']),
    caaIdentities: env.list('CAA_IDENTITIES'),
    // Where the secure port is not 443 the plain one is not 80 either: one machine, or a test.
    challengePort: env.port('CHALLENGE_PORT', shared.publicPort === undefined ? 80 : shared.httpPort),
    allowPrivateAddresses: env.oneOf('ALLOW_PRIVATE_ADDRESSES', ['yes', 'no'], 'no') === 'yes',
    allowLoopback: isLoopbackName(shared.serviceHost),
    publicAddresses: env.list('PUBLIC_ADDRESSES'),
    domainCheckMs: env.durationMs('DOMAIN_CHECK_INTERVAL', '10s'),
    anonymousLifetimeMs: env.durationMs('ANONYMOUS_LIFETIME', '7d'),
    freeIdleLifetimeMs: env.durationMs('FREE_IDLE_LIFETIME', '30d'),
    recoveryWindowMs: env.durationMs('RECOVERY_WINDOW', '30d'),
    expiryWarningsMs: env.durationsMs('EXPIRY_WARNINGS', '7d,1d'),
    removalWarningMs: env.durationMs('REMOVAL_WARNING', '7d'),
    unverifiedLifetimeMs: env.durationMs('UNVERIFIED_LIFETIME', '90d'),
    unverifiedWarningsMs: env.durationsMs('UNVERIFIED_WARNINGS', '30d,7d'),
    slugCooldownMs: env.durationMs('SLUG_COOLDOWN', '30d'),
    personalDataKeptMs: env.durationMs('PERSONAL_DATA_KEPT', '30d'),
    recordsKeptMs: env.optional('RECORDS_KEPT') === '0' ? undefined : env.durationMs('RECORDS_KEPT', '730d'),
    keepOldFilesMs: env.optional('KEEP_OLD_FILES') === '0' ? 0 : env.durationMs('KEEP_OLD_FILES', '30d'),
    jobIntervalMs: env.durationMs('JOB_INTERVAL', '30s'),
    viewerCodeLifetimeMs: env.durationMs('VIEWER_CODE_LIFETIME', '10m'),
    viewerAdmissionMs: env.durationMs('VIEWER_ADMISSION', '30d'),
    geoHeader: env.optional('GEO_COUNTRY_HEADER')?.toLowerCase(),
    readsClientDocuments: env.oneOf('OAUTH_CIMD', ['on', 'off'], 'on') === 'on',
    ...readMcpAnonymous(env, anonymous),
    trustedIssuers: readTrustedIssuers(env),
    uploadsPerHour: env.integer('UPLOADS_PER_HOUR', 600, 1, 1_000_000),
  })
}
