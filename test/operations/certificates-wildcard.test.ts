/** A customer's wildcard domain: the whole service, a real CA that proves by DNS, a real name server. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RENEWAL_INFO, sendWindow, startAcmeFront, type AcmeFront } from '../support/acme-front.ts'
import { request, type Answer } from '../support/client.ts'
import { certificateAt } from '../support/custom-domains.ts'
import { startNameServer, type NameServer } from '../support/name-server.ts'
import { startPebble, type Pebble } from '../support/pebble.ts'
import { freePorts, startStack, type Account, type OwnStack } from '../support/stack.ts'

const DAY_MS = 86_400_000
const soon = { interval: 200 }
const WILDCARD = '*.docs.customer.test'

let names: NameServer
let pebble: Pebble
let front: AcmeFront
let stack: OwnStack
let roots: string
/** The authority asks for everything to be renewed at once. */
let isRevoking = false

beforeAll(async () => {
  const [httpPort] = (await freePorts(1)) as [number]
  names = await startNameServer('test', [
    'pages A 127.0.0.1',
    'sites.pages A 127.0.0.1',
    '*.sites.pages A 127.0.0.1',
    'docs.customer A 192.0.2.1',
  ])
  pebble = await startPebble({ challengePort: httpPort, dnsServer: names.address })
  front = await startAcmeFront(pebble, (target, _, response) => {
    if (!target.startsWith(RENEWAL_INFO)) return false
    sendWindow(response, Date.now() + (isRevoking ? -DAY_MS : 300 * DAY_MS), '1')
    return true
  })
  const [httpsPort] = (await freePorts(1)) as [number]
  stack = await startStack({
    database: 'shared',
    operator: true,
    env: {
      BASE_URL: `https://pages.test:${httpsPort}`,
      SITES_DOMAIN: 'sites.pages.test',
      EDGE_HTTPS_PORT: String(httpsPort),
      EDGE_HTTP_PORT: String(httpPort),
      ACME_DIRECTORY_URL: front.directoryUrl,
      ACME_CA_FILE: pebble.caFile,
      DNS_RESOLVER: names.address,
      DNS01: 'rfc2136',
      DNS01_SERVER: names.address,
      DNS01_TSIG_KEY: names.keyName,
      DNS01_TSIG_SECRET: names.secret,
      ALLOW_PRIVATE_ADDRESSES: 'yes',
      DOMAIN_CHECK_INTERVAL: '300ms',
      MAIL_TO_FILES: '1',
    },
  })
  roots = `${await pebble.rootPem()}\n${stack.ca}`
})
afterAll(async () => {
  await stack?.stop()
  front?.stop()
  await pebble?.stop()
  await names?.stop()
})

interface LineJson {
  action: string
  host: string
  name: string
  type: string
  value: string
}

interface DomainJson {
  state: string
  reason: string | null
  detail: string
  records: LineJson[]
}

/** The service is shown by the local authority's certificate first, and by the real one soon. */
const call = (account: Account, target: string, method: string, body?: string | FormData): Promise<Answer> =>
  request({
    url: `${stack.baseUrl}/api/v1/sites${target}`,
    ca: roots,
    method,
    headers: {
      authorization: `Bearer ${account.token}`,
      ...(typeof body === 'string' && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body }),
  })

async function publish(account: Account, text: string): Promise<string> {
  const { id } = (await call(account, '', 'POST', '{}')).json<{ id: string }>()
  const form = new FormData()
  form.append('file', new Blob([`<h1>${text}</h1>`], { type: 'text/html' }), 'index.html')
  expect((await call(account, `/${id}/upload`, 'POST', form)).status).toBe(201)
  return id
}

const domainAt = async (account: Account, site: string, domain: string): Promise<DomainJson> =>
  (await call(account, `/${site}/domains/${encodeURIComponent(domain)}`, 'GET')).json<DomainJson>()

/** Types exactly what the lines say. */
const follow = (lines: readonly LineJson[]): Promise<void> =>
  names.change(
    ...lines.map(({ action, name, type, value }) => {
      expect([action, type]).toEqual(['add', 'CNAME'])
      return `add ${name}. 60 CNAME ${value}.`
    }),
  )

