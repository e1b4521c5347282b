/** Says whether work grows with its input as it should, by counting it: the same figures in every run, on any machine. */
import { fork } from 'node:child_process'
import { sizesOf, type CaseCounts, type WorkCase } from './cases.ts'

/** What twice the input may take. Linear is 2, a square 4; the rest is logarithms and tables that double. */
const MAX_PER_DOUBLING = 2.3
/** Steps that do not depend on the input, such as those of a table that grows. */
const SLACK = 2000

/** Counts all cases of a module in one process: it exports them as `cases`. */
export function countWork(module: URL): Promise<ReadonlyMap<string, readonly number[]>> {
  const child = fork(new URL('./child.ts', import.meta.url), [module.href], {
    execArgv: ['--no-opt', '--no-maglev', '--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const counted = new Map<string, readonly number[]>()
  return new Promise((resolve, reject) => {
    child.on('message', ({ name, counts }: CaseCounts) => void counted.set(name, counts))
    child.on('error', reject)
    child.on('exit', (code) => {
      if (code === 0) resolve(counted)
      else reject(new Error(`counting ended with ${code} after ${[...counted.keys()].at(-1) ?? 'nothing'}`))
    })
  })
}

/** Undefined when the work is linear and small; else what was counted. */
export function growthProblem(one: WorkCase, counts: readonly number[] | undefined): string | undefined {
  const sizes = sizesOf(one)
  const [quarter, half, whole] = counts ?? []
  if (quarter === undefined || half === undefined || whole === undefined) return 'nothing was counted'
  const told = sizes.map((size, index) => `${size}: ${counts?.[index]} steps`).join(', ')
  if (half > MAX_PER_DOUBLING * quarter + SLACK || whole > MAX_PER_DOUBLING * half + SLACK)
    return `more than linear: ${told}`
  return whole > one.maxPerUnit * one.counted + SLACK
    ? `more than ${one.maxPerUnit} steps for each: ${told}`
    : undefined
}
