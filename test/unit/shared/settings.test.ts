import { expect, test } from 'vitest'
import { readControlConfig } from '../../../control/ground/config.ts'
import { readEdgeConfig } from '../../../edge/config.ts'
import { parseBlobStoreUrl } from '../../../shared/blobs/location.ts'
import type { ConfigError, Env } from '../../../shared/settings/env.ts'

const sound: Env = { DATA_DIR: '/tmp', SECRET_KEY: 'k'.repeat(32) }

function problems(environment: Env): string[] {
  const found: string[] = []
  for (const read of [readControlConfig, readEdgeConfig]) {
    try {
      read({ ...sound, ...environment })
    } catch (error) {
      found.push(...(error as ConfigError).problems)
    }
  }
  return found
}

test.each([
  ['BLOB_STORE', 'somewhere'],
  ['BLOB_STORE', 's3://bucket'],
  ['DATABASE_URL', 'mysql://db'],
  ['REDIS_URL', 'http://redis'],
  ['TRUSTED_PROXIES', '10.0.0.0/8,proxy'],
  ['TRUSTED_PROXIES', '10.0.0.0/33'],
  ['SITES_CERT_FILE', '/nowhere/site.pem'],
  ['ACME_CA_FILE', '/nowhere/ca.pem'],
  ['ACME_DIRECTORY_URL', 'acme'],
  ['SMTP_URL', 'mail.example'],
  ['DNS_RESOLVER', 'resolver:port'],
  ['STRIPE_API_BASE', 'stripe'],
  ['SITES_DOMAIN', 'bad domain'],
  ['ANONYMOUS_LIFETIME', '7'],
  ['FREE_IDLE_LIFETIME', '-3d'],
  ['EDGE_WORKERS', '0'],
  ['PATIENCE', '0'],
  ['PATIENCE', '1.5'],
  ['PATIENCE', '6'],
])('%s=%s is named in the message', (name, value) => {
  expect(problems({ [name]: value }).some((problem) => problem.includes(name))).toBe(true)
})

test.each([{ EDGE_HTTPS_PORT: '10080' }, { BASE_URL: 'https://localhost:6000' }])(
  'an address that no browser opens is refused: %o',
  (environment) => {
    expect(problems(environment)).toContainEqual(
      expect.stringMatching(/^BASE_URL has the port (10080|6000), .*EDGE_HTTPS_PORT/),
    )
    // A balancer may stand before it.
    expect(problems({ EDGE_HTTPS_PORT: '10080', BASE_URL: 'https://localhost' })).toEqual([])
  },
)

test('a certificate without its key does not silently mean the local authority', () => {
  expect(problems({ SITES_CERT_FILE: import.meta.filename })).toEqual([
    'SITES_CERT_FILE and SITES_KEY_FILE must be set together',
  ])
})

test.each(['https://dropway.example', 'https://192.0.2.7', 'https://localhost.example'])(
  'a start at %s without a mail server says what to set',
  (BASE_URL) => {
    expect(problems({ BASE_URL })).toEqual([expect.stringMatching(/^SMTP_URL must be set.*MAIL_TO_FILES=1/)])
    expect(problems({ BASE_URL, SMTP_URL: 'smtp://mail:25' })).toEqual([])
    expect(problems({ BASE_URL, MAIL_TO_FILES: '1' })).toEqual([])
    expect(readControlConfig({ ...sound, BASE_URL, MAIL_TO_FILES: '1' }).showsMails).toBe(false)
  },
)

test.each(['https://localhost:8443', 'https://dropway.localhost', 'https://127.0.0.1:8443', 'https://[::1]:8443'])(
  'at %s mails are files that may be shown, unless there is a mail server',
  (BASE_URL) => {
    expect(readControlConfig({ ...sound, BASE_URL }).showsMails).toBe(true)
    expect(readControlConfig({ ...sound, BASE_URL, SMTP_URL: 'smtp://mail:25' }).showsMails).toBe(false)
  },
)

test('no message repeats a password', () => {
  const text = problems({ DATABASE_URL: 'mysql://u:hunter2@db', BLOB_STORE: 's3://key:hunter2@bucket' }).join('\n')
  expect(text).not.toContain('hunter2')
})

test.each([
  { TRUSTED_PROXIES: '10.0.0.0/8, ::1,192.0.2.1', DNS_RESOLVER: '[::1]:53' },
  { DATABASE_URL: 'postgresql://u@db/x', SMTP_URL: 'smtps://u:p@mail:465', DNS_RESOLVER: '127.0.0.1:8053' },
  { DATABASE_URL: '/var/run/postgresql?database=dropway', REDIS_URL: '/var/run/redis.sock' },
  { BLOB_STORE: 's3://k:s@bucket?endpoint=https://s3.example', ACME_DIRECTORY_URL: 'https://ca/dir' },
])('%j is accepted', (environment) => {
  expect(problems(environment)).toEqual([])
})

test('files that are there are accepted', () => {
  const file = import.meta.filename
  expect(problems({ SITES_CERT_FILE: file, SITES_KEY_FILE: file, ACME_CA_FILE: file })).toEqual([])
})

test.each([
  ['', '/tmp/blob-copies'],
  ['&cache=/var/cache/drops', '/var/cache/drops'],
])('copies of a distant store are where no one else can write (%j)', (cache, directory) => {
  const BLOB_STORE = `s3://k:s%2F@bucket/prefix?endpoint=https://s3.example:9000${cache}`
  const { blobStore } = readEdgeConfig({ ...sound, BLOB_STORE })
  expect(readControlConfig({ ...sound, BLOB_STORE }).blobStore).toBe(blobStore)
  expect(parseBlobStoreUrl(blobStore)).toMatchObject({
    cacheDir: directory,
    settings: { endpoint: 'https://s3.example:9000', bucket: 'bucket', prefix: 'prefix/', secretAccessKey: 's/' },
  })
})

test.each<[Record<string, string>, boolean]>([
  [{}, true],
  [{ MCP_ANONYMOUS: 'off' }, false],
  [{ MCP_ANONYMOUS_PER_HOUR: '0' }, false],
  [{ ANONYMOUS: 'off' }, false],
])('assistants publish without an account: with %j %s', (env, isOpen) => {
  expect(readControlConfig({ ...sound, ...env }).mcpAnonymous).toBe(isOpen)
})
