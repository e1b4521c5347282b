/**
 * Part of every fault test (setupFiles): what the event loops of all planes did meanwhile, printed as one table at the end of
 * a file and judged where the machine is calm. `FAULT_SLACK` scales the bars.
 */
import { Worker } from 'node:worker_threads'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { judge, readLoopDelays, type LoopDelay } from './event-loops.ts'

const SLACK = Number(process.env['FAULT_SLACK'] ?? 1)
/** Their tests stop loops on purpose. */
const STOPS_LOOPS = /\/hung[\w-]*\.test\.ts$/

/** A loop with nothing to do, in a thread of its own. */
const IDLE = `
const { monitorEventLoopDelay } = require('node:perf_hooks')
const { parentPort } = require('node:worker_threads')
const delay = monitorEventLoopDelay({ resolution: 10 })
delay.enable()
parentPort.on('message', () => {
  parentPort.postMessage({ maxMs: Math.max(0, delay.max / 1e6 - 10) })
  delay.reset()
})`

let idle: Worker
let begunAt = 0

function readIdle(): Promise<{ maxMs: number }> {
  return new Promise((resolve) => {
    idle.once('message', resolve)
    idle.postMessage('read')
  })
}

interface Row extends LoopDelay {
  readonly test: string
  readonly judgement: string
}

const rows: Row[] = []

beforeAll(() => {
  idle = new Worker(IDLE, { eval: true })
  idle.unref()
})

/** Reading begins anew: what a start or another test did is not this one's. */
beforeEach(async () => {
  await Promise.all([readLoopDelays(), readIdle()])
  begunAt = performance.now()
})

afterEach(async ({ task }) => {
  const [delays, idled] = await Promise.all([readLoopDelays(), readIdle()])
  const seconds = (performance.now() - begunAt) / 1000
  const { isCalm, tooLong } = judge(delays, { idleMaxMs: idled.maxMs, seconds, slack: SLACK })
  const stops = STOPS_LOOPS.test(task.file.filepath)
  const judgement = stops
    ? 'stopped on purpose'
    : isCalm
      ? 'judged'
      : `busy machine (idle ${idled.maxMs.toFixed(0)} ms)`
  for (const delay of delays) rows.push({ ...delay, test: task.name, judgement })
  if (!stops) expect(tooLong, 'event loops that kept others waiting').toEqual([])
})

afterAll(async () => {
  await idle.terminate()
  if (rows.length === 0) return
  const lines = rows.map(
    ({ test, process, p999Ms, maxMs, judgement }) =>
      `| ${test} | ${process} | ${p999Ms.toFixed(1)} | ${maxMs.toFixed(1)} | ${judgement} |`,
  )
  process.stdout.write(
    `\n| event loops | process | p99.9 ms | worst ms | |\n|---|---|---|---|---|\n${lines.join('\n')}\n`,
  )
})
