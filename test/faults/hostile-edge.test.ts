/**
 * One visitor does their worst at a worker that serves others too: the others hardly notice, the worker lives on, and
 * nothing is the server's fault. `FAULT_SLACK=5` where others use the machine.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { processTree, residentMb } from '../support/processes.ts'
import { startEdgeFixture, type Content, type EdgeFixture } from '../support/edge-fixture.ts'
import type { HostileOptions, HostileReport } from '../support/hostile-clients.ts'
import { startTraffic, type Traffic } from '../support/traffic.ts'

const SECONDS = Number(process.env['FAULT_SECONDS'] ?? 4)
const SLACK = Number(process.env['FAULT_SLACK'] ?? 1)
/** What is promised: others' worst wait, against their worst in peace. */
const WORST_FACTOR = 5
const WORST_EXTRA_MS = 250 * SLACK
const MAX_MEMORY_MB = 900

let fixture: EdgeFixture
let traffic: Traffic
let control: http.Server

const DEEP = '/a'.repeat(4000)
const METAS = 20_000

beforeAll(async () => {
  control = http.createServer((request, response) => {
    request.resume()
    request.once('end', () => response.end('answered'))
  })
  control.listen(0, '127.0.0.1')
  await once(control, 'listening')
  const { port } = control.address() as AddressInfo
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1', CONTROL_PORT: String(port) } })
  await fixture.publish('good.localhost', { 'index.html': '<p>ok</p>' })
  await fixture.publish('rules.localhost', { 'index.html': 'x' }, {}, manyRules())
  await fixture.publish('metas.localhost', manyPolicies(), { badge: true })
  await fixture.publish('headers.localhost', manyFiles(), {}, { headers: longHeaders() })
  traffic = startTraffic({
    port: fixture.edge.httpsPort,
    ca: fixture.ca(),
    sitesDomain: 'localhost',
    targets: [{ slug: 'good', expect: ({ status, body }) => status === 200 && body === '<p>ok</p>' }],
    perSecond: 100,
  })
  await sleep(1000)
})
afterAll(async () => {
  await traffic?.stop()
  await fixture?.stop()
  control?.closeAllConnections()
  control?.close()
})

function manyRules(): Parameters<EdgeFixture['publish']>[3] {
  const redirects = Array.from({ length: 2000 }, (_, index) => ({
    from: `/a*/:a/:b/:c/x${index}`,
    to: '/x',
    status: 301 as const,
    force: true,
    line: index + 1,
  }))
  const headers = Array.from({ length: 500 }, (_, index) => ({
    from: `/*/a/:a/a${index}`,
    set: [['x-a', '1'] as [string, string]],
    line: index + 1,
  }))
  // One that makes 280 times as much of a path as it was.
  const all = { from: '/splat/*', to: `/${':splat'.repeat(280)}`, status: 302 as const, force: true, line: 1 }
  const some = { from: '/some/*', to: `/${':splat'.repeat(16)}`, status: 302 as const, force: true, line: 1 }
  return { redirects: [...redirects, all, some], headers }
}

function manyPolicies(): Content {
  const start = '<!doctype html><head>'
  const meta = (index: number): string => `<meta http-equiv=content-security-policy content="img-src h${index}.test">`
  const policies: { policy: string; start: number; end: number }[] = []
  let page = start
  for (let index = 0; index < METAS; index++) {
    const policy = `img-src h${index}.test`
    const from = page.length + meta(index).indexOf('"') + 1
    policies.push({ policy, start: from, end: from + policy.length })
    page += meta(index)
  }
  const head = page.length
  page += '</head><body>'
  return { 'index.html': { body: page, injection: { head, body: page.length, csp: policies } } }
}

function manyFiles(): Content {
  return Object.fromEntries(Array.from({ length: 1500 }, (_, index) => [`f${index}.txt`, 'same']))
}

/** 900 kB for every file, as no one can be sent. */
function longHeaders(): NonNullable<Parameters<EdgeFixture['publish']>[3]>['headers'] {
  return Array.from({ length: 450 }, (_, index) => ({
    from: '/*',
    set: [[`x-${index}`, 'v'.repeat(1900)] as [string, string]],
    line: index + 1,
  }))
}

async function attack(options: Pick<HostileOptions, 'kind' | 'host' | 'targets' | 'streams'>): Promise<HostileReport> {
  const given = { ...options, seconds: SECONDS, port: fixture.edge.httpsPort, ca: fixture.ca() }
  const program = path.join(import.meta.dirname, '../support/hostile-clients.ts')
  const child = fork(program, [JSON.stringify(given)], { execArgv: [] })
  const [report] = (await once(child, 'message')) as [HostileReport]
  return report
}

