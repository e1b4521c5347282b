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
let begun = { atMs: 0, waitedMs: undefined as number | undefined }

/** How long some process has waited for a processor since the machine started. */
function waitedMs(): number | undefined {
  try {
    const [, total] = /^some .*total=(\d+)/m.exec(readFileSync('/proc/pressure/cpu', 'utf8'))!
    return Number(total) / 1000
  } catch {
    return undefined
  }
}

/** Reading begins anew: what a start or another test did is not this one's. */
beforeEach(async () => {
  await readLoopDelays()
  begun = { atMs: performance.now(), waitedMs: waitedMs() }
})

afterEach(async ({ task }) => {
  const delays = await readLoopDelays()
  const lastedMs = performance.now() - begun.atMs
  const waited = waitedMs()
  const pressure =
    waited === undefined || begun.waitedMs === undefined ? undefined : (waited - begun.waitedMs) / lastedMs
  const { isCalm, tooLong } = judge(delays, { pressure, seconds: lastedMs / 1000, slack: SLACK })
  const stops = STOPS_LOOPS.test(task.file.filepath)
  const judgement = stops ? 'stopped on purpose' : isCalm ? 'judged' : `busy machine (${Math.round(pressure! * 100)} %)`
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
