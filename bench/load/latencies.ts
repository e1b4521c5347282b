/** Many latencies in little memory: counts by buckets, each two percent wider than the one before. */

const LEAST_MS = 0.01
const GROWTH = Math.log(1.02)

/** As threads send them to each other. */
export interface CountedLatencies {
  /** Bucket and count in turn. */
  readonly counts: readonly number[]
  readonly maxMs: number
}

export interface LatencyBucket {
  readonly fromMs: number
  readonly toMs: number
  readonly count: number
}

export class Latencies {
  readonly #counts = new Map<number, number>()
  #total = 0
  #maxMs = 0

  get total(): number {
    return this.#total
  }

  get maxMs(): number {
    return this.#maxMs
  }

  note(ms: number): void {
    this.#maxMs = Math.max(this.#maxMs, ms)
    this.#count(Math.max(0, Math.floor(Math.log(ms / LEAST_MS) / GROWTH)), 1)
  }

  add({ counts, maxMs }: CountedLatencies): void {
    this.#maxMs = Math.max(this.#maxMs, maxMs)
    for (let at = 0; at < counts.length; at += 2) this.#count(counts[at] ?? 0, counts[at + 1] ?? 0)
  }

  #count(bucket: number, count: number): void {
    this.#counts.set(bucket, (this.#counts.get(bucket) ?? 0) + count)
    this.#total += count
  }

  /** What was counted, which is then forgotten. */
  take(): CountedLatencies {
    const taken = { counts: [...this.#counts].flat(), maxMs: this.#maxMs }
    this.#counts.clear()
    this.#total = 0
    this.#maxMs = 0
    return taken
  }

  /** At least this share took no longer, to two percent; 0 when nothing was counted. */
  quantileMs(share: number): number {
    let missing = Math.max(1, Math.ceil(this.#total * share))
    for (const { toMs, count } of this.buckets()) {
      missing -= count
      if (missing <= 0) return Math.min(toMs, this.#maxMs)
    }
    return this.#maxMs
  }

  /** From the shortest latency to the longest. */
  buckets(): LatencyBucket[] {
    return [...this.#counts]
      .toSorted(([one], [other]) => one - other)
      .map(([bucket, count]) => ({ fromMs: edgeOf(bucket), toMs: edgeOf(bucket + 1), count }))
  }
}

function edgeOf(bucket: number): number {
  return LEAST_MS * Math.exp(bucket * GROWTH)
}