const visit = (host: string): Promise<Answer> => request({ url: `https://${host}:${stack.httpsPort}/`, ca: roots })

test('a wildcard of a customer: two lines in their zone, every name below it, renewed, and given up', async () => {
  const poor = await stack.createAccount('plus')
  const refused = await call(poor, `/${await publish(poor, 'Poor')}/domains`, 'POST', `{"domain":"${WILDCARD}"}`)
  expect([refused.status, refused.text()]).toEqual([403, expect.stringContaining('Business')])

  const account = await stack.createAccount('business')
  const site = await publish(account, 'The docs')
  const added = await call(account, `/${site}/domains`, 'POST', `{"domain":"${WILDCARD}"}`)
  expect(added.status, added.text()).toBe(201)
  const { records, reason } = added.json<DomainJson>()
  expect(reason).toBe('no_record')
  expect(records.map(({ host, type, value }) => ({ host, type, value }))).toEqual([
    { host: '*.docs', type: 'CNAME', value: expect.stringMatching(/^t-[0-9a-f]+\.sites\.pages\.test$/) },
    { host: '_acme-challenge.docs', type: 'CNAME', value: '_acme-challenge.sites.pages.test' },
  ])

  // The first line alone: visitors would arrive, and no authority is asked.
  const orders = async (): Promise<boolean> => (await stack.admin('certificates')).stdout.includes('docs.customer.test')
  await follow(records.slice(0, 1))
  await expect.poll(() => domainAt(account, site, WILDCARD), soon).toMatchObject({ reason: 'delegation_missing' })
  const waiting = await domainAt(account, site, WILDCARD)
  expect(waiting.records).toMatchObject([{ action: 'add', name: '_acme-challenge.docs.customer.test' }])
  expect(waiting.detail).toContain('_acme-challenge.docs.customer.test')
  expect(await orders()).toBe(false)
  isRevoking = true
  await follow(waiting.records)
  await expect.poll(() => domainAt(account, site, WILDCARD), soon).toMatchObject({ state: 'active', records: [] })

  for (const host of ['a.docs.customer.test', 'b.docs.customer.test'])
    expect((await visit(host)).text()).toContain('<h1>The docs</h1>')
  const { names: certified, serial } = await certificateAt(stack.httpsPort, 'a.docs.customer.test')
  expect(certified).toBe('DNS:*.docs.customer.test')
  // Renewed by the same alias, without a gap.
  await expect
    .poll(async () => (await certificateAt(stack.httpsPort, 'a.docs.customer.test')).serial, soon)
    .not.toBe(serial)
  isRevoking = false
  expect((await visit('a.docs.customer.test')).status).toBe(200)

  // Neither the name itself nor what is two labels below it.
  for (const host of ['docs.customer.test', 'a.b.docs.customer.test'])
    await expect(visit(host)).rejects.toThrow(/cert/i)
  await expect.poll(() => names.txt('_acme-challenge.sites.pages.test'), soon).toEqual([])

  // A name of its own comes before the wildcard, and the wildcard is there again when it goes.
  const other = await publish(account, 'Another')
  const own = await call(account, `/${other}/domains`, 'POST', '{"domain":"own.docs.customer.test"}')
  await names.change(`add own.docs.customer.test. 60 CNAME ${own.json<DomainJson>().records[0]!.value}.`)
  const seenAt = async (host: string): Promise<string> => (await visit(host)).text()
  await expect.poll(() => seenAt('own.docs.customer.test'), soon).toContain('<h1>Another</h1>')
  await call(account, `/${other}/domains/own.docs.customer.test`, 'DELETE')
  await expect.poll(() => seenAt('own.docs.customer.test'), soon).toContain('<h1>The docs</h1>')

  expect((await call(account, `/${site}/domains/${encodeURIComponent(WILDCARD)}`, 'DELETE')).status).toBe(204)
  await expect
    .poll(
      () =>
        visit('a.docs.customer.test').then(
          (answer) => answer.status,
          () => 'none',
        ),
      soon,
    )
    .not.toBe(200)
})
