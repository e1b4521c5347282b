/** How long the event loops of running planes keep what is due waiting, as their own metrics say. */

export interface LoopDelay {
  /** `control`, `edge 0 primary`, `edge 0 worker 4711`. */
  readonly process: string
  readonly p999Ms: number
  readonly maxMs: number
}

/** Names of planes by the address of their metrics, in this test file. */
const watched = new Map<string, string>()
/** A plane that is being ended or is hung has no answer. */
const ANSWER_MS = 3000

export function watchEventLoops(name: string, port: number | undefined): void {
  if (port !== undefined) watched.set(`http://127.0.0.1:${port}/metrics`, name)
}

export function unwatchEventLoops(port: number | undefined): void {
  watched.delete(`http://127.0.0.1:${port}/metrics`)
}

/** Since they were read last. Planes that do not answer are left out. */
export async function readLoopDelays(): Promise<LoopDelay[]> {
  const read = async ([url, name]: [string, string]): Promise<LoopDelay[]> => {
    try {
      const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) })
      return delaysIn(await answer.text(), name)
    } catch {
      return []
    }
  }
  return (await Promise.all([...watched].map(read))).flat()
}

/** `dropway_edge_event_loop_delay_max_ms{process="worker 1"} 3.2`, for control without a label. */
const LINE = /^dropway_(?:control|edge)_event_loop_delay_(p999|max)_ms(?:\{process="([^"]*)"\})? ([\d.e+-]+)$/gm

export function delaysIn(metrics: string, name: string): LoopDelay[] {
  const figures = new Map<string, { p999: number; max: number }>()
  for (const [, figure, process, value] of metrics.matchAll(LINE)) {
    const key = process === undefined ? name : `${name} ${process}`
    const known = figures.get(key) ?? { p999: 0, max: 0 }
    figures.set(key, { ...known, [figure!]: Number(value) })
  }
  return [...figures].map(([process, { p999, max }]) => ({ process, p999Ms: p999, maxMs: max }))
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
/** The same where the host of a virtual machine gives its processors to others: then everything stands still at once. */
const MAX_STOLEN_SHARE = 0.05
/** Loops are looked at a hundred times a second: of less time, one part in a thousand is the worst alone. */
const MIN_P999_SECONDS = 10

export interface Circumstances {
  /** Part of the time during which processes waited for a processor; undefined where the system does not say. */
  readonly pressure: number | undefined
  /** Part of the processor time wanted here that the host gave to other machines. */
  readonly stolen: number
  readonly seconds: number
  readonly slack: number
}

export function judge(delays: readonly LoopDelay[], { pressure = 0, stolen, seconds, slack }: Circumstances): Judged {
  const isCalm = pressure <= CALM_SHARE && stolen <= MAX_STOLEN_SHARE
  const maxP999Ms = seconds < MIN_P999_SECONDS ? Infinity : MAX_P999_MS * slack
  const tooLong = delays.filter(({ p999Ms, maxMs }) => p999Ms > maxP999Ms || maxMs > MAX_MS * slack)
  return { isCalm, tooLong: isCalm ? tooLong.map(lineOf) : [] }
}

export function lineOf({ process, p999Ms, maxMs }: LoopDelay): string {
  return `${process}: p99.9 ${p999Ms.toFixed(1)} ms, worst ${maxMs.toFixed(1)} ms`
}
