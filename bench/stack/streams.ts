/**
 * Tabs that wait for newer versions: 10,000 streams of events, divided between two edges, over HTTP/1.1 and HTTP/2,
 * each on a connection of its own, and as browsers do it where one has several tabs open: on one connection of HTTP/2. What each takes of its edge's memory, and how soon after a publish was acknowledged the tabs have heard of it;
 * those that heard before count as 0. Says at the end whether the bars hold.
 *
 * Memory is what the processes of the edges have to themselves (Private_Clean and Private_Dirty), each time after they
 * have collected their garbage: what is held, not what happens to lie there. What the kernel keeps for a connection (its
 * socket and what waits in it, some 5 kB) belongs to no process and is left out.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { apiFor, fileForm } from '../../test/support/api.ts'
import { quantile } from '../../test/support/figures.ts'
import { startFleet, type Fleet } from '../../test/support/fleet.ts'
import { privateMb, processTree } from '../../test/support/processes.ts'
import type { Account } from '../../test/support/stack.ts'
import type { BenchValues } from '../benches.ts'
import { createProgress, type Progress } from '../progress.ts'
import type { Results } from '../results.ts'
import type { HeardCommand, StreamHolderOptions, StreamHolderReport } from './stream-holder.ts'

const COLLECTING = path.join(import.meta.dirname, 'collecting.ts')
const HOLDER = path.join(import.meta.dirname, 'stream-holder.ts')
/** One process would be busy with its own connections when it ought to note what it hears. */
const HOLDERS_PER_EDGE = 2
/** Until handshakes are over, and until garbage is collected. */
const SETTLE_MS = 5000
/** What one lets go, handles above all, the next ones collect, and V8 gives pages back after that. */
const COLLECTIONS = 3
const EDGES = 2
/** How tabs come: `shared` are four tabs of each browser. */
const WAYS: Readonly<Record<string, Pick<StreamHolderOptions, 'protocol' | 'tabsPerBrowser'>>> = {
  h1: { protocol: 'h1', tabsPerBrowser: 1 },
  h2: { protocol: 'h2', tabsPerBrowser: 1 },
  shared: { protocol: 'h2', tabsPerBrowser: 4 },
}
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
  const figures: Record<string, Figures> = {}
  for (const way of Object.keys(WAYS).filter((each) => values.only.includes(each))) {
    progress.show('starting two edges')
    // New ones for each: what one way has freed, the next would take without a trace.
    const env = { TRUSTED_PROXIES: '127.0.0.1', NODE_OPTIONS: `--import=${COLLECTING}` }
    const fleet = await startFleet({ edges: EDGES, controls: 1, env })
    try {
      const account = await fleet.createAccount('business')
      figures[way] = await measure({ ...values, fleet, account, progress }, way)
    } finally {
      await fleet.stop()
    }
    progress.clear()
    judge(way, figures[way], results)
  }
  results.keep({ streams: values.streams, publishes: values.publishes, edges: EDGES, figures, bars: BARS })
}

async function measure(course: Course, way: string): Promise<Figures> {
  const { fleet, account, streams, publishes, progress } = course
  const api = apiFor(fleet, account)
  const slug = `streams-${way}`
  const site = (await api.create({ slug })).json<{ id: string }>()
  const publish = async (): Promise<number> => {
    const answer = await api.upload(site.id, fileForm('index.html', '<h1>Hello</h1>'))
    if (answer.status !== 201) throw new Error(answer.text())
    return answer.json<{ version_number: number }>().version_number
  }
  await publish()
  const { pass } = (await fleet.fetch(`/review/${slug}/pass`, { token: account.token })).json<{ pass: string }>()
  // What the first streams take once is not theirs.
  const first = await hold(course, way, `/review/${slug}/events?pass=${pass}`, HOLDERS_PER_EDGE * EDGES * 50)
  const before = await heldKb(fleet)
  progress.show(`${way}: ${streams} streams`)
  const tabs = await hold(course, way, `/review/${slug}/events?pass=${pass}`, streams)
  const kbPerStream = ((await heldKb(fleet)) - before) / streams
  const lateMs: number[] = []
  let missing = 0
  for (let publishing = 1; publishing <= publishes; publishing++) {
    progress.show(`${way}: publish ${publishing} of ${publishes}`)
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
async function hold({ fleet }: Course, way: string, path: string, streams: number): Promise<Holder[]> {
  const host = new URL(fleet.baseUrl).hostname
  const { protocol, tabsPerBrowser } = WAYS[way]!
  const browsers = Math.ceil(streams / (EDGES * HOLDERS_PER_EDGE * tabsPerBrowser))
  const count = browsers * tabsPerBrowser
  const wanted = fleet.edges.flatMap(({ port }) => Array.from({ length: HOLDERS_PER_EDGE }, () => port))
  return Promise.all(
    wanted.map((port, index) => openHolder({ port, host, path, protocol, tabsPerBrowser, count, from: index * count })),
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

function judge(way: string, { kbPerStream, p99Ms, missing }: Figures, results: Results): void {
  results.judge({ row: `${way}: a stream`, figure: kbPerStream, unit: 'kB', bar: BARS.kbPerStream })
  results.judge({ row: `${way}: p99 from acknowledged to heard`, figure: p99Ms, unit: 'ms', bar: BARS.p99Ms })
  results.judge({ row: `${way}: events missed`, figure: missing, unit: '', bar: BARS.missing })
}

/** What the edges' processes hold when they have collected their garbage. */
async function heldKb({ edges }: Fleet): Promise<number> {
  const pids = edges.flatMap(({ pid }) => processTree(pid))
  for (let round = 0; round < COLLECTIONS; round++) {
    await sleep(SETTLE_MS)
    for (const pid of pids) process.kill(pid, 'SIGUSR2')
  }
  await sleep(SETTLE_MS)
  return pids.reduce((sum, pid) => sum + privateMb(pid) * 1000, 0)
}

function round(figure: number): number {
  return Math.round(figure * 10) / 10
}
