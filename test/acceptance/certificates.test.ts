/** A custom domain as its owner and its visitors meet it: the whole service, a real CA, real DNS answers. */
import http2 from 'node:http2'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import tls from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { request } from '../support/client.ts'
import { startPebble, type Pebble } from '../support/pebble.ts'
import { freePorts, startStack, type Account, type OwnStack, type Published } from '../support/stack.ts'

const soon = { timeout: 30_000, interval: 100 }
let pebble: Pebble
let stack: OwnStack
let root: string
let account: Account
let site: Published

beforeAll(async () => {
  const [httpPort] = (await freePorts(1)) as [number]
  pebble = await startPebble({ challengePort: httpPort })
  stack = await startStack({
    env: {
      EDGE_HTTP_PORT: String(httpPort),
      ACME_DIRECTORY_URL: pebble.directoryUrl,
      ACME_CA_FILE: pebble.caFile,
      ACME_EMAIL: 'ops@dropway.test',
      DNS_RESOLVER: pebble.dnsResolver,
      DOMAIN_CHECK_INTERVAL: '200ms',
      LOG_LEVEL: 'debug',
    },
  })
  root = await pebble.rootPem()
  account = await stack.createAccount('business')
  site = await stack.publish(account, '<!doctype html><title>Hello</title><p>My own domain')
})
afterAll(async () => {
  await Promise.all([stack?.stop(), pebble?.stop()])
})

interface RecordJson {
  type: string
  name: string
  value: string
}

interface DomainJson {
  domain: string
  state: string
  reason: string | null
  record: RecordJson
  records: RecordJson[]
  certificate: { not_after: string } | null
}

const api = (target: string, options: Parameters<OwnStack['fetch']>[1] = {}) =>
  stack.fetch(`/api/v1/sites/${site.id}/domains${target}`, { token: account.token, ...options })
const stateOf = async (domain: string): Promise<DomainJson> => (await api(`/${domain}`)).json<DomainJson>()
const visit = (domain: string, options: { path?: string } = {}) =>
  request({ url: `https://${domain}:${stack.httpsPort}${options.path ?? '/'}`, ca: root, h2: true })

async function addDomain(domain: string): Promise<void> {
  const answer = await api('', { json: { domain } })
  expect(answer.status).toBe(201)
  const { record } = answer.json<DomainJson>()
  await pebble.dns.a(record.value, '127.0.0.1')
  await pebble.dns.cname(domain, record.value)
  await expect.poll(() => stateOf(domain), soon).toMatchObject({ state: 'active', reason: null })
}

test('a domain becomes active by itself and is served over h2 with the chain of the CA', async () => {
  const added = await api('', { json: { domain: 'shop.customer.test' } })
  expect(added.status).toBe(201)
  expect(added.json()).toMatchObject({ domain: 'shop.customer.test', state: 'awaiting_dns', certificate: null })
  await expect.poll(() => stateOf('shop.customer.test'), soon).toMatchObject({ reason: 'no_record' })
  await addDomain('shop.customer.test')

  const page = await visit('shop.customer.test')
  expect(page.status).toBe(200)
  expect(page.text()).toContain('My own domain')
  expect((await stack.visit(site.slug)).status).toBe(200)
  // The name in the handshake may come in any case; what the certificate does not cover is misdirected.
  expect(await subjectOf('SHOP.customer.TEST')).toContain('shop.customer.test')
  expect(await statusWith({ servername: 'shop.customer.test', host: `${site.slug}.localhost` })).toBe(421)
}, 60_000)

