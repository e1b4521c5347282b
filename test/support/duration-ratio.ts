/**
 * Whether two answers take the same time. Both are asked in turns, so that a busy machine slows both alike, and medians are
 * compared; a difference is measured again before it is believed, with the bound as it is. An answer that tells by its time
 * does so in every attempt.
 */
import { median } from './figures.ts'

/** Too different so often in a row is not by chance. */
const ATTEMPTS = 4

interface Turns {
  /** Of each attempt. */
  readonly rounds: number
  /** Of the two medians, either way round. */
  readonly maxRatio: number
  /** Before each round of all attempts, which are numbered from 0. */
  prepare(round: number): Promise<unknown>
  /** What goes on behind an answer belongs to neither. */
  settle(): Promise<unknown>
}

type Ask = (round: number) => Promise<unknown>

/** Undefined when both take the same time; else what was seen. */
export async function ratioProblem(turns: Turns, one: Ask, other: Ask): Promise<string | undefined> {
  const seen: string[] = []
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const [first, second] = await mediansOf(turns, attempt * turns.rounds, one, other)
    if (Math.max(first / second, second / first) < turns.maxRatio) return undefined
    seen.push(`${first.toFixed(2)} and ${second.toFixed(2)} ms`)
  }
  return seen.join(', ')
}

async function mediansOf(turns: Turns, begin: number, one: Ask, other: Ask): Promise<[number, number]> {
  const kinds = [
    { ask: one, durations: [] as number[] },
    { ask: other, durations: [] as number[] },
  ] as const
  for (let round = begin; round < begin + turns.rounds; round++) {
    await turns.prepare(round)
    for (const { ask, durations } of round % 2 === 0 ? kinds : kinds.toReversed()) {
      const startedAt = performance.now()
      await ask(round)
      durations.push(performance.now() - startedAt)
      await turns.settle()
    }
  }
  return [median(kinds[0].durations), median(kinds[1].durations)]
}
