/** What several runs of the same tests say together. */

export interface Run {
  /** The commit that was checked out. */
  readonly commit: string
  /** The command that was run. */
  readonly command: string
  /** Busy loops beside it. */
  readonly beside: number
  readonly seconds: number
  /** Part of the processor time wanted meanwhile that the host of a virtual machine gave to others. */
  readonly stolen: number
  readonly passed: number
  /** Left out by the tests themselves: no program, no such machine. */
  readonly skipped: number
  /** The names of those that failed; also what ended the command before its tests. */
  readonly failed: readonly string[]
  /** A digest of the names of all tests, whatever became of them. */
  readonly tests: string
}

/** One sentence about runs with as many busy loops beside them, and whether all of them did the same and were green. Pure. */
export function sayTogether(runs: readonly Run[]): { readonly text: string; readonly isGreen: boolean } {
  const counts = [...new Set(runs.map(({ beside }) => beside))].toSorted((one, other) => one - other)
  const lines = counts.map((beside) => {
    const those = runs.filter((run) => run.beside === beside)
    const green = those.filter(isGreen).length
    return `${those.length} ${besideWords(beside)}: ${green} green, ${those.map(durationOf).join(', ')}`
  })
  const sets = [...new Set(runs.map(({ tests }) => tests))]
  if (sets.length > 1) lines.push(`not the same tests each time: compare ${sets.map(namesFile).join(', ')}`)
  for (const [name, times] of failures(runs)) lines.push(`red ${times} ×: ${name}`)
  return { text: lines.join('\n'), isGreen: runs.length > 0 && sets.length === 1 && runs.every(isGreen) }
}

/** Where the names of the tests of a run are, by their digest, among what is kept of runs. */
export function namesFile(tests: string): string {
  return `names-${tests.slice(0, 12)}`
}

/** Green is a run in which something ran and nothing failed. */
export function isGreen({ passed, failed }: Run): boolean {
  return passed > 0 && failed.length === 0
}

function besideWords(beside: number): string {
  if (beside === 0) return 'alone'
  return beside === 1 ? 'beside a busy loop' : `beside ${beside} busy loops`
}

function failures(runs: readonly Run[]): [string, number][] {
  const times = new Map<string, number>()
  for (const name of runs.flatMap(({ failed }) => failed)) times.set(name, (times.get(name) ?? 0) + 1)
  return [...times].toSorted(([, one], [, other]) => other - one)
}

/** How long a run took, and what the host kept of it where that tells. */
export function durationOf({ seconds, stolen }: Pick<Run, 'seconds' | 'stolen'>): string {
  const percent = Math.round(stolen * 100)
  return percent === 0 ? duration(seconds) : `${duration(seconds)} (${percent} % to others of the host)`
}

export function duration(seconds: number): string {
  const whole = Math.round(seconds)
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}
