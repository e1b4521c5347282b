/** A custom domain as its owner and its visitors meet it: the whole service, a real CA, real DNS answers. */
import http2 from 'node:http2'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import tls from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PASSWORD } from '../support/accounts.ts'
import { RENEWAL_INFO, sendWindow, startAcmeFront, type AcmeFront } from '../support/acme-front.ts'
import { launchBrowser, trustAuthority } from '../support/browser.ts'
import { request } from '../support/client.ts'
import { certificateAt } from '../support/custom-domains.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { startPebble, type Pebble } from '../support/pebble.ts'
import { freePorts, startStack, type Account, type OwnStack, type Published } from '../support/stack.ts'

const soon = { interval: 100 }
let pebble: Pebble
let front: AcmeFront
/** The authority has to revoke what it is asked about: it is to be renewed at once. */
let isRevoking = false
let stack: OwnStack
let root: string
let account: Account
let site: Published

beforeAll(async () => {
  const [httpPort] = (await freePorts(1)) as [number]
  pebble = await startPebble({ challengePort: httpPort })
  front = await startAcmeFront(pebble, (target, _, response) => {
    if (!target.startsWith(RENEWAL_INFO)) return false
    const day = 86_400_000
    sendWindow(response, Date.now() + (isRevoking ? -day : 300 * day))
    return true
  })
  stack = await startStack({
    database: 'shared',
    operator: true,
    env: {
      EDGE_HTTP_PORT: String(httpPort),
      ACME_DIRECTORY_URL: front.directoryUrl,
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
  await stack?.stop()
  front?.stop()
  await pebble?.stop()
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
  // All names of a drop have one target; its record is written anew, not once more.
  await pebble.dns.clear(record.value)
  await pebble.dns.a(record.value, '127.0.0.1')
  await pebble.dns.cname(domain, record.value)
  await expect.poll(() => stateOf(domain), soon).toMatchObject({ state: 'active', reason: null, detail: '' })
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
})

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
})

test('half of a pair shows the drop itself until the main name is served; the main name can be switched', async () => {
  const added = (await api('', { json: { domain: 'halves.test' } })).json<DomainJson & { pair: DomainJson }>()
  const www = added.pair.record
  await pebble.dns.a(www.value, '127.0.0.1')
  await pebble.dns.cname('www.halves.test', www.value)
  await expect
    .poll(() => stateOf('halves.test'), soon)
    .toMatchObject({ state: 'awaiting_dns', pair: { state: 'active', redirect_to: 'halves.test' } })
  const alone = await visit('www.halves.test')
  expect([alone.status, alone.text()]).toEqual([200, expect.stringContaining('My own domain')])

  await pebble.dns.a('halves.test', '127.0.0.1')
  const proof = added.records.find(({ type }) => type === 'TXT')!
  await pebble.dns.txt(proof.name, proof.value)
  await expect.poll(() => stateOf('halves.test'), soon).toMatchObject({ state: 'active' })
  expect((await visit('halves.test')).status).toBe(200)
  await expect.poll(async () => (await visit('www.halves.test')).status, soon).toBe(301)

  const switched = await api('/www.halves.test/main', { method: 'POST' })
  expect(switched.json()).toMatchObject({
    domain: 'www.halves.test',
    redirect_to: null,
    state: 'active',
    pair: { domain: 'halves.test', redirect_to: 'www.halves.test', state: 'active' },
  })
  expect((await visit('www.halves.test')).status).toBe(200)
  const back = await visit('halves.test')
  expect([back.status, back.header('location')]).toEqual([301, expect.stringContaining('https://www.halves.test')])
  expect((await api('/www.halves.test', { method: 'DELETE' })).status).toBe(204)
})

test('a certificate that the authority has to revoke is replaced before its time, without a gap', async () => {
  isRevoking = true
  await addDomain('revoked.customer.test')
  const { serial } = await certificateAt(stack.httpsPort, 'revoked.customer.test')
  const statuses = new Set<number>()
  await expect
    .poll(
      async () => {
        statuses.add((await visit('revoked.customer.test')).status)
        return (await certificateAt(stack.httpsPort, 'revoked.customer.test')).serial
      },
      { interval: 250 },
    )
    .not.toBe(serial)
  isRevoking = false
  expect([...statuses]).toEqual([200])
  expect(await stateOf('revoked.customer.test')).toMatchObject({ state: 'active', reason: null })
})

test('the end of a plan shows a paused page over good TLS; the end of the account gives name and certificate up', async () => {
  const leaver = await stack.createAccount('business', { password: PASSWORD })
  const theirs = await stack.publish(leaver, '<p>leaving')
  const add = await stack.fetch(`/api/v1/sites/${theirs.id}/domains`, {
    token: leaver.token,
    json: { domain: 'plan.customer.test' },
  })
  const { record } = add.json<DomainJson>()
  await pebble.dns.a(record.value, '127.0.0.1')
  await pebble.dns.cname('plan.customer.test', record.value)
  const state = async (): Promise<DomainJson> =>
    (await stack.fetch(`/api/v1/sites/${theirs.id}/domains/plan.customer.test`, { token: leaver.token })).json()
  await expect.poll(state, soon).toMatchObject({ state: 'active' })

  expect((await stack.admin('set-plan', '--email', leaver.email, '--plan', 'free')).code).toBe(0)
  const paused = await visit('plan.customer.test')
  expect([paused.status, paused.text()]).toEqual([503, expect.stringMatching(/paused/i)])
  expect(await subjectOf('plan.customer.test')).toContain('plan.customer.test')
  expect(await inBrowser('plan.customer.test')).toEqual([503, expect.stringMatching(/paused/i)])
  expect((await stack.admin('set-plan', '--email', leaver.email, '--plan', 'business')).code).toBe(0)
  await expect.poll(async () => (await visit('plan.customer.test')).status, soon).toBe(200)

  const browser = new FormBrowser(stack, '203.0.113.90')
  await browser.send('/signin', { email: leaver.email, password: PASSWORD })
  await browser.send('/account/data', { password: PASSWORD, confirm: leaver.email }, '/account/delete')
  await expect.poll(() => subjectOf('plan.customer.test'), soon).not.toContain('plan.customer.test')
  // The name is free: someone else proves it, by their own record.
  await pebble.dns.clear('plan.customer.test')
  await addDomain('plan.customer.test')
  expect((await visit('plan.customer.test')).text()).toContain('My own domain')
})

/** What Chromium shows of a domain, with the authority's root as the only thing that it was told to trust. */
async function inBrowser(domain: string): Promise<[number, string]> {
  const home = await mkdtemp(path.join(os.tmpdir(), 'dropway-home-'))
  await writeFile(path.join(home, 'root.pem'), root)
  await trustAuthority(home, path.join(home, 'root.pem'))
  const browser = await launchBrowser({ home, localHost: domain })
  try {
    const page = await browser.newPage()
    const answer = await page.goto(`https://${domain}:${stack.httpsPort}/`)
    return [answer!.status(), await page.locator('body').innerText()]
  } finally {
    await browser.close()
    await rm(home, { recursive: true, force: true })
  }
}

test('a removed domain is no longer served, and its certificate is given up', async () => {
  await addDomain('leaving.customer.test')
  expect((await visit('leaving.customer.test')).status).toBe(200)
  expect((await api('/leaving.customer.test', { method: 'DELETE' })).status).toBe(204)
  expect((await api('/leaving.customer.test')).status).toBe(404)
  await expect.poll(() => subjectOf('leaving.customer.test'), soon).not.toContain('leaving.customer.test')
  expect((await stack.visit(site.slug)).status).toBe(200)
})

test('an operator sees which certificates there are, and when they end', async () => {
  await addDomain('listed.customer.test')
  const { code, stdout } = await stack.admin('certificates', 'list')
  expect(code).toBe(0)
  const listed = (JSON.parse(stdout) as { name: string; not_after: string }[]).find(
    ({ name }) => name === 'listed.customer.test',
  )
  expect(Date.parse(listed!.not_after)).toBeGreaterThan(Date.now())
  expect(stdout).not.toMatch(/PRIVATE|s1\./)
})

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
  session.on('error', () => {})
  const stream = session.request({ ':authority': `${host}:${stack.httpsPort}` })
  const [headers] = await new Promise<[http2.IncomingHttpHeaders]>((resolve, reject) =>
    stream.once('response', (received) => resolve([received])).once('error', reject),
  )
  session.destroy()
  return Number(headers[':status'])
}
