/**
 * Part of every fault test (setupFiles): what the event loops of all planes did meanwhile, printed as one table at the end of
 * a file and judged where the machine is calm. `FAULT_SLACK` scales the bars.
 */
import { afterAll, afterEach, beforeEach, expect } from 'vitest'
import { judge, readLoopDelays, type LoopDelay } from './event-loops.ts'
import { describeCircumstances, watchMachine, type Circumstances } from './machine.ts'

const SLACK = Number(process.env['FAULT_SLACK'] ?? 1)
/** Their tests stop loops on purpose. */
const STOPS_LOOPS = /\/(?:hung[\w-]*|lifecycle-killed)\.test\.ts$/

interface Row extends LoopDelay {
  readonly test: string
  readonly judgement: string
}

const rows: Row[] = []
let circumstances: () => Promise<Circumstances>

/** Reading begins anew: what a start or another test did is not this one's. */
beforeEach(async () => {
  await readLoopDelays()
  circumstances = watchMachine()
})

afterEach(async ({ task }) => {
  const delays = await readLoopDelays()
  const met = await circumstances()
  const { isCalm, tooLong } = judge(delays, { ...met, slack: SLACK })
  const stops = STOPS_LOOPS.test(task.file.filepath)
  const judgement = `${stops ? 'stopped on purpose' : isCalm ? 'judged' : 'not judged'}; ${describeCircumstances(met)}`
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
