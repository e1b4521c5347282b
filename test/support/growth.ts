/**
 * How the processor time of work grows with its input. Others on the machine add nothing to it, and the best of several runs
 * counts; work that seems to grow too fast is measured again after a pause, with the bound as it is.
 */
import { setTimeout as sleep } from 'node:timers/promises'

/** For a doubling of the input. Linear is 2, a square 4; the rest is what caches and the collector add. */
const MAX_PER_DOUBLING = 2.6
/** Work that takes less is timed by the clock, in samples so short that some of them no one interrupts. */
const SHORT_MS = 1
const MAX_CALLS = 4096
/** Longer work is timed in processor time, which the system counts in ticks of up to 4 ms: few of them must not matter. */
const LONG_SAMPLE_MS = 60
const SHORT_ROUNDS = 12
const LONG_ROUNDS = 1
/**
 * Ten nanoseconds for each byte of the largest input: about what reading it takes, and how fast that goes is the caches'
 * affair. No one notices it, whatever the curve.
 */
const READING_MS = 10e-6
/** Too slow so often in a row is not by chance. */
const ATTEMPTS = 6
const PAUSE_MS = 200
/** Hopeless: no need to see that again. */
const ENDLESS_MS = 20_000

/**
 * Undefined when twice the input takes at most 2.6 times as long, from a quarter of the largest one by way of a half to the
 * whole; else what was seen. `prepare(n)` makes the worst input of size n and returns the work on it.
 */
export async function growthProblem(
  prepare: (n: number) => () => unknown,
  largest: number,
): Promise<string | undefined> {
  const sizes = [largest / 4, largest / 2, largest].map(Math.ceil)
  const samples: Sample[] = []
  for (const size of sizes) samples.push(await sampleOf(prepare(size)))
  const best = samples.map(({ firstMs }) => firstMs)
  const isAllLong = samples.every(({ isLong }) => isLong)
  const rounds = samples.some(({ isLong }) => isLong) ? LONG_ROUNDS : SHORT_ROUNDS
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    // A long sample was timed when it was made.
    for (let round = attempt === 1 && isAllLong ? rounds : 0; round < rounds; round++) {
      // In turns, so that what disturbs one disturbs the others.
      for (const [index, sample] of samples.entries()) {
        best[index] = Math.min(best[index]!, await timeOf(sample))
        if (best[index]! > ENDLESS_MS) return told(sizes, best)
      }
    }
    if (isLinear(best) || best[2]! < largest * READING_MS) return undefined
    await sleep(PAUSE_MS * attempt)
  }
  return told(sizes, best)
}

/** For work on an input that is made beforehand. */
export function on<Input>(make: (n: number) => Input, run: (input: Input) => unknown): (n: number) => () => unknown {
  return (n) => {
    const input = make(n)
    return () => run(input)
  }
}

/** Over both doublings: where an input outgrows a cache, one of them takes a step that the other does not. A square is 16. */
function isLinear([quarter, , whole]: readonly number[]): boolean {
  return whole! <= MAX_PER_DOUBLING ** 2 * quarter!
}

function told(sizes: readonly number[], times: readonly number[]): string {
  return sizes.map((size, index) => `${size}: ${times[index]!.toFixed(4)} ms`).join(', ')
}

interface Sample {
  readonly work: () => unknown
  readonly calls: number
  readonly isLong: boolean
  /** What one call took when the sample was made; Infinity where that says nothing. */
  readonly firstMs: number
}

async function sampleOf(work: () => unknown): Promise<Sample> {
  const once = await shortest(work)
  if (once < SHORT_MS)
    return { work, calls: Math.min(MAX_CALLS, Math.ceil(SHORT_MS / once)), isLong: false, firstMs: Infinity }
  for (let calls = Math.ceil(LONG_SAMPLE_MS / once); ; calls *= 2) {
    const { clockMs, processorMs } = await measure(work, calls)
    if (processorMs < LONG_SAMPLE_MS / 2) continue
    return { work, calls, isLong: true, firstMs: Math.min(clockMs, processorMs) / calls }
  }
}

/** Of several: the first ones are spent on compiling, others are interrupted. */
async function shortest(work: () => unknown): Promise<number> {
  let best = Infinity
  let spent = 0
  for (let call = 0; call < 20 && (call < 2 || spent < LONG_SAMPLE_MS); call++) {
    const { clockMs } = await measure(work, 1)
    best = Math.min(best, clockMs)
    spent += clockMs
  }
  return Math.max(best, 1e-4)
}

/** Of one call. */
async function timeOf({ work, calls, isLong }: Sample): Promise<number> {
  const { clockMs, processorMs } = await measure(work, calls)
  return (isLong ? Math.min(clockMs, processorMs) : clockMs) / calls
}

async function measure(work: () => unknown, calls: number): Promise<{ clockMs: number; processorMs: number }> {
  const startedAt = performance.now()
  const before = process.threadCpuUsage()
  for (let call = 0; call < calls; call++) {
    const result = work()
    if (result instanceof Promise) await result
  }
  const { user, system } = process.threadCpuUsage(before)
  return { clockMs: performance.now() - startedAt, processorMs: (user + system) / 1000 }
}
