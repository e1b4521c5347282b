/** `doctor` on machines of every role: nothing to say of healthy ones, and each broken set-up with the line that mends it. */
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import type net from 'node:net'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import tls from 'node:tls'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openLocalCa } from '../../certs/local/local-ca.ts'
import { examine } from '../../control/operations/admin/doctor/doctor.ts'
import type { MachineRole } from '../../control/operations/admin/doctor/role.ts'
import { readControlConfig } from '../../control/ground/config.ts'
import { settingsOf, type SharedByAll } from '../../shared/contracts/plane-settings.ts'
import { keys } from '../../shared/redis/keys.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { startEdgeStandIn } from '../support/edge-stand-in.ts'
import { createBareDatabase, createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'

const SECRET_KEY = 'a key of the tests with more than 32 letters'
let folder: string
let database: TestDatabase
let bare: TestDatabase
let redisServer: TestRedis
let redis: Redis
let edge: Awaited<ReturnType<typeof startEdgeStandIn>>
const servers: (http.Server | tls.Server | net.Server)[] = []
/** What a healthy machine is told. */
let healthy: Record<string, string>

const portOf = async (server: http.Server | tls.Server | net.Server): Promise<string> => {
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return String((server.address() as AddressInfo).port)
}

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-doctor-'))
  ;[database, bare, redisServer] = await Promise.all([createTestDatabase(), createBareDatabase(), startTestRedis()])
  redis = new Redis(redisServer.url)
  edge = await startEdgeStandIn({ redisUrl: redisServer.url, id: 'edge' })
  const { cert, key } = openLocalCa(folder, systemClock).issue(['localhost', '*.drops.test', 'drops.test'])
  const control = http.createServer((_, response) => response.end('{"status":"ok"}'))
  const controlPort = await portOf(control)
  healthy = {
    DATA_DIR: folder,
    SECRET_KEY,
    SITES_DOMAIN: 'drops.test',
    DATABASE_URL: database.url,
    REDIS_URL: redisServer.url,
    CONTROL_PORT: controlPort,
    CONTROL_URLS: `http://127.0.0.1:${controlPort}`,
    EDGE_HTTPS_PORT: await portOf(tls.createServer({ cert, key })),
    EDGE_HTTP_PORT: await portOf(http.createServer()),
    BASE_URL: 'https://localhost',
  }
})
afterAll(async () => {
  for (const server of servers) server.close()
  await edge?.stop()
  redis?.disconnect()
  await redisServer?.stop()
  await Promise.all([database?.close(), bare?.close()])
  await rm(folder, { recursive: true, force: true })
})

const without = (env: Record<string, string>, ...names: string[]): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)))

describe('a healthy machine', () => {
  test.each(['all', 'control', 'edge'] as const)('of role %s has no problem', async (role) => {
    const findings = await examine(role === 'edge' ? without(healthy, 'DATABASE_URL') : healthy, role)
    expect(findings.filter(({ state }) => state === 'problem')).toEqual([])
    expect(findings[0]).toMatchObject({ check: 'role', detail: expect.stringContaining(role) as string })
  })

  test('an edge needs nothing of a control: no database, no mail server', async () => {
    const env = { ...without(healthy, 'DATABASE_URL'), BASE_URL: 'https://dropway.example' }
    const findings = await examine(env)
    const checks = findings.map(({ check }) => check)
    expect(checks).not.toContain('postgres')
    expect(checks).toContain('edge https')
    expect(findings.filter(({ mend }) => mend === 'Correct this setting.')).toEqual([])
  })
})

type Broken = readonly [
  what: string,
  change: Record<string, string>,
  role: MachineRole,
  check: string,
  words: RegExp,
  mend: RegExp,
]

const setting = (what: string, change: Record<string, string>, role: MachineRole, words: RegExp): Broken => [
  what,
  change,
  role,
  'settings',
  words,
  /Correct this setting/,
]
const AWAY = '127.0.0.1:9'
/** No name server is asked for it, whatever that would say: a part of a name has 63 letters at most. */
const NO_NAME = `no-such-host-${'x'.repeat(60)}`

