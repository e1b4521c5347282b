/**
 * No record, manifest, certificate, stream entry or blob harms another host. Two real edges on a real Redis are fed news
 * of which most is broken (support/broken-entries.ts), while visitors keep coming to other hosts and publishers go on.
 *
 * `FAULT_ENTRIES=1000000 npm run test:faults -- fail-small` feeds a million; `SEED=<seed>` the same once more.
 */
import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createNews, type News, type NewsSource } from '../support/broken-entries.ts'
import { requestH1, startEdgeFixture, type EdgeFixture, type EdgeProcess } from '../support/edge-fixture.ts'
import { startFleet } from '../support/fleet.ts'
import { startTraffic, type Traffic } from '../support/traffic.ts'

const ENTRIES = Number(process.env['FAULT_ENTRIES'] ?? 20_000)
const SEED = Number(process.env['SEED'] ?? randomInt(2 ** 30))
const NAMED_WITHIN_MS = 1000 * Number(process.env['FAULT_SLACK'] ?? 1)
const BATCH = 500
/** Edges are not left behind further than their log reaches back. */
const BATCHES_PER_PROBE = 20
const ENTRIES_PER_SECOND_AT_LEAST = 100
const GOOD_HOSTS = 10
const OTHER_HOSTS = 200

let fixture: EdgeFixture
let edges: EdgeProcess[]
let news: NewsSource
let traffic: Traffic[]
const goodHosts = Array.from({ length: GOOD_HOSTS }, (_, index) => `good-${index}.localhost`)
const hosts = Array.from({ length: OTHER_HOSTS }, (_, index) => `fuzz-${index}.localhost`)

beforeAll(async () => {
  fixture = await startEdgeFixture({
    env: {
      EDGE_WORKERS: '1',
      METRICS_PORT: '0',
      EDGE_REQUESTS_PER_IP: '1000000',
      EDGE_HANDSHAKES_PER_IP: '100000',
      EDGE_CONNECTIONS_PER_IP: '100000',
    },
  })
  edges = [fixture.edge, await fixture.startEdge({ REPLICA_DIR: `${fixture.dataDir}/second` })]
  while ((await fixture.edgeIds()).length < 2) await sleep(50)
  for (const host of goodHosts) await fixture.publish(host, { 'index.html': `ok ${host}` })
  const manifest = await fixture.store({ 'index.html': 'fuzz' })
  const secretKey = readFileSync(`${fixture.dataDir}/secret.key`, 'utf8').trim()
  news = createNews({ seed: SEED, secretKey, dataDir: fixture.dataDir, hosts, others: goodHosts, manifest })
  traffic = edges.map(({ httpsPort: port }) =>
    startTraffic({
      port,
      ca: fixture.ca(),
      sitesDomain: 'localhost',
      perSecond: 20,
      targets: goodHosts.slice(1).map((host) => ({
        slug: host.replace('.localhost', ''),
        expect: ({ status, body }) => status === 200 && body.includes(`ok ${host}`),
      })),
    }),
  )
})
afterAll(async () => {
  await Promise.all((traffic ?? []).map((each) => each.stop()))
  await fixture?.stop()
})

