/**
 * A mixed load on the whole stack: visitors over h1 and h2 whose interest in 10,000 drops follows Zipf's law, and
 * publishers. Latencies, failures, and what each process spends.
 */
import { once } from 'node:events'
import http2 from 'node:http2'
import https from 'node:https'
import { startStack, type Account, type OwnStack, type Published } from '../../test/support/stack.ts'
import { cpuMs, residentMb } from '../../test/support/processes.ts'
import { quantile } from '../../test/support/figures.ts'
import type { BenchValues } from '../benches.ts'
import { createProgress, type Progress } from '../progress.ts'
import type { Results } from '../results.ts'
import { createZipf } from '../zipf.ts'

/** All drops below one wildcard certificate, so that one connection may ask for many of them, as a crawler's does. */
const SITES_DOMAIN = 'drops.test'
const SEEDING = 16
const PUBLISHED_SITES = 8

type Told = BenchValues<'mixed'>

export async function run(told: Told, results: Results): Promise<void> {
  const progress = createProgress()
  progress.show('starting a stack')
  const stack = await startStack({
    workers: 2,
    env: {
      SITES_DOMAIN,
      ANONYMOUS_PER_HOUR: '1000000',
      UPLOADS_PER_HOUR: '1000000',
      EDGE_REQUESTS_PER_IP: '10000000',
      EDGE_HANDSHAKES_PER_IP: '1000000',
      EDGE_CONNECTIONS_PER_IP: '100000',
    },
  })
  try {
    const { figures, failures } = await measure(stack, told, progress)
    progress.clear()
    process.stdout.write(`${JSON.stringify(figures, undefined, 2)}\n`)
    for (const failure of failures.slice(0, 5)) process.stdout.write(`failed: ${failure}\n`)
    results.judge({ row: 'visits and publishes that failed', figure: failures.length, unit: '', bar: 0 })
    results.keep(figures)
  } finally {
    await stack.stop()
  }
}

async function measure(stack: OwnStack, told: Told, progress: Progress) {
  const slugs = await seed(stack, told.drops, progress)
  const account = await stack.createAccount('business')
  const sites = await Promise.all(Array.from({ length: PUBLISHED_SITES }, () => stack.publish(account, page('first'))))
  const before = spending(stack)
  const startedAt = performance.now()
  const { visits, publishes, failures } = await drive(stack, slugs, account, sites, told, progress)
  const elapsedMs = performance.now() - startedAt
  const after = spending(stack)
  const cores = Object.entries(after).map(([name, spent]) => [
    name,
    Math.round(((spent - (before[name] ?? 0)) / elapsedMs) * 100) / 100,
  ])
  const figures = {
    drops: slugs.length,
    seconds: told.seconds,
    clients: told.clients,
    visits: latencies(visits, elapsedMs),
    publishes: latencies(publishes, elapsedMs),
    failures: failures.length,
    cores: Object.fromEntries(cores),
    residentMb: Object.fromEntries(
      Object.entries(stack.pids()).map(([name, pid]) => [name, Math.round(residentMb(pid))]),
    ),
  }
  return { figures, failures }
}

function page(text: string): string {
  return `<!doctype html><title>${text}</title>${`<p>${text}, and some more to read.</p>`.repeat(100)}`
}

/** Anonymous drops: no plan limits their number. */
async function seed({ fetch }: OwnStack, count: number, progress: Progress): Promise<string[]> {
  const slugs: string[] = []
  let next = 0
  const seedSome = async (): Promise<void> => {
    while (next < count) {
      const number = next++
      const answer = await fetch('/api/v1/drops-md', { json: { markdown: `# Drop ${number}\n\nSome text.` } })
      if (answer.status !== 201) throw new Error(`seeding: ${answer.status} ${answer.text()}`)
      slugs.push(answer.json<Published>().slug)
      progress.show(`${slugs.length} of ${count} drops are published`)
    }
  }
  await Promise.all(Array.from({ length: SEEDING }, seedSome))
  return slugs
}