/** Set-ups that are wrong in one thing each. */
const broken: readonly Broken[] = [
  setting('BASE_URL with a path', { BASE_URL: 'https://a.example/x' }, 'all', /BASE_URL must be an origin/),
  setting('a SITES_DOMAIN that is none', { SITES_DOMAIN: 'a_b' }, 'all', /SITES_DOMAIN must be a domain name/),
  setting('a public service without mail', { BASE_URL: 'https://a.example' }, 'control', /SMTP_URL must be set/),
  setting('a short SECRET_KEY', { SECRET_KEY: 'short' }, 'all', /SECRET_KEY/),
  setting(
    'half of a certificate',
    { SITES_CERT_FILE: import.meta.filename },
    'edge',
    /SITES_CERT_FILE and SITES_KEY_FILE must be set together/,
  ),
  setting(
    'a certificate that is not there',
    { SITES_CERT_FILE: '/none', SITES_KEY_FILE: '/none' },
    'edge',
    /SITES_CERT_FILE must be a file that can be read/,
  ),
  setting(
    'DNS01 without an authority',
    { DNS01: 'command', DNS01_COMMAND: '/hook' },
    'edge',
    /DNS01 needs ACME_DIRECTORY_URL/,
  ),
  setting(
    'an authority without TLS',
    { ACME_DIRECTORY_URL: 'http://ca.example/dir' },
    'edge',
    /ACME_DIRECTORY_URL must begin with https/,
  ),
  setting('a blob store that is no address', { BLOB_STORE: 'ftp://x' }, 'all', /BLOB_STORE must be file:/),
  setting('a bucket without an endpoint', { BLOB_STORE: 's3://k:s@bucket' }, 'all', /BLOB_STORE must look like s3/),
  setting(
    'controls that are no origins',
    { CONTROL_URLS: 'control-1:8787' },
    'edge',
    /CONTROL_URLS must list http:\/\/ origins/,
  ),
  setting('a proxy that is no network', { TRUSTED_PROXIES: 'balancer' }, 'edge', /TRUSTED_PROXIES must list addresses/),
  setting(
    'a place for backups that is none',
    { BACKUP_TO: 'https://b.example' },
    'control',
    /BACKUP_TO must be a path/,
  ),
  setting('a port that is none', { CONTROL_PORT: '70000' }, 'control', /CONTROL_PORT must be a whole number/),
  setting('a duration without a unit', { JOB_INTERVAL: '30' }, 'control', /JOB_INTERVAL must be a duration/),
  setting(
    'a secret whose file is missing',
    { DATABASE_URL: '', DATABASE_URL_FILE: '/none' },
    'control',
    /DATABASE_URL_FILE must be a file that can be read/,
  ),
  [
    'a database that is away',
    { DATABASE_URL: `postgres://u:p@${AWAY}/x` },
    'control',
    'postgres',
    /9/,
    /Check DATABASE_URL/,
  ],
  [
    'a host of the database that there is not',
    { DATABASE_URL: `postgres://u:p@${NO_NAME}/x` },
    'control',
    'postgres',
    /not known|no-such-host/,
    /DATABASE_URL/,
  ],
  [
    'a database of an older release',
    { DATABASE_URL: 'BARE' },
    'control',
    'migrations',
    /not applied: 0001_core\.sql/,
    /Start control/,
  ],
  ['Redis away', { REDIS_URL: `redis://${AWAY}` }, 'edge', 'redis', /cannot be reached/, /Check REDIS_URL/],
  [
    'no control here',
    { CONTROL_PORT: '9' },
    'control',
    'control',
    /nothing answers on 127\.0\.0\.1:9/,
    /npm run control/,
  ],
  [
    'a control that an edge cannot reach',
    { CONTROL_URLS: `http://${AWAY}` },
    'edge',
    'control',
    /does not answer/,
    /CONTROL_HOST of the control, and the firewall/,
  ],
  [
    'nothing on the secure port',
    { EDGE_HTTPS_PORT: '9' },
    'edge',
    'edge https',
    /nothing answers TLS on port 9/,
    /npm run edge/,
  ],
  [
    'nothing on the plain port',
    { EDGE_HTTP_PORT: '9' },
    'edge',
    'edge http',
    /nothing listens on port 9/,
    /npm run edge/,
  ],
  [
    'a certificate for other names',
    { SITES_DOMAIN: 'other.test' },
    'edge',
    'edge https',
    /does not stand for \*\.other\.test/,
    /Set DNS01/,
  ],
  [
    'a bucket that is away',
    { BLOB_STORE: `s3://k:s@b?endpoint=http://${AWAY}` },
    'edge',
    'blob store',
    /S3 store/,
    /its endpoint, its bucket/,
  ],
  ['a DATA_DIR that is not there', { DATA_DIR: '/no/such/folder' }, 'edge', 'disk', /does not exist/, /Set DATA_DIR/],
  [
    'a mail server that is away',
    { SMTP_URL: `smtp://${AWAY}` },
    'control',
    'mail',
    /127\.0\.0\.1:9 cannot be reached/,
    /Check SMTP_URL and the firewall/,
  ],
  [
    'an authority that is away',
    { ACME_DIRECTORY_URL: `https://${AWAY}/dir` },
    'edge',
    'certificate authority',
    /cannot be reached/,
    /ACME_DIRECTORY_URL and the firewall/,
  ],
  [
    'backups that stopped',
    { BACKUP_TO: 'OLD' },
    'control',
    'backups',
    /the newest in .* is of .* 2020/,
    /"admin backup" takes one now/,
  ],
]

