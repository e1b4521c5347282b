/**
 * Every head is followed by exactly its body, or by the end of the connection (HTTP/1.1) or of the stream (HTTP/2): over
 * generated visits, with sources that fail, readers who stop, and resets at any byte. `SCHEDULES=10000` runs as many of
 * each protocol from `SEED` on, `SCHEDULES=1` one visit alone.
 */
import type { Readable, Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import type { Lane, Outgoing } from '../../../../edge/accept/outgoing/outgoing.ts'
import { SEED } from '../../../support/depth.ts'
import { startScheduleRunner, type RunnerOptions, type ScheduleRunner } from './run-schedule.ts'
import { scheduleOf, type PlannedAnswer, type Protocol } from './schedule.ts'

const SCHEDULES = Number(process.env['SCHEDULES'] ?? 100)
/** Each has an edge of its own. */
const AT_ONCE = 8
const MAX_MS_PER_SCHEDULE = 500
const PROTOCOLS: readonly Protocol[] = ['HTTP/1.1', 'HTTP/2']

/** Runs the visits of these seeds, and says what the first broken one was. */
async function firstProblem(
  protocol: Protocol,
  seeds: readonly number[],
  options?: RunnerOptions,
): Promise<string | undefined> {
  const waiting = [...seeds]
  const runners: ScheduleRunner[] = []
  let problem: string | undefined
  const runOneByOne = async (): Promise<void> => {
    const runner = await startScheduleRunner(options)
    runners.push(runner)
    for (let seed = waiting.shift(); seed !== undefined && problem === undefined; seed = waiting.shift()) {
      const found = await runner.run(scheduleOf(seed, protocol))
      if (found === undefined || problem !== undefined) continue
      problem = `SCHEDULES=1 SEED=${seed}, ${protocol}: ${found}`
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, seeds.length) }, runOneByOne))
  for (const runner of runners) await runner.stop()
  return problem
}

const seedsFrom = (first: number, count: number): number[] => Array.from({ length: count }, (_, index) => first + index)
const seeds = seedsFrom(SEED, SCHEDULES)

test.each(PROTOCOLS)(
  `%s: ${seeds.length} generated visits from seed ${seeds[0]}`,
  async (protocol) => {
    expect(await firstProblem(protocol, seeds)).toBeUndefined()
  },
  600_000 + seeds.length * MAX_MS_PER_SCHEDULE,
)

test('a visitor who leaves while control answers beside a drop does not keep the worker for ever', async () => {
  expect(await firstProblem('HTTP/2', [535206])).toBeUndefined()
})

const UNREAD: PlannedAnswer = {
  source: 'relay',
  start: 0,
  size: 20_000,
  isAnnounced: true,
  chunks: [20_000],
  pauses: [0],
  flaw: undefined,
}

test('a visitor who opens no window is cut off over HTTP/2, though control answers', async () => {
  const { reader, ...schedule } = scheduleOf(1, 'HTTP/2')
  const runner = await startScheduleRunner()
  const problem = await runner.run({
    ...schedule,
    answers: Array.from({ length: 8 }, () => UNREAD),
    reader: { ...reader, windowBytes: 0, isAbandoning: true, resetAt: undefined, cancels: undefined },
  })
  expect(problem).toBeUndefined()
  await runner.stop()
})

/** Ways out with one mistake each, to see that the visits find it. */
const MISTAKES: Readonly<Record<string, (own: Lane) => Lane['pump']>> = {
  // As it once was.
  'an end that overtakes the chunk which waits for its turn': () => (source, to) => {
    carry(source, to, (chunk, then) => setImmediate(() => to.writableEnded || to.write(chunk, then)))
    source.on('end', () => to.end())
  },
  'a length that is not checked': (own) => (source, to) => own.pump(source, to, undefined),
  'a source that is cut ends the answer': () => (source, to) => {
    carry(source, to, (chunk, then) => to.write(chunk, then))
    source.on('end', () => to.end())
    source.on('close', () => to.writableEnded || to.end())
    source.on('error', () => to.end())
  },
}

function carry(source: Readable, to: Writable, write: (chunk: Buffer, then: () => void) => void): void {
  source.on('error', () => {})
  to.on('error', () => {})
  to.once('close', () => source.destroy())
  source.on('data', (chunk: Buffer) => {
    source.pause()
    write(chunk, () => source.resume())
  })
}

describe.each(Object.entries(MISTAKES))('%s', (_, mistakenPump) => {
  test.each(PROTOCOLS)('is found over %s', async (protocol) => {
    const replace = (outgoing: Outgoing): Outgoing => ({
      heldBytes: outgoing.heldBytes,
      lane(socket) {
        const lane = outgoing.lane(socket)
        const own = { ...lane, pump: lane.pump.bind(lane) } as Lane
        return Object.assign(lane, { pump: mistakenPump(own) })
      },
    })
    const found = await firstProblem(protocol, seedsFrom(1, 100), { replace, hangsAfterMs: 3000 })
    expect(found).toMatch(/^SCHEDULES=1 SEED=\d+/)
  })
})
