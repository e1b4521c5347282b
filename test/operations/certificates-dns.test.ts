/** The wildcard certificate of the service by itself (dns-01): real edges, a real CA and a real name server. */
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import tls from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RENEWAL_INFO, sendWindow, startAcmeFront, type AcmeFront } from '../support/acme-front.ts'
import { certificateAt, isIssued } from '../support/custom-domains.ts'
import { startEdgeFixture, type EdgeFixture, type EdgeProcess } from '../support/edge-fixture.ts'
import { startNameServer, type NameServer } from '../support/name-server.ts'
import { startPebble, type Pebble } from '../support/pebble.ts'

const DAY_MS = 86_400_000
const soon = { interval: 100 }
/** The name that an acme-dns server keeps for one account. */
const ACME_DNS_NAME = 'd420c923.auth.example.test'

let names: NameServer
let pebble: Pebble
let front: AcmeFront
let fixture: EdgeFixture
let root: string
/** The authority asks for everything to be renewed at once. */
let isRevoking = false

beforeAll(async () => {
  names = await startNameServer('example.test', [`_acme-challenge.by-acme-dns CNAME ${ACME_DNS_NAME}.`])
  pebble = await startPebble({ challengePort: 9, dnsServer: names.address })
  front = await startAcmeFront(pebble, (target, _, response) => {
    if (!target.startsWith(RENEWAL_INFO)) return false
    sendWindow(response, Date.now() + (isRevoking ? -DAY_MS : 300 * DAY_MS), '60')
    return true
  })
  root = await pebble.rootPem()
  fixture = await startEdgeFixture({
    startEdge: false,
    env: {
      ACME_DIRECTORY_URL: front.directoryUrl,
      ACME_CA_FILE: pebble.caFile,
      DNS_RESOLVER: names.address,
      EDGE_WORKERS: '1',
    },
  })
})
afterAll(async () => {
  await fixture?.stop()
  front?.stop()
  await pebble?.stop()
  await names?.stop()
})

const byUpdate = (label: string): Record<string, string> => ({
  BASE_URL: `https://dashboard-of-${label}.example.test`,
  SITES_DOMAIN: `${label}.example.test`,
  REPLICA_DIR: `${fixture.dataDir}/${label}`,
  DNS01: 'rfc2136',
  DNS01_SERVER: names.address,
  DNS01_TSIG_KEY: names.keyName,
  DNS01_TSIG_SECRET: names.secret,
})

const retryOf = async (name: string): Promise<{ attempts: number; reason: string; last_error: string } | undefined> => {
  const text = await fixture.redis.hget('{dropway}:acme:retry', name)
  return text === null ? undefined : JSON.parse(text)
}

/** A visitor who trusts the authority alone: rejects unless the certificate is good for the name. */
async function requireTrusted(edge: EdgeProcess, servername: string): Promise<void> {
  const socket = tls.connect({ port: edge.httpsPort, host: '127.0.0.1', servername, ca: root })
  await once(socket, 'secureConnect')
  socket.destroy()
}

test('signed updates: the wildcard and the dashboard get certificates, the records go, a restart orders nothing', async () => {
  const edge = await fixture.startEdge(byUpdate('sites'))
  await expect.poll(() => isIssued(fixture, '*.sites.example.test'), soon).toBe(true)
  await expect.poll(() => isIssued(fixture, 'dashboard-of-sites.example.test'), soon).toBe(true)
  const trusted = ['hello.sites.example.test', 'sites.example.test', 'dashboard-of-sites.example.test']
  for (const name of trusted)
    await expect.poll(() => requireTrusted(edge, name).then(() => 'trusted'), soon).toBe('trusted')
  const { names: certified, serial } = await certificateAt(edge.httpsPort, 'hello.sites.example.test')
  expect(certified.split(', ').toSorted()).toEqual(['DNS:*.sites.example.test', 'DNS:sites.example.test'])
  // The name of no drop, and no name at all, get the same one.
  expect((await certificateAt(edge.httpsPort, 'stranger.test')).serial).toBe(serial)
  for (const host of ['sites.example.test', 'dashboard-of-sites.example.test'])
    await expect.poll(() => names.txt(`_acme-challenge.${host}`), soon).toEqual([])
  const orders = await pebble.orders()
  await edge.stop()
  const again = await fixture.startEdge(byUpdate('sites'))
  await requireTrusted(again, 'hello.sites.example.test')
  expect(await pebble.orders()).toBe(orders)
  expect(await pebble.accounts()).toBe(1)
  await again.stop()

  // The operator returns to files or the local authority: what was issued is not shown any more.
  const local = await fixture.startEdge({ SITES_DOMAIN: 'sites.example.test', BASE_URL: 'https://sites.example.test' })
  expect((await certificateAt(local.httpsPort, 'hello.sites.example.test')).serial).not.toBe(serial)
  await local.stop()
})

