/** Waiting times and other ladders: one value per step, and the last one for every step beyond. */
export type Steps = readonly [number, ...number[]]

/** The value of a step; the first one has the index 0. */
export function stepAt(steps: Steps, index: number): number {
  return steps[Math.min(index, steps.length - 1)] ?? steps[0]
}
