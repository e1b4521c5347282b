/** The machine is lost, the backup is not: custom domains keep their certificates, and the CA is not asked again. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { request } from '../support/client.ts'
import { certificateAt } from '../support/custom-domains.ts'
import { startPebble, type Pebble } from '../support/pebble.ts'
import { freePorts, startStack, type Account, type OwnStack, type Published } from '../support/stack.ts'

const soon = { interval: 100 }
let directory: string
let pebble: Pebble
let env: Record<string, string>

beforeAll(async () => {
  const [httpPort, metricsPort] = (await freePorts(2)) as [number, number]
  directory = await mkdtemp(path.join(os.tmpdir(), 'dropway-backup-'))
  pebble = await startPebble({ challengePort: httpPort })
  env = {
    SECRET_KEY: randomBytes(32).toString('hex'),
    EDGE_HTTP_PORT: String(httpPort),
    METRICS_PORT: String(metricsPort),
    ACME_DIRECTORY_URL: pebble.directoryUrl,
    ACME_CA_FILE: pebble.caFile,
    DNS_RESOLVER: pebble.dnsResolver,
    DOMAIN_CHECK_INTERVAL: '200ms',
  }
})
afterAll(async () => {
  await pebble.stop()
  await rm(directory, { recursive: true, force: true })
})

test('a restored domain is served with its old certificate; the old account orders the next one', async () => {
  const lost = await startStack({ env })
  const account = await lost.createAccount('business')
  const site = await lost.publish(account, '<p>My own domain</p>')
  await activate(lost, account, site, 'shop.kept.test')
  const { serial } = await certificateAt(lost.httpsPort, 'shop.kept.test')
  expect(await lost.admin('backup', directory)).toMatchObject({ code: 0 })
  await lost.stop()

  const found = await startStack({ env })
  try {
    const restored = await found.admin('restore', '--backup', directory)
    expect(restored, restored.stderr).toMatchObject({ code: 0 })
    await expect.poll(() => certificateAt(found.httpsPort, 'shop.kept.test'), soon).toMatchObject({ serial })
    const url = `https://shop.kept.test:${found.httpsPort}/`
    const page = await request({ url, ca: await pebble.rootPem(), h2: true })
    expect([page.status, page.text()]).toEqual([200, expect.stringContaining('My own domain')])
    await activate(found, account, site, 'next.kept.test')
    expect(await pebble.accounts()).toBe(1)

    // By then the edge has looked at everything that is wanted.
    await expect.poll(() => metric('dropway_certificates_held'), soon).toBe(2)
    expect(await certificateAt(found.httpsPort, 'shop.kept.test')).toMatchObject({ serial })
    expect(await pebble.orders()).toBe(2)
  } finally {
    await found.stop()
  }
})

async function activate(stack: OwnStack, { token }: Account, { id }: Published, domain: string): Promise<void> {
  const domains = `/api/v1/sites/${id}/domains`
  const added = await stack.fetch(domains, { token, json: { domain } })
  expect(added.status).toBe(201)
  const { record } = added.json<{ record: { value: string } }>()
  await pebble.dns.a(record.value, '127.0.0.1')
  await pebble.dns.cname(domain, record.value)
  await expect
    .poll(async () => (await stack.fetch(`${domains}/${domain}`, { token })).json(), soon)
    .toMatchObject({ state: 'active' })
}

async function metric(name: string): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${env['METRICS_PORT']}/metrics`)
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(await answer.text())?.[1])
}
