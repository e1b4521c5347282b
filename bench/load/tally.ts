/** What was answered and what failed, second by second, put together from all threads. */
import { Latencies, type CountedLatencies } from './latencies.ts'

/** What one thread has seen in about a second. */
export interface Slice {
  readonly thread: number
  /** The how manieth of this thread. */
  readonly index: number
  /** How long it lasted. */
  readonly ms: number
  readonly latencies: CountedLatencies
  readonly bytes: number
  /** Answers by status. */
  readonly statuses: Readonly<Record<string, number>>
  /** Requests without an answer, by kind. */
  readonly errors: Readonly<Record<string, number>>
  /** The share of the time that the thread's event loop was busy. */
  readonly busy: number
}

/** One second of all threads. */
export interface Second {
  readonly answersPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly failuresPerSecond: number
}

export class Tally {
  readonly latencies = new Latencies()
  readonly statuses: Record<string, number> = {}
  readonly errors: Record<string, number> = {}
  bytes = 0
  readonly #seconds: { readonly latencies: Latencies; answersPerSecond: number; failuresPerSecond: number }[] = []
  readonly #busyMs: Record<number, number> = {}
  readonly #ms: Record<number, number> = {}

  add(slice: Slice): void {
    const { thread, index, ms, latencies, bytes, statuses, errors, busy } = slice
    this.latencies.add(latencies)
    this.bytes += bytes
    addAll(this.statuses, statuses)
    addAll(this.errors, errors)
    this.#busyMs[thread] = (this.#busyMs[thread] ?? 0) + busy * ms
    this.#ms[thread] = (this.#ms[thread] ?? 0) + ms
    const second = (this.#seconds[index] ??= { latencies: new Latencies(), answersPerSecond: 0, failuresPerSecond: 0 })
    const answers = second.latencies.total
    second.latencies.add(latencies)
    const perSecond = (events: number): number => (ms > 0 ? (events * 1000) / ms : 0)
    second.answersPerSecond += perSecond(second.latencies.total - answers)
    second.failuresPerSecond += perSecond(sum(errors) + failuresAmong(statuses))
  }

  /** Every answer, whatever it said. */
  get answers(): number {
    return this.latencies.total
  }

  /** What was not answered with 2xx or 3xx. */
  get failures(): number {
    return sum(this.errors) + failuresAmong(this.statuses)
  }

  /** What failed by kind, the most frequent first. */
  failuresByKind(): [kind: string, count: number][] {
    const answered = Object.entries(this.statuses).filter(([status]) => isFailure(status))
    return [
      ...answered.map(([status, count]): [string, number] => [`answered ${status}`, count]),
      ...Object.entries(this.errors),
    ].toSorted(([, one], [, other]) => other - one)
  }

  seconds(): Second[] {
    return Array.from(this.#seconds, (second) => ({
      answersPerSecond: second?.answersPerSecond ?? 0,
      p50Ms: second?.latencies.quantileMs(0.5) ?? 0,
      p99Ms: second?.latencies.quantileMs(0.99) ?? 0,
      failuresPerSecond: second?.failuresPerSecond ?? 0,
    }))
  }

  /** How long the threads have been asking; their start is not counted. */
  get elapsedSeconds(): number {
    return Math.max(0, ...Object.values(this.#ms)) / 1000
  }

  /** How many answers came in the last second. */
  get latestPerSecond(): number {
    return this.#seconds.at(-1)?.answersPerSecond ?? 0
  }

  /** The busiest thread: a single one that is at its end holds its connections up. */
  generatorBusy(): number {
    return Math.max(
      0,
      ...Object.keys(this.#ms).map((thread) => (this.#busyMs[+thread] ?? 0) / Math.max(1, this.#ms[+thread] ?? 1)),
    )
  }
}

export function isFailure(status: string): boolean {
  return Number(status) >= 400
}

function failuresAmong(statuses: Readonly<Record<string, number>>): number {
  return sum(Object.fromEntries(Object.entries(statuses).filter(([status]) => isFailure(status))))
}

function addAll(to: Record<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(counts)) to[name] = (to[name] ?? 0) + count
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}
