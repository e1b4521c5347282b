/** How long the event loops of running planes keep what is due waiting, as their own metrics say. */
import { isOurs, type Circumstances } from './machine.ts'

export interface LoopDelay {
  /** `control`, `edge 0 primary`, `edge 0 worker 4711`. */
  readonly process: string
  readonly p999Ms: number
  readonly maxMs: number
  /** For which these hold. */
  readonly seconds: number
}

interface Plane {
  readonly name: string
  readonly url: string
  readAtMs: number
}

/** By the port of their metrics, in this test file. */
const watched = new Map<number, Plane>()
/** Of planes that have been stopped since the last reading. */
const ended: LoopDelay[] = []
/** A plane that is being ended or is hung has no answer. */
const ANSWER_MS = 3000

/** From now on: what the start did is read away. */
export async function watchEventLoops(name: string, port: number | undefined): Promise<void> {
  if (port === undefined) return
  const plane: Plane = { name, url: `http://127.0.0.1:${port}/metrics`, readAtMs: 0 }
  await readPlane(plane)
  watched.set(port, plane)
}

/** What they did until now is told by the next reading. */
export async function unwatchEventLoops(port: number | undefined): Promise<void> {
  const plane = port === undefined ? undefined : watched.get(port)
  if (plane === undefined || port === undefined) return
  watched.delete(port)
  ended.push(...(await readPlane(plane)))
}

/** Since they were read last. Planes that do not answer are left out. */
export async function readLoopDelays(): Promise<LoopDelay[]> {
  const running = await Promise.all([...watched.values()].map(readPlane))
  return [...ended.splice(0), ...running.flat()]
}

async function readPlane(plane: Plane): Promise<LoopDelay[]> {
  const seconds = (performance.now() - plane.readAtMs) / 1000
  try {
    const answer = await fetch(plane.url, { signal: AbortSignal.timeout(ANSWER_MS) })
    const delays = delaysIn(await answer.text(), plane.name, seconds)
    plane.readAtMs = performance.now()
    return delays
  } catch {
    return []
  }
}

/** `dropway_edge_event_loop_delay_max_ms{process="worker 1"} 3.2`, for control without a label. */
const LINE = /^dropway_(?:control|edge)_event_loop_delay_(p999|max)_ms(?:\{process="([^"]*)"\})? ([\d.e+-]+)$/gm

export function delaysIn(metrics: string, name: string, seconds: number): LoopDelay[] {
  const figures = new Map<string, { p999: number; max: number }>()
  for (const [, figure, process, value] of metrics.matchAll(LINE)) {
    const key = process === undefined ? name : `${name} ${process}`
    const known = figures.get(key) ?? { p999: 0, max: 0 }
    figures.set(key, { ...known, [figure!]: Number(value) })
  }
  return [...figures].map(([process, { p999, max }]) => ({ process, p999Ms: p999, maxMs: max, seconds }))
}

export interface Judged {
  readonly isCalm: boolean
  /** What is beyond the bars, where the machine was calm. */
  readonly tooLong: readonly string[]
}

/** What is promised, under any of the faults. */
const MAX_P999_MS = 50
const MAX_MS = 250
/** Where some process waits for a processor during more of the time, a loop that waits says little about its work. */
const CALM_SHARE = 0.5
/** Loops are looked at a hundred times a second: of less time, one part in a thousand is the worst alone. */
const MIN_P999_SECONDS = 10

interface Judging extends Omit<Circumstances, 'idle'> {
  readonly slack: number
}

export function judge(delays: readonly LoopDelay[], { pressure = 0, stolen, slack }: Judging): Judged {
  const isCalm = pressure <= CALM_SHARE && isOurs({ stolen })
  const isLong = ({ p999Ms, maxMs, seconds }: LoopDelay): boolean =>
    maxMs > MAX_MS * slack || (seconds >= MIN_P999_SECONDS && p999Ms > MAX_P999_MS * slack)
  return { isCalm, tooLong: isCalm ? delays.filter(isLong).map(lineOf) : [] }
}

export function lineOf({ process, p999Ms, maxMs }: LoopDelay): string {
  return `${process}: p99.9 ${p999Ms.toFixed(1)} ms, worst ${maxMs.toFixed(1)} ms`
}