function memoryOf({ edge }: EdgeFixture): string {
  return `${processTree(edge.pid)
    .map((pid) => residentMb(pid).toFixed(0))
    .join(' + ')} MB`
}

const ATTACKS: readonly {
  readonly name: string
  readonly by: Parameters<typeof attack>[0]
  /** What the attacker may be answered; 429: their network asks for too much; 0: the connection ended. */
  readonly answers: readonly number[]
}[] = [
  {
    name: 'thousands of patterns and a path of 8 kB',
    by: { kind: 'paths', host: 'rules.localhost', targets: [`${DEEP}/b`, `/${'a'.repeat(8000)}`], streams: 24 },
    answers: [404, 429],
  },
  {
    name: 'a path of 8 kB that is nowhere',
    by: { kind: 'paths', host: 'good.localhost', targets: [DEEP, `${DEEP}/`], streams: 120 },
    answers: [404, 429],
  },
  {
    name: 'accents in their thousands',
    by: {
      kind: 'paths',
      host: 'good.localhost',
      targets: [`/a${encodeURIComponent('\u0301'.repeat(600) + '\u0323'.repeat(600))}`],
      streams: 100,
    },
    answers: [404, 429],
  },
  {
    name: 'a redirect that makes a long address of a long one',
    by: {
      kind: 'paths',
      host: 'rules.localhost',
      targets: [`/splat/${'b'.repeat(8000)}`, `/some/${'b'.repeat(8000)}`],
      streams: 24,
    },
    answers: [400, 404, 429],
  },
  {
    name: 'a page of many policies',
    by: { kind: 'paths', host: 'metas.localhost', targets: ['/'], streams: 8 },
    answers: [200, 429],
  },
  { name: 'requests sent ahead', by: { kind: 'pipelined', host: 'good.localhost' }, answers: [200, 429, 0] },
  { name: 'a body in one-byte chunks', by: { kind: 'one-byte chunks', host: 'localhost' }, answers: [400, 0] },
  { name: 'a body in one-byte frames', by: { kind: 'one-byte frames', host: 'localhost' }, answers: [0] },
  {
    name: 'targets that proxies stumble over',
    by: { kind: 'paths', host: 'localhost', targets: ['//a@[/', '/%', '//[', '/\\'], streams: 50 },
    answers: [200, 429, 503],
  },
]

test.each(ATTACKS)('$name', async ({ name, by, answers }) => {
  const [worker] = processTree(fixture.edge.pid).slice(1)
  traffic.take()
  await sleep(2000)
  const calm = traffic.take()
  const { statuses } = await attack(by)
  const during = traffic.take()
  process.stdout.write(
    `${name}: worst ${during.maxMs.toFixed(0)} ms, before ${calm.maxMs.toFixed(0)} ms; attacker ${JSON.stringify(statuses)}; ${memoryOf(fixture)}\n`,
  )
  expect(fixture.edge.output()).not.toContain('a worker')
  expect(during.failures).toEqual([])
  expect(during.requests).toBeGreaterThan(20)
  expect(during.maxMs).toBeLessThanOrEqual(WORST_FACTOR * calm.maxMs + WORST_EXTRA_MS)
  for (const status of Object.keys(statuses)) expect(answers, status).toContain(Number(status))
  expect(processTree(fixture.edge.pid)).toContain(worker)
})

test('headers that cannot be sent are a clear 500, and cost no memory', async () => {
  const targets = Array.from({ length: 1500 }, (_, index) => `/f${index}.txt`)
  const { statuses } = await attack({ kind: 'paths', host: 'headers.localhost', targets, streams: 100 })
  expect(Object.keys(statuses).filter((status) => status !== '429')).toEqual(['500'])
  process.stdout.write(`headers that cannot be sent: attacker ${JSON.stringify(statuses)}; ${memoryOf(fixture)}\n`)
  const memory = processTree(fixture.edge.pid).reduce((sum, pid) => sum + residentMb(pid), 0)
  expect(memory).toBeLessThan(MAX_MEMORY_MB)
  for (const protocol of ['h1', 'h2'] as const) {
    const answer = await fixture[protocol]('headers.localhost', '/f1.txt')
    expect(answer.status).toBe(500)
    expect(answer.text).toContain('err_')
  }
})