const metricsOf = async ({ metricsPort }: EdgeProcess) =>
  (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
const visit = (edge: EdgeProcess, host: string) => requestH1(edge.httpsPort, fixture.ca(), host, '/', {})

async function feed(batch: readonly News[]): Promise<string> {
  const pipeline = fixture.redis.pipeline()
  for (const { fields, snapshot } of batch) {
    if (snapshot) pipeline.hset(`{dropway}:${snapshot[0]}`, snapshot[1], snapshot[2])
    pipeline.xadd('{dropway}:routes:log', 'MAXLEN', '~', 100_000, '*', ...fields)
  }
  const results = await pipeline.exec()
  const failed = results?.find(([error]) => error)
  if (!results || failed) throw failed?.[0] ?? new Error('Redis is away')
  return results.at(-1)![1] as string
}

/** How long both edges take to name a host whose news is broken, and to stop naming it once it is mended. */
async function probe(count: number): Promise<number> {
  const host = 'bad.localhost'
  const good = await fixture.publish(host, { 'index.html': `good ${count}` })
  const isNamed = async () =>
    (await Promise.all(edges.map(metricsOf))).map((text) => text.includes(`{kind="route",name="${host}"} 1`))
  const startedAt = performance.now()
  await fixture.log({ kind: 'route', name: host, value: JSON.stringify({ ...good, revision: 0 }) })
  while ((await isNamed()).includes(false)) await sleep(20)
  const namedAfterMs = performance.now() - startedAt
  for (const edge of edges) expect((await visit(edge, host)).text).toBe(`good ${count}`)
  await fixture.publish(host, { 'index.html': `mended ${count}` })
  expect(await isNamed()).toEqual([false, false])
  for (const edge of edges) expect((await visit(edge, host)).text).toBe(`mended ${count}`)
  return namedAfterMs
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!
}

/** Visitors of what was broken get an answer, whatever it is. */
async function visitBroken(): Promise<void> {
  for (const edge of edges)
    for (let count = 0; count < 5; count++)
      expect((await visit(edge, hosts[randomInt(hosts.length)]!)).status).toBeGreaterThanOrEqual(200)
}

test(
  `${ENTRIES} entries, most of them broken, cost no other host anything (seed ${SEED})`,
  { timeout: 120_000 + (ENTRIES / ENTRIES_PER_SECOND_AT_LEAST) * 1000 },
  async () => {
    const startedAt = performance.now()
    const named: number[] = []
    let last = ''
    for (let sent = 0, batches = 0; sent < ENTRIES; sent += BATCH, batches++) {
      for (let count = 0; count < 2; count++) news.addManifest(await fixture.putBlob(news.brokenManifest()))
      last = await feed(Array.from({ length: Math.min(BATCH, ENTRIES - sent) }, () => news.next()))
      if (batches % BATCHES_PER_PROBE !== 0) continue
      while (!(await fixture.reached(last)))
        expect(edges.map(({ process: { exitCode } }) => exitCode)).toEqual([null, null])
      named.push(await probe(batches))
      await visitBroken()
      if (sent % 100_000 < BATCH * BATCHES_PER_PROBE)
        process.stdout.write(`${sent} entries after ${Math.round((performance.now() - startedAt) / 1000)} s\n`)
    }
    while (!(await fixture.reached(last))) await sleep(100)

    const reports = traffic.map((each) => each.take())
    const metrics = await Promise.all(edges.map(metricsOf))
    const worst = Math.max(...named)
    process.stdout.write(
      `${ENTRIES} entries in ${Math.round((performance.now() - startedAt) / 1000)} s, ${reports.reduce((sum, { requests }) => sum + requests, 0)} visits, bad host named after ${Math.round(median(named))} ms, ${Math.round(worst)} ms at most, seed ${SEED}\n`,
    )
    expect(reports.flatMap(({ failures }) => failures).slice(0, 5)).toEqual([])
    for (const text of metrics) expect(text).toContain('dropway_edge_worker_restarts 0')
    for (const { output } of edges) expect(output()).not.toMatch(/a worker died|stray|too slow|does not answer/)
    expect(worst).toBeLessThan(NAMED_WITHIN_MS)
  },
)

test('an edge that starts with such a snapshot serves every other host', async () => {
  const third = await fixture.startEdge({ REPLICA_DIR: `${fixture.dataDir}/third` })
  for (const host of goodHosts) expect((await visit(third, host)).text).toBe(`ok ${host}`)
  for (const host of hosts) expect((await visit(third, host)).status).toBeGreaterThanOrEqual(200)
  expect(await metricsOf(third)).toContain('dropway_edge_worker_restarts 0')
  expect(await third.stop()).toBe(0)
})

test('an upload that one edge cannot serve is answered 503 and taken back; without that edge it goes through', async () => {
  const fleet = await startFleet({ edges: 1, controls: 1 })
  try {
    const account = await fleet.createAccount('plus')
    const site = await fleet.publish(account, '<title>one</title><p>one</p>')
    const upload = (text: string) => {
      const body = new FormData()
      body.append('file', new File([`<title>${text}</title><p>${text}</p>`], 'index.html'))
      return fleet.fetch(`/api/v1/sites/${site.id}/upload`, { token: account.token, body })
    }
    const live = async () => {
      const answer = await fleet.fetch(`/api/v1/sites/${site.id}/versions`, { token: account.token })
      return answer.json<{ version_number: number; live: boolean }[]>().filter((version) => version.live)
    }
    // Its blob store is another one than everyone else's, and empty.
    const blind = await fleet.addEdge({ BLOB_STORE: `file:${fleet.dataDir}/nothing` })
    fleet.balancer.setTargets([fleet.edges[0]!.port])
    const refused = await upload('two')
    expect([refused.status, refused.json<{ error: string }>().error]).toEqual([503, 'not_served'])
    expect((await fleet.visit(site.slug)).text()).toContain('<p>one</p>')
    expect(await live()).toMatchObject([{ version_number: 1 }])

    await fleet.removeEdge(blind)
    const published = await upload('three')
    expect([published.status, published.header('dropway-propagation')]).toEqual([201, undefined])
    expect((await fleet.visit(site.slug)).text()).toContain('<p>three</p>')
    expect(await live()).toMatchObject([{ version_number: 3 }])
  } finally {
    await fleet.stop()
  }
})
