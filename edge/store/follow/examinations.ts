/**
 * Looks at what an edge is told before it replaces what is served, and tells slow from unable. All other news wait for a
 * look, so it is short; what is not done by then goes on by itself, is "still being read" meanwhile, and is joined by the
 * next look. Only what takes minutes counts as a problem: on a busy machine a large manifest takes seconds.
 */
import { STILL_READING } from '../../../shared/contracts/live-edges.ts'
import type { Timers } from '../../../shared/running/timers.ts'
import { refusalKey, type Entry } from '../replica/replica.ts'
import type { ProblemOf } from './usable.ts'

/** One blob store that does not answer must not hold up all other news. */
export const LOOK_MS = 1000
/** What has not been read by then is read anew at a later look. */
const MAX_READING_MS = 300_000

export interface Examinations {
  /** In the same order: why an entry cannot be used, `STILL_READING`, or undefined when it can. Takes `lookMs` at most. */
  problemsOf(entries: readonly Entry[], lookMs?: number): Promise<(string | undefined)[]>
  /** The names (`refusalKey`) of what was still being read and is done: another look at them is worth it. */
  done(): string[]
}

interface Reading {
  readonly what: number | string
  readonly since: number
  readonly problem: Promise<string | undefined>
  isDone: boolean
}

export function createExaminations(problemOf: ProblemOf, timers: Timers): Examinations {
  /** By name (`refusalKey`): what is read of it is the newest that was asked for. */
  const underWay = new Map<string, Reading>()

  function begin(entry: Entry): Reading {
    const reading: Reading = { what: whatOf(entry), since: timers.now(), problem: problemOf(entry), isDone: false }
    const end = (): void => void (reading.isDone = true)
    reading.problem.then(end, end)
    return reading
  }

  /** What was taken by another way before it was read is asked for by no look any more. */
  function forgetOld(): void {
    for (const [name, { since }] of underWay) if (timers.now() - since > MAX_READING_MS) underWay.delete(name)
  }

  async function look(entry: Entry, end: Promise<'end'>): Promise<string | undefined> {
    const name = refusalKey(entry)
    const known = underWay.get(name)
    const reading = known?.what === whatOf(entry) ? known : begin(entry)
    underWay.set(name, reading)
    const outcome = await Promise.race([reading.problem.then((problem) => ({ problem })), end])
    if (outcome === 'end' && timers.now() - reading.since <= MAX_READING_MS) return STILL_READING
    if (underWay.get(name) === reading) underWay.delete(name)
    return outcome === 'end' ? `it could not be read within ${MAX_READING_MS / 60_000} minutes` : outcome.problem
  }

  return {
    async problemsOf(entries, lookMs = LOOK_MS) {
      const end = timers.sleep(lookMs).then(() => 'end' as const)
      const problems = await Promise.all(entries.map((entry) => look(entry, end)))
      forgetOld()
      return problems
    },
    done: () => [...underWay].filter(([, { isDone }]) => isDone).map(([name]) => name),
  }
}

/** Tells entries of one name apart: a later one is another thing to read. */
function whatOf(entry: Entry): number | string {
  return entry.kind === 'route' ? entry.record.revision : entry.value
}
