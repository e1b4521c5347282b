/** Many runs, one after the other. */
import { runScenario } from './run.ts'
import { scenarioOf } from './scenario.ts'

export interface Failed {
  readonly seed: number
  /** How many were run until then, this one included. */
  readonly after: number
}

/** The first seed that breaks a promise. */
export async function runSeeds(
  from: number,
  count: number,
  onProgress: (done: number) => void = () => {},
): Promise<Failed | undefined> {
  for (let done = 0; done < count; done++) {
    const seed = (from + done) >>> 0
    const { violations } = await runScenario(scenarioOf(seed))
    if (violations.length > 0) return { seed, after: done + 1 }
    onProgress(done + 1)
  }
  return undefined
}
