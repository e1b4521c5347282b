/**
 * A mixed load on the whole stack: visitors over h1 and h2 whose interest in 10,000 drops follows Zipf's law, and
 * publishers. Latencies, failures, and what each process spends.
 *
 *   npm run bench:mixed [-- --drops 10000] [--seconds 20] [--clients 32] [--publishes 0.05]
 */
import { once } from 'node:events'
import http2 from 'node:http2'
import https from 'node:https'
import { parseArgs } from 'node:util'
import { startStack, type Account, type OwnStack, type Published } from '../../test/support/stack.ts'
import { cpuMs, residentMb } from '../../test/support/processes.ts'
import { keepResult } from '../results.ts'
import { quantile } from '../../test/support/figures.ts'

/** All drops below one wildcard certificate, so that one connection may ask for many of them, as a crawler's does. */
const SITES_DOMAIN = 'drops.test'
const SEEDING = 16
const PUBLISHED_SITES = 8

const { values } = parseArgs({
  options: {
    drops: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '20' },
    clients: { type: 'string', default: '32' },
    publishes: { type: 'string', default: '0.05' },
  },
})
const seconds = Number(values.seconds)

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
  const slugs = await seed(stack, Number(values.drops))
  const account = await stack.createAccount('business')
  const sites = await Promise.all(Array.from({ length: PUBLISHED_SITES }, () => stack.publish(account, page('first'))))
  const before = spending(stack)
  const startedAt = performance.now()
  const { visits, publishes, failures } = await drive(stack, slugs, account, sites)
  const elapsedMs = performance.now() - startedAt
  const after = spending(stack)
  const figures = {
    drops: slugs.length,
    seconds,
    clients: Number(values.clients),
    visits: latencies(visits, elapsedMs),
    publishes: latencies(publishes, elapsedMs),
    failures: failures.length,
    cores: Object.fromEntries(
      Object.entries(after).map(([name, spent]) => [
        name,
        Math.round(((spent - before[name]!) / elapsedMs) * 100) / 100,
      ]),
    ),
    residentMb: Object.fromEntries(
      Object.entries(stack.pids()).map(([name, pid]) => [name, Math.round(residentMb(pid))]),
    ),
  }
  process.stdout.write(`${JSON.stringify(figures, undefined, 2)}\n`)
  for (const failure of failures.slice(0, 5)) process.stdout.write(`failed: ${failure}\n`)
  keepResult('mixed', figures)
  if (failures.length > 0) process.exitCode = 1
} finally {
  await stack.stop()
}

function page(text: string): string {
  return `<!doctype html><title>${text}</title>${`<p>${text}, and some more to read.</p>`.repeat(100)}`
}

/** Anonymous drops: no plan limits their number. */
async function seed({ fetch }: OwnStack, count: number): Promise<string[]> {
  const slugs: string[] = []
  let next = 0
  const seedSome = async (): Promise<void> => {
    while (next < count) {
      const number = next++
      const answer = await fetch('/api/v1/drops-md', { json: { markdown: `# Drop ${number}\n\nSome text.` } })
      if (answer.status !== 201) throw new Error(`seeding: ${answer.status} ${answer.text()}`)
      slugs.push(answer.json<Published>().slug)
      if (slugs.length % 500 === 0) process.stderr.write(`\r${slugs.length} of ${count} drops`)
    }
  }
  await Promise.all(Array.from({ length: SEEDING }, seedSome))
  process.stderr.write('\n')
  return slugs
}

/** Rank r is asked for in proportion to 1/r: an even random number is mapped to a rank by the law's inverse. */
function zipf(count: number): () => number {
  const total = Math.log(count + 1)
  return () => Math.min(count - 1, Math.floor(Math.exp(Math.random() * total)) - 1)
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
): Promise<Driven> {
  const result: Driven = { visits: [], publishes: [], failures: [] }
  const end = performance.now() + seconds * 1000
  const rank = zipf(slugs.length)
  const share = Number(values.publishes)

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

  async function client(index: number): Promise<void> {
    const visitor = index % 2 === 0 ? connectH2(httpsPort, ca) : connectH1(httpsPort, ca)
    while (performance.now() < end) {
      if (Math.random() < share) await timed(result.publishes, publish)
      else await timed(result.visits, () => visitor.visit(`${slugs[rank()]!}.${SITES_DOMAIN}`))
    }
    visitor.close()
  }

  await Promise.all(Array.from({ length: Number(values.clients) }, (_, index) => client(index)))
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
