/**
 * `/metrics` of a control, for Prometheus: on the private port, for requests that come to it directly. What an edge
 * passes on is the world's, and finds nothing here. Figures that have to be asked for have a time limit: those of a
 * database that is away are left out, and everything else is told.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { errors } from '../../../shared/contracts/errors.ts'
import { SECOND_MS } from '../../../shared/running/clock.ts'
import type { Request, Route } from '../http/route.ts'
import type { QueueState } from './queue.ts'
import { EXPOSITION_TYPE, gauge, writeExposition, type Family } from './exposition.ts'

/** How often the delay is measured. A loop without delay measures this much, so it is taken off. */
const RESOLUTION_MS = 10
/** Prometheus waits for ten seconds by default. */
const QUESTION_MS = 2 * SECOND_MS

/** Something that waits to be done. */
export interface Queue {
  readonly name: string
  look(): Promise<QueueState>
}

/** A figure that has to be asked for. */
export interface AskedFigure {
  readonly name: string
  readonly help: string
  /** Undefined: there is no such figure here. */
  ask(): Promise<number | undefined>
}

export interface MetricsSources {
  /** Figures that are at hand. */
  readonly families: readonly (() => Family[])[]
  readonly queues: readonly Queue[]
  readonly asked: readonly AskedFigure[]
}

export interface ControlMetrics {
  readonly route: Route
  stop(): void
}

export function createMetrics(sources: MetricsSources): ControlMetrics {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  const delayMs = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)

  function ownFamilies(): Family[] {
    const families = [
      gauge('dropway_control_event_loop_delay_p999_ms', 'Since the last scrape.', delayMs(delay.percentile(99.9))),
      gauge('dropway_control_event_loop_delay_max_ms', 'Since the last scrape.', delayMs(delay.max)),
      gauge('dropway_control_start_time_seconds', 'Since the epoch.', performance.timeOrigin / SECOND_MS),
      gauge('dropway_control_resident_bytes', 'Memory of the process.', process.memoryUsage.rss()),
    ]
    delay.reset()
    return families
  }

  async function write(): Promise<string> {
    const [queues, asked] = await Promise.all([
      Promise.all(sources.queues.map(async ({ name, look }) => ({ name, state: await inTime(look()) }))),
      Promise.all(sources.asked.map(async (figure) => ({ ...figure, value: await inTime(figure.ask()) }))),
    ])
    return writeExposition([
      ...ownFamilies(),
      ...sources.families.flatMap((families) => families()),
      ...queueFamilies(queues),
      ...asked.flatMap(({ name, help, value }) => (value === undefined ? [] : [gauge(name, help, value)])),
    ])
  }

  return {
    route: {
      method: 'GET',
      path: '/metrics',
      worksWithoutDatabase: true,
      async handle(request) {
        if (isPassedOn(request)) throw errors.notFound('address')
        const headers = { 'content-type': EXPOSITION_TYPE, 'cache-control': 'no-store' }
        return { status: 200, headers, body: await write() }
      },
    },
    stop: () => delay.disable(),
  }
}

function queueFamilies(queues: readonly { name: string; state: QueueState | undefined }[]): Family[] {
  const each = (value: (state: QueueState) => number): Family['samples'] =>
    queues.flatMap(({ name, state }) => (state ? [{ labels: { queue: name }, value: value(state) }] : []))
  return [
    {
      name: 'dropway_control_queue_length',
      help: 'What waits to be done and is due, of all controls together.',
      type: 'gauge',
      samples: each(({ length }) => length),
    },
    {
      name: 'dropway_control_queue_age_seconds',
      help: 'How long the first of it has waited since it was due.',
      type: 'gauge',
      samples: each(({ ageSeconds }) => ageSeconds),
    },
  ]
}

/** Undefined when it failed or took too long. */
async function inTime<Value>(question: Promise<Value>): Promise<Value | undefined> {
  return Promise.race([question.catch(() => undefined), sleep(QUESTION_MS, undefined, { ref: false })])
}

/** Every edge and every other proxy says for whom it asks. */
function isPassedOn(request: Request): boolean {
  return request.header('x-forwarded-for') !== undefined || request.header('forwarded') !== undefined
}
