/**
 * Publishing by many at once, and by one who has much.
 *
 * many      POST /drops of a page by 32 callers, half of them at each of two edges: acknowledged a second (bar: at least
 *           200), p99 (bar: 250 ms), turns with Redis for each (bar: 3)
 * beside    visitors of one drop, at a rate, alone and while one organisation publishes as fast as it can: how much longer
 *           the slowest of a hundred takes (bar: 1.5 ×)
 * huge      100,000 files in one zip: seconds (bar: 60) and what control's memory grows by (bar: 300 MB)
 */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import https from 'node:https'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { startCountedServices } from '../../test/support/counting/round-trips.ts'
import { quantile } from '../../test/support/figures.ts'
import { startProcess } from '../../test/support/fleet.ts'
import { cpuMs, residentMb } from '../../test/support/processes.ts'
import { startStack, type OwnStack } from '../../test/support/stack.ts'
import { writeZip } from './zip-file.ts'

const CALLERS = 32
const MANY_SECONDS = 10
const WARM_UP_SECONDS = 5
const VISITS_PER_SECOND = 200
const VISIT_SECONDS = 15
const BESIDE_PUBLISHERS = 16
const HUGE_FILES = 100_000
const SAMPLE_MS = 50

/** Settings of people who run it, and no limit on what comes from one address. */
const ENV = {
  JOB_INTERVAL: '',
  ANONYMOUS_PER_HOUR: '1000000',
  ANONYMOUS_NETWORK_STORAGE_MB: '100000',
  EDGE_REQUESTS_PER_IP: '10000000',
  EDGE_HANDSHAKES_PER_IP: '1000000',
  EDGE_CONNECTIONS_PER_IP: '100000',
  PLANS: 'unlimited',
} as const

export async function benchMany(): Promise<object> {
  const services = await startCountedServices()
  const stack = await startStack({ workers: 1, env: { ...ENV, ...services.env } })
  const second = await startProcess('second edge', 'edge/main.ts', {
    ...stack.env,
    ...services.env,
    BASE_URL: stack.baseUrl,
    CONTROL_URLS: `http://127.0.0.1:${stack.controlPort}`,
    EDGE_HTTPS_PORT: '0',
    EDGE_HTTP_PORT: '0',
    METRICS_PORT: '0',
    REPLICA_DIR: path.join(stack.dataDir, 'second-edge'),
  })
  try {
    const ports = [stack.httpsPort, second.port]
    await publishFor(stack, ports, CALLERS, WARM_UP_SECONDS)
    const before = services.turns()
    const control = stack.pids()['control']!
    const cpuBefore = cpuMs(control)
    const { taken, failures, elapsedMs } = await publishFor(stack, ports, CALLERS, MANY_SECONDS)
    const after = services.turns()
    const each = (count: number): number => round2(count / taken.length)
    return {
      callers: CALLERS,
      edges: ports.length,
      perSecond: Math.round((taken.length / elapsedMs) * 1000),
      p50Ms: Math.round(quantile(taken, 0.5)),
      p99Ms: Math.round(quantile(taken, 0.99)),
      failed: failures.length,
      ...(failures.length > 0 && { firstFailure: failures[0] }),
      controlCpuMs: each(cpuMs(control) - cpuBefore),
      turnsWithPostgres: each(after.postgres - before.postgres),
      turnsWithRedis: each(after.redisOfControl - before.redisOfControl),
    }
  } finally {
    await second.stop()
    await stack.stop()
    await services.stop()
  }
}

interface Published {
  /** Milliseconds of each publish that was acknowledged by all edges, sorted. */
  readonly taken: readonly number[]
  readonly failures: readonly string[]
  readonly elapsedMs: number
}

