/**
 * Tabs that wait for newer versions: 10,000 streams of events, each on a connection of its own, divided between two
 * edges. What each takes of its edge's memory, and how soon after a publish was acknowledged the tabs have heard of it;
 * those that heard before count as 0. Says at the end whether the bars hold.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { apiFor, fileForm } from '../../test/support/api.ts'
import { quantile } from '../../test/support/figures.ts'
import { startFleet, type Fleet } from '../../test/support/fleet.ts'
import { processTree, residentMb } from '../../test/support/processes.ts'
import type { Account } from '../../test/support/stack.ts'
import type { BenchValues } from '../benches.ts'
import { createProgress, type Progress } from '../progress.ts'
import type { Results } from '../results.ts'
import type { HeardCommand, StreamHolderOptions, StreamHolderReport } from './stream-holder.ts'

const HOLDER = path.join(import.meta.dirname, 'stream-holder.ts')
/** One process would be busy with its own connections when it ought to note what it hears. */
const HOLDERS_PER_EDGE = 2
/** Until garbage of the handshakes is collected and buffers are given back. */
const SETTLE_MS = 5000
const EDGES = 2
const PROTOCOLS = ['h2', 'h1'] as const
const BARS = { kbPerStream: 60, p99Ms: 1000, missing: 0 } as const

interface Course extends BenchValues<'streams'> {
  readonly fleet: Fleet
  readonly account: Account
  readonly progress: Progress
}

interface Figures {
  readonly kbPerStream: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Events that a tab waited for in vain. */
  readonly missing: number
}

export async function run(values: BenchValues<'streams'>, results: Results): Promise<void> {
  const progress = createProgress()
  progress.show('starting two edges')
  const fleet = await startFleet({ edges: EDGES, controls: 1, env: { TRUSTED_PROXIES: '127.0.0.1' } })
  try {
    const account = await fleet.createAccount('business')
    const figures: Record<string, Figures> = {}
    let isMet = true
    for (const protocol of PROTOCOLS.filter((each) => values.only.includes(each))) {
      figures[protocol] = await measure({ ...values, fleet, account, progress }, protocol)
      progress.clear()
      isMet = judge(protocol, figures[protocol]) && isMet
    }
    results.keep({ streams: values.streams, publishes: values.publishes, edges: EDGES, figures, bars: BARS })
    if (!isMet) process.exitCode = 1
  } finally {
    await fleet.stop()
  }
}

async function measure(course: Course, protocol: StreamHolderOptions['protocol']): Promise<Figures> {
  const { fleet, account, streams, publishes, progress } = course
  const api = apiFor(fleet, account)
  const slug = `streams-${protocol}`
  const site = (await api.create({ slug })).json<{ id: string }>()
  const publish = async (): Promise<number> => {
    const answer = await api.upload(site.id, fileForm('index.html', '<h1>Hello</h1>'))
    if (answer.status !== 201) throw new Error(answer.text())
    return answer.json<{ version_number: number }>().version_number
  }
  await publish()
  const { pass } = (await fleet.fetch(`/review/${slug}/pass`, { token: account.token })).json<{ pass: string }>()
  // What the first streams take once is not theirs.
  const first = await hold(course, protocol, `/review/${slug}/events?pass=${pass}`, HOLDERS_PER_EDGE * EDGES * 50)
  await sleep(SETTLE_MS)
  const before = memoryKb(fleet)
  progress.show(`${streams} streams of ${protocol}`)
  const tabs = await hold(course, protocol, `/review/${slug}/events?pass=${pass}`, streams)
  await sleep(SETTLE_MS)
  const kbPerStream = (memoryKb(fleet) - before) / streams
  const lateMs: number[] = []
  let missing = 0
  for (let publishing = 1; publishing <= publishes; publishing++) {
    progress.show(`${protocol}: publish ${publishing} of ${publishes}`)
    const version = await publish()
    const sinceMs = performance.timeOrigin + performance.now()
    for (const report of await Promise.all(tabs.map((tab) => tab.heard({ version, sinceMs })))) {
      lateMs.push(...report.lateMs)
      missing += report.missing
    }
  }
  await Promise.all([...first, ...tabs].map((tab) => tab.end()))
  const sorted = lateMs.toSorted((a, b) => a - b)
  return {
    kbPerStream: round(kbPerStream),
    p50Ms: round(quantile(sorted, 0.5)),
    p99Ms: round(quantile(sorted, 0.99)),
    missing,
  }
}

interface Holder {
  heard(command: HeardCommand): Promise<Extract<StreamHolderReport, { kind: 'heard' }>>
  end(): Promise<void>
}

/** As many at each edge, none through the balancer, whose own memory and time are not asked for. */
async function hold(
  { fleet }: Course,
  protocol: StreamHolderOptions['protocol'],
  path: string,
  streams: number,
): Promise<Holder[]> {
  const host = new URL(fleet.baseUrl).hostname
  const count = Math.ceil(streams / (EDGES * HOLDERS_PER_EDGE))
  const wanted = fleet.edges.flatMap(({ port }) => Array.from({ length: HOLDERS_PER_EDGE }, () => port))
  return Promise.all(
    wanted.map((port, index) => openHolder({ port, host, path, protocol, count, from: index * count })),
  )
}

async function openHolder(options: StreamHolderOptions): Promise<Holder> {
  const child = fork(HOLDER, [JSON.stringify(options)], { execArgv: [] })
  const gone = once(child, 'exit').then(() => Promise.reject(new Error('tabs were lost with their process')))
  gone.catch(() => {})
  const report = async (): Promise<StreamHolderReport> =>
    ((await Promise.race([once(child, 'message'), gone])) as [StreamHolderReport])[0]
  const opened = await report()
  if (opened.kind !== 'open' || opened.open < options.count) {
    await ended(child)
    throw new Error(`not all of ${options.count} streams opened: ${JSON.stringify(opened)}`)
  }
  return {
    async heard(command) {
      child.send(command)
      return (await report()) as Extract<StreamHolderReport, { kind: 'heard' }>
    },
    end: () => ended(child),
  }
}

async function ended(child: ChildProcess): Promise<void> {
  child.kill()
  await once(child, 'exit')
}

function judge(protocol: string, figures: Figures): boolean {
  const rows = [
    ['kB per stream', figures.kbPerStream, BARS.kbPerStream],
    ['p99 ms from acknowledged to heard', figures.p99Ms, BARS.p99Ms],
    ['events missed', figures.missing, BARS.missing],
  ] as const
  for (const [what, figure, bar] of rows)
    process.stdout.write(`${protocol} ${what}: ${figure} (bar ${bar})  ${figure <= bar ? 'met' : 'MISSED'}\n`)
  return rows.every(([, figure, bar]) => figure <= bar)
}

function memoryKb({ edges }: Fleet): number {
  return edges.flatMap(({ pid }) => processTree(pid)).reduce((sum, pid) => sum + residentMb(pid) * 1000, 0)
}

function round(figure: number): number {
  return Math.round(figure * 10) / 10
}