interface Driven {
  readonly visits: number[]
  readonly publishes: number[]
  readonly failures: string[]
}

async function drive(
  { httpsPort, ca, fetch }: OwnStack,
  slugs: readonly string[],
  account: Account,
  sites: readonly Published[],
  { seconds, clients, publishes: share }: Told,
  progress: Progress,
): Promise<Driven> {
  const result: Driven = { visits: [], publishes: [], failures: [] }
  const end = performance.now() + seconds * 1000
  const rank = createZipf(slugs.length, Math.random)

  async function publish(): Promise<void> {
    const site = sites[Math.floor(Math.random() * sites.length)]!
    const body = new FormData()
    body.append('file', new File([page(String(Math.random()))], 'index.html'))
    const answer = await fetch(`/api/v1/sites/${site.id}/upload`, { token: account.token, body })
    if (answer.status !== 201) throw new Error(`publish: ${answer.status} ${answer.text().slice(0, 100)}`)
  }

  async function timed(into: number[], work: () => Promise<void>): Promise<void> {
    const startedAt = performance.now()
    try {
      await work()
    } catch (error) {
      result.failures.push((error as Error).message)
    }
    into.push(performance.now() - startedAt)
  }

  const show = (): void =>
    progress.show(
      `${Math.max(0, Math.round((end - performance.now()) / 1000))} s left: ${result.visits.length} visits, ` +
        `${result.publishes.length} publishes, ${result.failures.length} failures`,
    )

  async function client(index: number): Promise<void> {
    const visitor = index % 2 === 0 ? connectH2(httpsPort, ca) : connectH1(httpsPort, ca)
    while (performance.now() < end) {
      if (Math.random() < share) await timed(result.publishes, publish)
      else await timed(result.visits, () => visitor.visit(`${slugs[rank()]!}.${SITES_DOMAIN}`))
    }
    visitor.close()
  }

  const showing = setInterval(show, 1000)
  await Promise.all(Array.from({ length: clients }, (_, index) => client(index)))
  clearInterval(showing)
  return result
}

interface Visitor {
  visit(host: string): Promise<void>
  close(): void
}

function connectH2(port: number, ca: string): Visitor {
  const session = http2.connect(`https://127.0.0.1:${port}`, { servername: `any.${SITES_DOMAIN}`, ca })
  session.on('error', () => {})
  return {
    async visit(host) {
      const stream = session.request({ ':path': '/', ':authority': host, 'accept-encoding': 'br, gzip' })
      const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
      for await (const chunk of stream) void chunk
      if (Number(headers[':status']) !== 200) throw new Error(`${host} answered ${headers[':status']}`)
    },
    close: () => session.close(),
  }
}

function connectH1(port: number, ca: string): Visitor {
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1 })
  return {
    async visit(host) {
      const sent = https.get({
        agent,
        ca,
        host: '127.0.0.1',
        port,
        servername: `any.${SITES_DOMAIN}`,
        headers: { host, 'accept-encoding': 'br, gzip' },
      })
      const [response] = (await once(sent, 'response')) as [import('node:http').IncomingMessage]
      for await (const chunk of response) void chunk
      if (response.statusCode !== 200) throw new Error(`${host} answered ${response.statusCode}`)
    },
    close: () => agent.destroy(),
  }
}

function spending({ pids }: OwnStack): Record<string, number> {
  const own = Object.entries(pids()).filter(([name]) => name !== 'supervisor')
  const { user, system } = process.cpuUsage()
  return Object.fromEntries([...own.map(([name, pid]) => [name, cpuMs(pid)]), ['generator', (user + system) / 1000]])
}

function latencies(taken: readonly number[], elapsedMs: number): object {
  const sorted = taken.toSorted((a, b) => a - b)
  const ms = (share: number): number => Math.round(quantile(sorted, share) * 10) / 10
  return {
    count: sorted.length,
    perSecond: Math.round((sorted.length / elapsedMs) * 1000),
    p50Ms: ms(0.5),
    p99Ms: ms(0.99),
    p999Ms: ms(0.999),
  }
}