test('two edges: one order; renewed when the authority says so, and shown by both without a restart', async () => {
  const env = { ...byUpdate('pair'), BASE_URL: 'https://pair.example.test' }
  const orders = await pebble.orders()
  const edges = await Promise.all(
    ['one', 'two'].map((place) => fixture.startEdge({ ...env, REPLICA_DIR: `${fixture.dataDir}/pair-${place}` })),
  )
  await expect.poll(() => isIssued(fixture, '*.pair.example.test'), soon).toBe(true)
  const serials = (): Promise<string[]> =>
    Promise.all(edges.map(async ({ httpsPort }) => (await certificateAt(httpsPort, 'a.pair.example.test')).serial))
  await expect.poll(async () => new Set(await serials()).size, soon).toBe(1)
  await expect.poll(() => requireTrusted(edges[1]!, 'pair.example.test').then(() => 'trusted'), soon).toBe('trusted')
  expect((await pebble.orders()) - orders).toBe(1)
  const [before] = await serials()
  isRevoking = true
  try {
    // Edges ask for the authority's word when they start.
    await edges[0]!.stop()
    edges[0] = await fixture.startEdge({ ...env, REPLICA_DIR: `${fixture.dataDir}/pair-one` })
    await expect.poll(async () => (await serials()).every((serial) => serial !== before), soon).toBe(true)
  } finally {
    isRevoking = false
  }
  await Promise.all(edges.map((edge) => edge.stop()))
})

test('a wrong secret costs no visitor the handshake, and says what to correct', async () => {
  const wrong = Buffer.alloc(32, 7).toString('base64')
  const edge = await fixture.startEdge({ ...byUpdate('wrong'), DNS01_TSIG_SECRET: wrong })
  await expect.poll(async () => (await retryOf('*.wrong.example.test'))?.attempts, soon).toBe(1)
  expect(await retryOf('*.wrong.example.test')).toMatchObject({
    reason: 'internal',
    last_error: expect.stringContaining('DNS01_TSIG_SECRET') as string,
  })
  // The local authority's, until the real one is there.
  expect((await certificateAt(edge.httpsPort, 'hello.wrong.example.test')).names).toContain('*.wrong.example.test')
  await edge.stop()
  const mended = await fixture.startEdge(byUpdate('wrong'))
  await expect.poll(() => isIssued(fixture, '*.wrong.example.test'), soon).toBe(true)
  await mended.stop()
})

test('a command of the operator: it is given the name and the value, and none of our secrets', async () => {
  const edge = await fixture.startEdge({
    SITES_DOMAIN: 'by-command.example.test',
    BASE_URL: 'https://by-command.example.test',
    REPLICA_DIR: `${fixture.dataDir}/by-command`,
    DATABASE_URL: 'postgres://someone:secret@127.0.0.1:9/dropway',
    DNS01: 'command',
    DNS01_COMMAND: names.hook,
  })
  await expect.poll(() => isIssued(fixture, '*.by-command.example.test'), soon).toBe(true)
  await expect.poll(() => requireTrusted(edge, 'a.by-command.example.test').then(() => 'trusted'), soon).toBe('trusted')
  expect(await names.txt('_acme-challenge.by-command.example.test')).toEqual([])
  await edge.stop()
})

test('acme-dns: values go where the CNAME leads', async () => {
  const account = { username: 'u', password: 'p', subdomain: 'd420c923', fulldomain: ACME_DNS_NAME }
  const server = http.createServer(async (request, response) => {
    const { subdomain, txt } = JSON.parse((await buffer(request)).toString()) as { subdomain: string; txt: string }
    const isOurs =
      request.headers['x-api-user'] === 'u' && request.headers['x-api-key'] === 'p' && subdomain === 'd420c923'
    if (!isOurs || request.url !== '/update') return void response.writeHead(401).end('{"error":"forbidden"}')
    await names.addTxt(ACME_DNS_NAME, txt)
    response.end(JSON.stringify({ txt }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const edge = await fixture.startEdge({
    SITES_DOMAIN: 'by-acme-dns.example.test',
    BASE_URL: 'https://by-acme-dns.example.test',
    REPLICA_DIR: `${fixture.dataDir}/by-acme-dns`,
    DNS01: 'acme-dns',
    DNS01_ACME_DNS_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    DNS01_ACME_DNS_ACCOUNT: JSON.stringify(account),
  })
  await expect.poll(() => isIssued(fixture, '*.by-acme-dns.example.test'), soon).toBe(true)
  await edge.stop()
  server.close()
})
