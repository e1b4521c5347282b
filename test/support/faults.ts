/** What the tests of faults have in common: drops that say who they are, publishers that check what they published. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Account, Published, Stack } from './stack.ts'
import type { Target, TrafficReport } from './traffic.ts'

/** Drops whose page names the drop, so that an answer of another one is noticed. */
export async function seedDrops(stack: Stack, account: Account, count: number): Promise<Published[]> {
  const drops: Published[] = []
  for (let index = 0; index < count; index++) {
    const site = (await stack.fetch('/api/v1/sites', { token: account.token, json: {} })).json<Published>()
    drops.push(await stack.publish(account, pageOf(site), site))
  }
  return drops
}

function pageOf({ slug }: Pick<Published, 'slug'>): string {
  return `<!doctype html><title>${slug}</title><p>ok ${slug}</p>${'<p>some more text to carry</p>'.repeat(100)}`
}

export function watchDrops(
  { httpsPort, ca, sitesDomain }: Stack,
  drops: readonly Published[],
): { port: number; ca: string; sitesDomain: string; targets: Target[] } {
  const targets = drops.map(({ slug }) => ({
    slug,
    expect: (answer: { status: number; body: string }) => answer.status === 200 && answer.body.includes(`ok ${slug}`),
  }))
  return { port: httpsPort, ca, sitesDomain, targets }
}

export interface PublishReport {
  readonly count: number
  readonly pending: number
  /** Answers that were not 201. */
  readonly failures: readonly string[]
  /** Visits right after a 201 (without `dropway-propagation: pending`) that showed an older page. */
  readonly stale: number
  /** Publishes that were answered 201 and are not live in the end. */
  readonly lost: readonly string[]
}

export interface Publisher {
  stop(): Promise<PublishReport>
}

interface PublisherOptions {
  /** Stop by itself after so many. */
  readonly count?: number
  readonly sites?: number
  /** Between two publishes to the same site; none unless told otherwise. */
  readonly pauseMs?: number
}

/** Publishes to a few sites again and again; each 201 is followed at once by a visit. */
export function publishUntil(stack: Stack, account: Account, options: PublisherOptions = {}): Publisher {
  const { count: limit = Number.POSITIVE_INFINITY, sites: parallel = 2, pauseMs = 0 } = options
  const failures: string[] = []
  const last = new Map<Published, string>()
  let stopped = false
  let count = 0
  let pending = 0
  let stale = 0

  async function publishOnce(site: Published): Promise<void> {
    const marker = `publish ${++count} of ${site.slug}`
    const body = new FormData()
    body.append('file', new File([`<title>x</title><p>${marker}.</p>`], 'index.html'))
    const answer = await stack
      .fetch(`/api/v1/sites/${site.id}/upload`, { token: account.token, body })
      .catch((error: unknown) => ({ status: 0, text: () => String(error), header: () => undefined }))
    if (answer.status !== 201) return void failures.push(`${answer.status} ${answer.text().slice(0, 120)}`)
    last.set(site, marker)
    if (answer.header('dropway-propagation') === 'pending') return void pending++
    if (!(await stack.visit(site.slug)).text().includes(`${marker}.`)) stale++
  }

  async function keepPublishing(): Promise<void> {
    const site = (await stack.fetch('/api/v1/sites', { token: account.token, json: {} })).json<Published>()
    while (!stopped && count < limit) {
      await publishOnce(site)
      if (pauseMs > 0) await sleep(pauseMs)
    }
  }

  const loops = Promise.all(Array.from({ length: parallel }, keepPublishing))
  return {
    async stop() {
      if (limit === Number.POSITIVE_INFINITY) stopped = true
      await loops
      const lost: string[] = []
      for (const [site, marker] of last) {
        if (!(await servesSoon(stack, site, `${marker}.`))) lost.push(marker)
      }
      return { count, pending, failures, stale, lost }
    },
  }
}

/** What was answered "pending" may take as long as the fault and a moment more. */
async function servesSoon(stack: Stack, { slug }: Published, text: string): Promise<boolean> {
  for (let attempt = 0; attempt < 50; attempt++) {
    if ((await stack.visit(slug)).text().includes(text)) return true
    await sleep(200)
  }
  return false
}

/** The line that says what was measured. */
export function figures(name: string, traffic: TrafficReport, published?: PublishReport): void {
  const parts = [
    `${traffic.requests} visits, ${traffic.failures.length} failed`,
    `p50 ${traffic.p50Ms.toFixed(1)} ms, p99 ${traffic.p99Ms.toFixed(1)} ms`,
    published &&
      `${published.count} publishes: ${published.failures.length} failed, ${published.pending} pending, ${published.stale} stale, ${published.lost.length} lost`,
  ]
  process.stdout.write(`${name}: ${parts.filter((part) => part !== undefined).join('; ')}\n`)
}