test('www and apex redirect to each other, with their own certificates', async () => {
  const added = (await api('', { json: { domain: 'www.pair.test' } })).json<DomainJson & { pair: DomainJson }>()
  expect(added.pair).toMatchObject({ domain: 'pair.test', redirect_to: 'www.pair.test' })
  await pebble.dns.a(added.record.value, '127.0.0.1')
  await pebble.dns.cname('www.pair.test', added.record.value)
  await pebble.dns.a('pair.test', '127.0.0.1')
  const proof = added.pair.records.find(({ type }) => type === 'TXT')!
  await pebble.dns.txt(proof.name, proof.value)
  await expect.poll(() => stateOf('www.pair.test'), soon).toMatchObject({ state: 'active', pair: { state: 'active' } })
  const answer = await visit('pair.test', { path: '/a?b=c' })
  expect(answer.status).toBe(301)
  expect(answer.header('location')).toMatch(/^https:\/\/www\.pair\.test(:\d+)?\/a\?b=c$/)
}, 60_000)

test('a removed domain is no longer served, and its certificate is given up', async () => {
  await addDomain('leaving.customer.test')
  expect((await visit('leaving.customer.test')).status).toBe(200)
  expect((await api('/leaving.customer.test', { method: 'DELETE' })).status).toBe(204)
  expect((await api('/leaving.customer.test')).status).toBe(404)
  await expect.poll(() => subjectOf('leaving.customer.test'), soon).not.toContain('leaving.customer.test')
  expect((await stack.visit(site.slug)).status).toBe(200)
}, 60_000)

test('an operator sees which certificates there are, and when they end', async () => {
  await addDomain('listed.customer.test')
  const { code, stdout } = await stack.admin('certificates', 'list')
  expect(code).toBe(0)
  const listed = (JSON.parse(stdout) as { name: string; not_after: string }[]).find(
    ({ name }) => name === 'listed.customer.test',
  )
  expect(Date.parse(listed!.not_after)).toBeGreaterThan(Date.now())
  expect(stdout).not.toMatch(/PRIVATE|s1\./)
}, 60_000)

test('refusals name their reason', async () => {
  const free = await stack.createAccount('free')
  const own = await stack.publish(free, '<p>free')
  const answer = await stack.fetch(`/api/v1/sites/${own.id}/domains`, {
    token: free.token,
    json: { domain: 'a.example.test' },
  })
  expect([answer.status, answer.json().error]).toEqual([403, 'plan_feature'])
  for (const domain of ['localhost', 'x.localhost', '127.0.0.1', 'com', 'not a name']) {
    expect((await api('', { json: { domain } })).status, domain).toBe(400)
  }
  expect((await stack.fetch(`/api/v1/sites/${site.id}/domains`, { token: free.token })).status).toBe(404)
})

test('no private key is in clear in any file of the data directory but those of the local CA', async () => {
  const leaks: string[] = []
  for (const entry of await readdir(stack.dataDir, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name)
    if (!entry.isFile() || file.includes(`${path.sep}ca${path.sep}`)) continue
    const bytes = await readFile(file).catch(() => Buffer.alloc(0))
    if (/BEGIN [A-Z ]*PRIVATE KEY/.test(bytes.toString('latin1'))) leaks.push(file)
  }
  expect(leaks).toEqual([])
  expect(stack.output.join('\n')).not.toMatch(/PRIVATE KEY/)
})

async function subjectOf(servername: string): Promise<string> {
  const socket = tls.connect({ port: stack.httpsPort, host: '127.0.0.1', servername, rejectUnauthorized: false })
  await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
  const { subjectaltname } = socket.getPeerCertificate()
  socket.destroy()
  return subjectaltname ?? ''
}

async function statusWith({ servername, host }: { servername: string; host: string }): Promise<number> {
  const session = http2.connect(`https://${servername}`, {
    createConnection: () =>
      tls.connect({ port: stack.httpsPort, host: '127.0.0.1', servername, ca: root, ALPNProtocols: ['h2'] }),
  })
  const stream = session.request({ ':authority': `${host}:${stack.httpsPort}` })
  const [headers] = await new Promise<[http2.IncomingHttpHeaders]>((resolve, reject) =>
    stream.once('response', (received) => resolve([received])).once('error', reject),
  )
  session.destroy()
  return Number(headers[':status'])
}
