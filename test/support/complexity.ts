/**
 * How the time of a slow piece of work grows with its input. Two clocks are read, the wall's and the thread's own, since
 * others disturb the one and coarse ticks the other: work that is not linear fails by both. For fast functions see
 * growth.ts.
 */

/** A doubling of the input; linear is 2, quadratic 4. The rest is noise, caches and garbage collection. */
const MAX_GROWTH = 2.6
/** Shorter times say more about the machine than about the work. */
const MIN_MEASURED_MS = 10
/** Each round may find a better time for each size; one that is too slow so often is not slow by chance. */
const MIN_ROUNDS = 2
const MAX_ROUNDS = 16
/** Hopeless: no one needs to see that again. */
const ENDLESS_MS = 3000

/**
 * Undefined when twice the input takes at most 2.6 times as long, up to the largest one; else what was seen.
 * `prepare(n)` makes the worst input of size n and returns the work on it.
 */
export function growthProblem(prepare: (n: number) => () => unknown, largest: number): string | undefined {
  const sizes = [largest / 4, largest / 2, largest].map(Math.ceil)
  const works = sizes.map(prepare)
  const wall = works.map(() => Infinity)
  const thread = works.map(() => Infinity)
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    for (const [index, work] of works.entries()) {
      const time = measure(work)
      wall[index] = Math.min(wall[index]!, time.wallMs)
      thread[index] = Math.min(thread[index]!, time.threadMs)
      if (thread[index]! > ENDLESS_MS) return problem(sizes, thread)
    }
    if (round >= MIN_ROUNDS && (isLinear(wall) || isLinear(thread))) return undefined
  }
  return problem(sizes, wall)
}

/** Over both doublings: what a cache or the collector adds to one of them is no growth. */
function isLinear([quarter, , whole]: readonly number[]): boolean {
  return whole! < MIN_MEASURED_MS || whole! <= MAX_GROWTH ** 2 * quarter!
}

function problem(sizes: readonly number[], times: readonly number[]): string {
  return sizes.map((size, index) => `${size}: ${times[index]!.toFixed(1)} ms`).join(', ')
}

function measure(work: () => unknown): { wallMs: number; threadMs: number } {
  const startedAt = performance.now()
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return { wallMs: performance.now() - startedAt, threadMs: (user + system) / 1000 }
}
