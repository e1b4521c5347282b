/**
 * Whether memory comes back: what control and an edge hold before and after so many publishes and so many unlocked visits,
 * each time after they have collected their garbage. The pages of files that they map, as the edge's replica, are not
 * theirs. Before means after a tenth as many of both, because what is kept
 * once (compiled code, pools, connections) is no growth. Says at the end whether the bar holds.
 */
import https from 'node:https'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { apiFor } from '../../test/support/api.ts'
import { startFleet, type Fleet } from '../../test/support/fleet.ts'
import { anonymousMb, processTree } from '../../test/support/processes.ts'
import type { BenchValues } from '../benches.ts'
import { createProgress, type Progress } from '../progress.ts'
import type { Results } from '../results.ts'
import { untilCalm } from './calm.ts'
import { publishPage } from './publish-load.ts'

const COLLECTING = path.join(import.meta.dirname, 'collecting.ts')
const CALLERS = 16
const SETTLE_MS = 5000
/** Until so many in a row have given no more back. */
const SETTLED_COLLECTIONS = 4
const SETTLED_MB = 2
const MOST_COLLECTIONS = 24
/** Jobs follow a publish for a minute and more. */
const JOBS_MS = 65_000
const PASSWORD = 'a door of its own'
const MOST_TIMES = 1.1

export async function run({ publishes, unlocks }: BenchValues<'growth'>, results: Results): Promise<void> {
  const progress = createProgress()
  progress.show('starting')
  const env = {
    NODE_OPTIONS: `--import=${COLLECTING}`,
    TRUSTED_PROXIES: '127.0.0.1',
    PLANS: 'unlimited',
    ANONYMOUS_PER_HOUR: '1000000',
    ANONYMOUS_NETWORK_STORAGE_MB: '100000',
  }
  const fleet = await startFleet({ edges: 1, controls: 1, env })
  try {
    const door = await protectedDrop(fleet)
    const use = async (share: number): Promise<void> => {
      await inParallel(publishes * share, progress, 'published', publishing(fleet))
      await inParallel(unlocks * share, progress, 'unlocked', unlocking(fleet, door))
    }
    await use(0.1)
    const before = await heldMb(fleet, progress)
    await use(1)
    const after = await heldMb(fleet, progress)
    progress.clear()
    const rows = Object.fromEntries(
      Object.entries(before).map(([name, mb]) => [name, { before: mb, after: after[name]!, times: after[name]! / mb }]),
    )
    for (const [name, { before: first, after: last, times }] of Object.entries(rows)) {
      process.stdout.write(`${name}: ${first.toFixed(0)} MB before, ${last.toFixed(0)} after\n`)
      results.judge({ row: `${name} beside what a tenth left`, figure: times, unit: '×', bar: MOST_TIMES })
    }
    results.keep({ publishes, unlocks, rows, bar: MOST_TIMES })
  } finally {
    await fleet.stop()
  }
}

async function protectedDrop(fleet: Fleet): Promise<string> {
  const account = await fleet.createAccount('business')
  const { id, slug } = await fleet.publish(account, '<!doctype html><title>Behind a door</title>')
  const answer = await apiFor(fleet, account).patch(id, { access_mode: 'password', password: PASSWORD })
  if (answer.status !== 200) throw new Error(answer.text())
  return `${slug}.${fleet.sitesDomain}`
}

type Task = (agent: https.Agent, number: number) => Promise<void>

/** Callers that keep their connections. */
async function inParallel(count: number, progress: Progress, what: string, task: Task): Promise<void> {
  let begun = 0
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      const agent = new https.Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
      while (begun < count) {
        begun += 1
        if (begun % 100 === 0) progress.show(`${begun} of ${count} ${what}`)
        await task(agent, begun)
      }
      agent.destroy()
    }),
  )
}

function publishing({ edges, baseUrl }: Fleet): Task {
  const { host } = new URL(baseUrl)
  return async (agent, number) => {
    const { failure } = await publishPage(agent, edges[0]!.port, host, String(number))
    // What is published and not yet seen by all edges counts, too.
    if (failure !== undefined && failure !== 'pending') throw new Error(failure)
  }
}

/** Each from an address of its own, as visitors come. */
function unlocking({ edges }: Fleet, hostname: string): Task {
  const { port } = edges[0]!
  const body = new URLSearchParams({ password: PASSWORD, next: '/' }).toString()
  return (agent, number) =>
    new Promise((resolve, reject) => {
      const headers = {
        host: `${hostname}:${port}`,
        'content-type': 'application/x-www-form-urlencoded',
        'x-forwarded-for': `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`,
      }
      const target = { agent, host: '127.0.0.1', port, servername: hostname, path: '/.dropway/unlock' }
      const request = https.request({ ...target, method: 'POST', headers }, (answer) => {
        answer.resume()
        if (answer.statusCode === 303) resolve()
        else reject(new Error(`an unlock was answered with ${answer.statusCode}`))
      })
      request.on('error', reject)
      request.end(body)
    })
}

/** What each process holds when it has collected its garbage. */
async function heldMb(fleet: Fleet, progress: Progress): Promise<Record<string, number>> {
  progress.show('waiting for jobs')
  await sleep(JOBS_MS)
  await untilCalm(fleet.controls[0]!.pid)
  progress.show('collecting garbage')
  const control = processTree(fleet.controls[0]!.pid)
  const [primary, ...workers] = processTree(fleet.edges[0]!.pid)
  const pids = [...control, primary!, ...workers]
  const sum = (of: readonly number[]): number => of.reduce((mb, pid) => mb + anonymousMb(pid), 0)
  // V8 gives pages back some time after it has emptied them, and by and by.
  let settled = Number.POSITIVE_INFINITY
  for (let round = 0, since = 0; round < MOST_COLLECTIONS && since < SETTLED_COLLECTIONS; round++) {
    for (const pid of pids) process.kill(pid, 'SIGUSR2')
    await sleep(SETTLE_MS)
    const held = sum(pids)
    since += 1
    if (held < settled - SETTLED_MB) [settled, since] = [held, 0]
    const isLast = round === MOST_COLLECTIONS - 1 && since < SETTLED_COLLECTIONS
    if (isLast) console.error(`After ${MOST_COLLECTIONS} collections memory was still coming back.`)
  }
  return { control: sum(control), 'edge, primary': sum([primary!]), 'edge, workers': sum(workers) }
}