/** Callers that keep their connections, as assistants and the command line do. One without its acknowledgement failed. */
async function publishFor(
  { ca, baseUrl }: Pick<OwnStack, 'ca' | 'baseUrl'>,
  ports: readonly number[],
  callers: number,
  seconds: number,
): Promise<Published> {
  const taken: number[] = []
  const failures: string[] = []
  const startedAt = performance.now()
  const end = startedAt + seconds * 1000
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      const agent = new https.Agent({ keepAlive: true, maxSockets: 1, ca, servername: 'localhost' })
      const port = ports[caller % ports.length]!
      for (let page = 0; performance.now() < end; page++) {
        const sentAt = performance.now()
        const { failure } = await publishPage(agent, port, new URL(baseUrl).host, `${caller} ${page}`)
        if (failure === undefined) taken.push(performance.now() - sentAt)
        else failures.push(failure)
      }
      agent.destroy()
    }),
  )
  return { taken: taken.toSorted((a, b) => a - b), failures, elapsedMs: performance.now() - startedAt }
}

const BOUNDARY = 'dropway-bench-page'

/** One page without an account, or a version of a drop; says what was answered when all edges did not acknowledge it. */
export async function publishPage(agent: https.Agent, port: number, host: string, name: string, to?: Destination) {
  const html = `<!doctype html><title>Page ${name}</title><p>Small, ${process.hrtime.bigint()}.`
  const body = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="index.html"\r\ncontent-type: text/html\r\n\r\n${html}\r\n--${BOUNDARY}--\r\n`
  const request = https.request({
    agent,
    host: '127.0.0.1',
    port,
    method: 'POST',
    path: to ? `/api/v1/sites/${to.siteId}/upload` : '/api/v1/drops',
    headers: {
      host,
      'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
      'content-length': Buffer.byteLength(body),
      ...(to && { authorization: `Bearer ${to.token}` }),
    },
  })
  request.end(body)
  const [response] = (await once(request, 'response')) as [import('node:http').IncomingMessage]
  const said = Buffer.concat(await response.toArray()).toString()
  const isPending = response.headers['dropway-propagation'] === 'pending'
  const isDone = response.statusCode === 201 && !isPending
  return { failure: isDone ? undefined : isPending ? 'pending' : `${response.statusCode} ${said.slice(0, 200)}` }
}

interface Destination {
  readonly siteId: string
  readonly token: string
}

/** What the thread of the publishers is told. */
interface PublishersData {
  readonly ca: string
  readonly port: number
  readonly host: string
  readonly destinations: readonly Destination[]
}

/** Publishers have a thread of their own, so that visitors do not wait for the event loop of those who publish. */
if (!isMainThread && (workerData as PublishersData | null)?.destinations) await publishUntilTold(workerData)

async function publishUntilTold({ ca, port, host, destinations }: PublishersData): Promise<void> {
  let isOver = false
  let published = 0
  let failed = 0
  parentPort!.once('message', () => (isOver = true))
  await Promise.all(
    destinations.map(async (to) => {
      const agent = new https.Agent({ keepAlive: true, maxSockets: 1, ca, servername: 'localhost' })
      while (!isOver) {
        const { failure } = await publishPage(agent, port, host, to.siteId, to)
        if (failure === undefined) published += 1
        else failed += 1
      }
      agent.destroy()
    }),
  )
  parentPort!.postMessage({ published, failed })
}

export async function benchBeside(): Promise<object> {
  const stack = await startStack({ workers: 1, env: ENV })
  try {
    const account = await stack.createAccount('business')
    const visited = await stack.publish(account, '<!doctype html><title>Visited</title><p>Hello.')
    const destinations: Destination[] = []
    for (let index = 0; index < BESIDE_PUBLISHERS; index++) {
      const { id } = await stack.publish(account, `<!doctype html><title>${index}</title>`)
      destinations.push({ siteId: id, token: account.token })
    }
    const host = `${visited.slug}.${stack.sitesDomain}:${stack.httpsPort}`
    await visitsFor(stack, host, WARM_UP_SECONDS)
    const alone = await visitsFor(stack, host, VISIT_SECONDS)
    const data: PublishersData = {
      ca: stack.ca,
      port: stack.httpsPort,
      host: new URL(stack.baseUrl).host,
      destinations,
    }
    const publishers = new Worker(new URL(import.meta.url), { workerData: data })
    await sleep(WARM_UP_SECONDS * 1000)
    const beside = await visitsFor(stack, host, VISIT_SECONDS)
    publishers.postMessage('enough')
    const [{ published, failed }] = (await once(publishers, 'message')) as [{ published: number; failed: number }]
    const [p99Alone, p99Beside] = [quantile(alone, 0.99), quantile(beside, 0.99)]
    return {
      visitsPerSecond: VISITS_PER_SECOND,
      publishesPerMinute: Math.round((published / (WARM_UP_SECONDS + VISIT_SECONDS)) * 60),
      publishesFailed: failed,
      p99AloneMs: round2(p99Alone),
      p99BesideMs: round2(p99Beside),
      times: round2(p99Beside / p99Alone),
    }
  } finally {
    await stack.stop()
  }
}

/** Visits at a rate, whatever the ones before them take; each from when it was due. Sorted milliseconds. */
async function visitsFor({ ca, httpsPort }: OwnStack, host: string, seconds: number): Promise<number[]> {
  const agent = new https.Agent({ keepAlive: true, ca, servername: host.split(':')[0] })
  const taken: number[] = []
  const visits: Promise<void>[] = []
  const startedAt = performance.now()
  const visit = async (dueAt: number): Promise<void> => {
    const sent = https.get({ agent, host: '127.0.0.1', port: httpsPort, headers: { host } })
    const [response] = (await once(sent, 'response')) as [import('node:http').IncomingMessage]
    for await (const chunk of response) void chunk
    if (response.statusCode !== 200) throw new Error(`a visit was answered with ${response.statusCode}`)
    taken.push(performance.now() - dueAt)
  }
  for (let count = 0; count < VISITS_PER_SECOND * seconds; count++) {
    const dueAt = startedAt + (count * 1000) / VISITS_PER_SECOND
    const early = dueAt - performance.now()
    if (early > 0) await sleep(early)
    visits.push(visit(dueAt))
  }
  await Promise.all(visits)
  agent.destroy()
  return taken.toSorted((a, b) => a - b)
}

/** How a part uploads a file to a site: `uploadFile` of the bench that runs it. */
type Upload = (stack: OwnStack, account: { token: string }, file: string) => Promise<void>

/** Plans that allow as many files in a version as there may be at all. */
function writePlans(file: string): void {
  const plans = readFileSync(new URL('../../control/ground/terms/plans.json', import.meta.url), 'utf8')
  writeFileSync(file, plans.replaceAll(/"files_per_version": \d+/g, `"files_per_version": ${HUGE_FILES}`))
}

export async function benchHuge(work: string, upload: Upload): Promise<object> {
  const plansFile = path.join(work, 'plans.json')
  writePlans(plansFile)
  const stack = await startStack({ workers: 1, env: { ...ENV, PLANS: 'table', PLANS_FILE: plansFile } })
  try {
    const account = await stack.createAccount('business')
    const file = path.join(work, 'huge.zip')
    writeZip(
      file,
      HUGE_FILES,
      (index) => (index === 0 ? 'index.html' : `pages/${index % 400}/page-${index}.html`),
      (index) => Buffer.from(`<!doctype html><title>${index}</title><p>Page ${index}.`),
    )
    const control = stack.pids()['control']!
    const before = residentMb(control)
    let peak = before
    const sampling = setInterval(() => (peak = Math.max(peak, residentMb(control))), SAMPLE_MS)
    const startedAt = performance.now()
    await upload(stack, account, file).finally(() => clearInterval(sampling))
    const seconds = (performance.now() - startedAt) / 1000
    return {
      files: HUGE_FILES,
      seconds: round2(seconds),
      controlMbBefore: Math.round(before),
      controlMbGrowth: Math.round(peak - before),
    }
  } finally {
    await stack.stop()
  }
}

function round2(value: number): number {
  return Math.round(value * 100) / 100
}
