/**
 * Loads a running edge, and says how it bears it:
 *
 *   what was said ─▶ a target ─▶ consent ─▶ one request to see that it works ─▶ threads that ask ─▶ a summary ─▶ a page
 */
import { writeFileSync } from 'node:fs'
import os from 'node:os'
import readline from 'node:readline/promises'
import { Worker } from 'node:worker_threads'
import type { BenchValues } from '../benches.ts'
import { EXIT_USAGE } from '../../test/support/arguments.ts'
import { createProgress } from '../progress.ts'
import { pageOf } from './page.ts'
import { probe } from './probe.ts'
import { count, milliseconds, percent, summarise, textOf, type Ending, type Plan, type Summary } from './summary.ts'
import { Tally, type Slice } from './tally.ts'
import { isOnThisMachine, targetOf, UsageError, type Target } from './target.ts'
import type { ThreadOptions } from './generator.ts'

const EXIT_FAILED = 1
const EXIT_INTERRUPTED = 130
const THREAD = new URL('thread.ts', import.meta.url)
/** An edge that answers nothing for so long is gone. */
const GIVE_UP_MS = 10_000

type Told = BenchValues<'load'>

export async function run(told: Told): Promise<void> {
  try {
    const target = await targetOf(told)
    await agree(told, target)
    const { status, bytes } = await probe(target)
    process.stderr.write(`${told.url} answers ${status} with ${count(bytes)} bytes from ${target.ip}\n`)
    const summary = await load(told, target)
    process.stdout.write(`${textOf(summary)}\n`)
    if (told.report !== undefined) {
      writeFileSync(told.report, pageOf(summary))
      process.stderr.write(`written: ${told.report}\n`)
    }
    process.exitCode = exitCodeOf(summary)
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    process.exitCode = error instanceof UsageError ? EXIT_USAGE : EXIT_FAILED
  }
}

function exitCodeOf({ ending, failures, answers }: Summary): number {
  if (ending === 'interrupted') return EXIT_INTERRUPTED
  return failures > 0 || answers === 0 ? EXIT_FAILED : 0
}

/** A load on another machine is an attack unless its operator means it. */
async function agree(told: Told, target: Target): Promise<void> {
  if (told.yes || isOnThisMachine(target)) return
  const what = `This sends as many requests as ${told.connections} connections can for ${told.duration} s to ${target.ip}, which is not this machine`
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new UsageError(`${what}: pass --yes if it is yours and you mean it.`)
  const asking = readline.createInterface({ input: process.stdin, output: process.stderr })
  const answer = await asking.question(`${what}. Is it yours, and do you mean it? [y/N] `)
  asking.close()
  if (!/^y(es)?$/i.test(answer.trim())) throw new UsageError('Nothing was sent.')
}

async function load(told: Told, target: Target): Promise<Summary> {
  const plan = planOf(told, target)
  const progress = createProgress()
  const tally = new Tally()
  const processorsBefore = processors()
  const watch = new Watch()
  const workers = threadsOf(plan, target).map((options) => new Worker(THREAD, { workerData: options }))
  let ending: Ending = 'over'
  const stop = (how: Ending): void => {
    if (ending === 'over') ending = how
    for (const worker of workers) worker.postMessage('stop')
  }
  const interrupt = (): void => stop('interrupted')
  process.once('SIGINT', interrupt)
  for (const worker of workers)
    worker.on('message', (slice: Slice) => {
      tally.add(slice)
      if (slice.thread === 0) progress.show(lineOf(tally, plan))
      if (watch.hasDied(tally)) stop('given up')
    })
  await Promise.all(workers.map(ended))
  process.off('SIGINT', interrupt)
  progress.clear()
  const measuredAt = new Date().toISOString()
  return summarise({ plan, tally, ending, machineBusy: busyBetween(processorsBefore, processors()), measuredAt })
}

/** Resolves when the thread has ended well. */
function ended(worker: Worker): Promise<void> {
  return new Promise((resolve, reject) => {
    worker.once('error', reject)
    worker.once('exit', () => resolve())
  })
}

function planOf(told: Told, target: Target): Plan {
  const threads = Math.min(told.threads, told.connections)
  return {
    url: told.url,
    host: target.pages[0]?.host ?? '',
    protocol: target.isHttp2 ? 'HTTP/2' : 'HTTP/1.1',
    connections: told.connections,
    streams: told.streams,
    threads,
    pages: target.pages.length,
    wantedSeconds: told.duration,
    isOnThisMachine: isOnThisMachine(target),
    cores: os.availableParallelism(),
  }
}

/** The connections are dealt out evenly. */
function threadsOf({ threads, connections, streams, wantedSeconds }: Plan, target: Target): ThreadOptions[] {
  return Array.from({ length: threads }, (_, thread) => ({
    thread,
    target,
    connections: Math.floor(connections / threads) + (thread < connections % threads ? 1 : 0),
    streams,
    seconds: wantedSeconds,
  }))
}

/** Notices that nothing is answered any more. */
class Watch {
  #answers = 0
  #answeredAt = performance.now()

  hasDied({ answers, failures }: Tally): boolean {
    if (answers > this.#answers || failures === 0) this.#answeredAt = performance.now()
    this.#answers = answers
    return performance.now() - this.#answeredAt > GIVE_UP_MS
  }
}

function lineOf(tally: Tally, { wantedSeconds }: Plan): string {
  return [
    `${Math.round(tally.elapsedSeconds)} of ${wantedSeconds} s`,
    `${count(tally.answers)} answers`,
    `${count(tally.latestPerSecond)}/s`,
    `p50 ${milliseconds(tally.latencies.quantileMs(0.5))}`,
    `p99 ${milliseconds(tally.latencies.quantileMs(0.99))}`,
    `${count(tally.failures)} failures`,
    `generator ${percent(tally.generatorBusy())} busy`,
  ].join('  ')
}

interface Processors {
  readonly busyMs: number
  readonly allMs: number
}

function processors(): Processors {
  const times = os.cpus().map(({ times }) => times)
  const all = times.reduce((total, { user, nice, sys, idle, irq }) => total + user + nice + sys + idle + irq, 0)
  return { allMs: all, busyMs: all - times.reduce((total, { idle }) => total + idle, 0) }
}

function busyBetween(before: Processors, after: Processors): number {
  return (after.busyMs - before.busyMs) / Math.max(1, after.allMs - before.allMs)
}
