/**
 * Part of every fault test (setupFiles): what the event loops of all planes did meanwhile, printed as one table at the end of
 * a file and judged where the machine is calm. `FAULT_SLACK` scales the bars.
 */
import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeEach, expect } from 'vitest'
import { judge, readLoopDelays, type LoopDelay } from './event-loops.ts'

const SLACK = Number(process.env['FAULT_SLACK'] ?? 1)
/** Their tests stop loops on purpose. */
const STOPS_LOOPS = /\/hung[\w-]*\.test\.ts$/

interface Row extends LoopDelay {
  readonly test: string
  readonly judgement: string
}

const rows: Row[] = []
let begun = { atMs: 0, waitedMs: undefined as number | undefined, ticks: { used: 0, stolen: 0 } }

/** How long some process has waited for a processor since the machine started. */
function waitedMs(): number | undefined {
  try {
    const [, total] = /^some .*total=(\d+)/m.exec(readFileSync('/proc/pressure/cpu', 'utf8'))!
    return Number(total) / 1000
  } catch {
    return undefined
  }
}

/** What the machine's processors did for us since it started, and what its host gave to others meanwhile (proc_stat(5)). */
function processorTicks(): { used: number; stolen: number } {
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, stolen = 0] = readFileSync('/proc/stat', 'utf8')
    .split('\n', 1)[0]!
    .split(/\s+/)
    .map(Number)
  return { used: user + nice + system + irq + softirq, stolen }
}

function stolenShare(since: { used: number; stolen: number }): number {
  const { used, stolen } = processorTicks()
  const wanted = used - since.used + stolen - since.stolen
  return wanted > 0 ? (stolen - since.stolen) / wanted : 0
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}

/** Reading begins anew: what a start or another test did is not this one's. */
beforeEach(async () => {
  await readLoopDelays()
  begun = { atMs: performance.now(), waitedMs: waitedMs(), ticks: processorTicks() }
})

afterEach(async ({ task }) => {
  const delays = await readLoopDelays()
  const lastedMs = performance.now() - begun.atMs
  const waited = waitedMs()
  const pressure =
    waited === undefined || begun.waitedMs === undefined ? undefined : (waited - begun.waitedMs) / lastedMs
  const stolen = stolenShare(begun.ticks)
  const { isCalm, tooLong } = judge(delays, { pressure, stolen, seconds: lastedMs / 1000, slack: SLACK })
  const stops = STOPS_LOOPS.test(task.file.filepath)
  const others = `waited ${percent(pressure ?? 0)}, taken by the host ${percent(stolen)}`
  const judgement = `${stops ? 'stopped on purpose' : isCalm ? 'judged' : 'not judged'}; ${others}`
  for (const delay of delays) rows.push({ ...delay, test: task.name, judgement })
  if (!stops) expect(tooLong, 'event loops that kept others waiting').toEqual([])
})

afterAll(() => {
  if (rows.length === 0) return
  const lines = rows.map(
    ({ test, process: name, p999Ms, maxMs, judgement }) =>
      `| ${test} | ${name} | ${p999Ms.toFixed(1)} | ${maxMs.toFixed(1)} | ${judgement} |`,
  )
  process.stdout.write(
    `\n| event loops | process | p99.9 ms | worst ms | |\n|---|---|---|---|---|\n${lines.join('\n')}\n`,
  )
})