describe('a broken set-up', () => {
  test('there are at least 25 of them', () => expect(broken.length).toBeGreaterThanOrEqual(25))

  test.each(broken)('%s', async (_, change, role, check, words, mend) => {
    const old = path.join(folder, 'old-backups')
    await mkdir(path.join(old, 'snapshots', '2020-01-01T00-00-00.000Z'), { recursive: true })
    await writeFile(path.join(old, 'snapshots', '2020-01-01T00-00-00.000Z', 'backup.json'), '{}')
    const env: Record<string, string> = { ...healthy, ...change }
    if (env['DATABASE_URL'] === 'BARE') env['DATABASE_URL'] = bare.url
    if (env['BACKUP_TO'] === 'OLD') env['BACKUP_TO'] = old
    const findings = await examine(env, role)
    const problems = findings.filter(({ state }) => state === 'problem')
    expect(problems).toContainEqual({
      check,
      state: 'problem',
      detail: expect.stringMatching(words) as string,
      mend: expect.stringMatching(mend) as string,
    })
  })

  test('another SECRET_KEY and another SITES_DOMAIN on a running plane', async () => {
    const said = settingsOf('edge', {
      baseUrl: 'https://localhost',
      sitesDomain: 'else.test',
      secretKey: 'x'.repeat(32),
      dns01Kind: undefined,
    })
    await redis.zadd(keys.settings, Date.now(), JSON.stringify(said))
    const found = (await examine(healthy, 'control')).find(({ check }) => check === 'settings')
    await redis.del(keys.settings)
    expect(found).toMatchObject({
      state: 'problem',
      detail: expect.stringMatching(/another SECRET_KEY.*SITES_DOMAIN else\.test/) as string,
    })
  })

  test.each<[string, readonly Partial<SharedByAll>[], RegExp]>([
    ['an edge that proves no names', [{ dns01Kind: undefined }], /^edge runs with DNS01 off, not rfc2136$/],
    [
      'an edge with a hook',
      [{ dns01Kind: 'command', dns01Account: 'a' }],
      /^edge runs with DNS01 command, not rfc2136$/,
    ],
    [
      'two edges with two name servers',
      [{ dns01Account: 'a' }, { dns01Account: 'b' }],
      /^edge runs with other DNS01_… settings$/,
    ],
    ['two edges that agree', [{ dns01Account: 'a' }, { dns01Account: 'a' }], /^all planes share/],
  ])('proofs by DNS: %s', async (_, edges, words) => {
    const env = { ...healthy, DNS01: 'rfc2136' }
    const own = readControlConfig(env)
    for (const edge of edges)
      await redis.zadd(keys.settings, Date.now(), JSON.stringify(settingsOf('edge', { ...own, ...edge })))
    const found = (await examine(env, 'control')).find(({ check }) => check === 'settings')
    await redis.del(keys.settings)
    expect(found?.detail).toMatch(words)
  })

  test('a wildcard that cannot be had, with what the name server said', async () => {
    const retry = {
      attempts: 2,
      next_attempt_ms: Date.now(),
      reason: 'internal',
      last_error: 'it refuses (REFUSED): allow this key',
      failures_ms: [],
    }
    await redis.hset(keys.acmeRetry, '*.drops.test', JSON.stringify(retry))
    const found = (await examine(healthy, 'edge')).find(({ check }) => check === 'certificate *.drops.test')
    await redis.del(keys.acmeRetry)
    expect(found).toMatchObject({
      state: 'problem',
      detail: expect.stringContaining('allow this key') as string,
      mend: expect.stringContaining('DNS01') as string,
    })
  })

  test('no edge alive', async () => {
    const empty = await startTestRedis()
    const found = (await examine({ ...healthy, REDIS_URL: empty.url }, 'control')).find(
      ({ check }) => check === 'edges',
    )
    await empty.stop()
    expect(found).toMatchObject({ state: 'problem', mend: expect.stringContaining('Start an edge') as string })
  })
})
