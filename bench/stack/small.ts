/**
 * The whole service in a control group of 512 MB and half a processor: a thousand drops are published, and from then on a page a
 * second while visitors ask for what is there, for ten minutes. Nothing may be killed, end by itself, or fail.
 */
import https from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { createControlGroup, type ControlGroup } from '../../test/support/control-group.ts'
import type { BenchValues } from '../benches.ts'
import { createProgress, type Progress } from '../progress.ts'
import type { Results } from '../results.ts'
import { publishPage } from './publish-load.ts'
import { createPlace, memoryByProcess, startWhole } from './whole.ts'

const MB = 1e6
const LIMITS = { memoryBytes: 512 * 1024 * 1024, processors: 0.5 }
const CALLERS = 4
const PUBLISH_EVERY_MS = 1000
const VISITS_PER_PUBLISH = 5
const SAMPLE_MS = 250

interface Load {
  published: number
  /** Of these: not yet confirmed by every worker when they were answered. */
  late: number
  visits: number
  readonly failures: string[]
}

export async function run({ drops, minutes }: BenchValues<'small'>, results: Results): Promise<void> {
  const progress = createProgress()
  const group = createControlGroup(LIMITS)
  const place = await createPlace({
    MIN_MEMORY_MB: '0',
    ANONYMOUS_PER_HOUR: '1000000',
    ANONYMOUS_NETWORK_STORAGE_MB: '100000',
    EDGE_REQUESTS_PER_IP: '10000000',
    EDGE_HANDSHAKES_PER_IP: '1000000',
  })
  try {
    progress.show('starting')
    const whole = await startWhole(place, (pid) => group.add(pid))
    const memory = watchMemory(group)
    const endMs = performance.now() + minutes * 60_000
    const load = await use(place.port, drops, endMs, progress)
    progress.clear()
    const peakMb = memory.stop() / MB
    const restarts = [...whole.output().matchAll(/^\w+ +ended unexpectedly/gm)].length
    const figures = { ...whole.ready, kills: group.kills(), restarts, peakMb, ...load }
    for (const [name, mb] of memoryByProcess(whole.pid))
      process.stdout.write(`  ${mb.toFixed(1).padStart(6)} MB  ${name}\n`)
    await whole.stop()
    say(drops, minutes, figures, results)
    results.keep({ limits: LIMITS, drops, minutes, ...figures, failures: load.failures.slice(0, 20) })
  } finally {
    await group.remove()
    place.remove()
  }
}

/** The most that processes held themselves; the pages of files beside it fill whatever is left. */
function watchMemory(group: ControlGroup): { stop(): number } {
  let most = 0
  const timer = setInterval(() => (most = Math.max(most, group.anonymousBytes())), SAMPLE_MS)
  return {
    stop() {
      clearInterval(timer)
      return most
    },
  }
}

async function use(port: number, drops: number, endMs: number, progress: Progress): Promise<Load> {
  const load: Load = { published: 0, late: 0, visits: 0, failures: [] }
  const host = `localhost:${port}`
  const agent = new https.Agent({ keepAlive: true, maxSockets: CALLERS, rejectUnauthorized: false })
  const publish = async (): Promise<void> => {
    try {
      const { failure } = await publishPage(agent, port, host, String(load.published))
      if (failure === 'pending') load.late += 1
      if (failure === undefined || failure === 'pending') load.published += 1
      else load.failures.push(failure)
    } catch (error) {
      load.failures.push((error as Error).message)
    }
    if (load.published % 50 === 0) progress.show(`${load.published} published, ${load.failures.length} failed`)
  }
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      while (load.published < drops && performance.now() < endMs) await publish()
    }),
  )
  while (performance.now() < endMs) {
    const turn = sleep(PUBLISH_EVERY_MS)
    await publish()
    for (let visit = 0; visit < VISITS_PER_PUBLISH; visit++) await visitFront(agent, port, host, load)
    await turn
  }
  agent.destroy()
  return load
}

function visitFront(agent: https.Agent, port: number, host: string, load: Load): Promise<void> {
  return new Promise((resolve) => {
    const request = https.get({ agent, host: '127.0.0.1', port, path: '/', headers: { host } }, (answer) => {
      answer.resume()
      if (answer.statusCode === 200) load.visits += 1
      else load.failures.push(`a visit was answered with ${answer.statusCode}`)
      answer.on('close', resolve)
    })
    request.on('error', (error) => {
      load.failures.push(error.message)
      resolve()
    })
  })
}

type Figures = Load & {
  readonly seconds: number
  readonly kills: number
  readonly restarts: number
  readonly peakMb: number
}

function say(drops: number, minutes: number, figures: Figures, results: Results): void {
  const { seconds, kills, restarts, peakMb, published, late, visits, failures } = figures
  process.stdout.write(
    `512 MB and half a processor for ${minutes} minutes: ready after ${seconds.toFixed(1)} s, ${late} publishes late, ${visits} visits, at most ${peakMb.toFixed(0)} MB of their own\n`,
  )
  results.judge({ row: 'drops published', figure: published, unit: '', bar: drops, isLeast: true })
  results.judge({ row: 'processes killed or started again', figure: kills + restarts, unit: '', bar: 0 })
  results.judge({ row: 'publishes and visits that failed', figure: failures.length, unit: '', bar: 0 })
  if (failures.length > 0) process.stdout.write(`  the first: ${failures[0]}\n`)
}
