/** How the time of a fast function grows with its input. For slow ones see complexity.ts. */

/** A doubling of the input: linear is 2, a square 4; the rest is what caches and the collector add. */
const MAX_PER_DOUBLING = 2.6
/** The best of several runs is the one that no one disturbed. */
const RUNS = 9
/** A measurement of less is mostly noise: the function is called as often as it takes. */
const MIN_SAMPLE_MS = 0.5
const MAX_CALLS = 4096
/** On a busy machine even the best of several may be bad; so often in a row it is not by chance. */
const ATTEMPTS = 6

/**
 * Undefined when `run` takes at most 2.6 times as long for twice the input, up to `largest`; else what was seen. Small and
 * large inputs take turns, so that a disturbance of one disturbs the other.
 */
export function growthOf<Input>(
  make: (size: number) => Input,
  run: (input: Input) => unknown,
  largest: number,
): string | undefined {
  const inputs = [make(largest / 4), make(largest / 2), make(largest)]
  const calls = callsFor(() => run(inputs[0]!))
  const best = inputs.map(() => Number.POSITIVE_INFINITY)
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    for (let round = 0; round < RUNS; round++) {
      for (const [index, input] of inputs.entries()) {
        const startedAt = performance.now()
        for (let call = 0; call < calls; call++) run(input)
        best[index] = Math.min(best[index]!, performance.now() - startedAt)
      }
    }
    // Over both doublings: a disturbed half makes one of them look better and the other worse.
    if (best[2]! <= MAX_PER_DOUBLING ** 2 * best[0]!) return undefined
  }
  return `a quarter, a half and all of ${largest} took ${best.map((ms) => (ms / calls).toFixed(4)).join(', ')} ms`
}

function callsFor(run: () => unknown): number {
  for (let calls = 1; calls < MAX_CALLS; calls *= 2) {
    const startedAt = performance.now()
    for (let call = 0; call < calls; call++) run()
    if (performance.now() - startedAt >= MIN_SAMPLE_MS) return calls
  }
  return MAX_CALLS
}
