/** A failing run made shorter: actions that it fails without are left out, largest pieces first. */
import { runScenario } from './run.ts'
import type { Scenario, TimedAction } from './scenario.ts'

export async function shorten(scenario: Scenario): Promise<Scenario> {
  const fails = async (actions: readonly TimedAction[]): Promise<boolean> =>
    (await runScenario({ ...scenario, actions })).violations.length > 0
  if (!(await fails(scenario.actions))) return scenario
  let { actions } = scenario
  for (let size = Math.ceil(actions.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < actions.length;) {
      const fewer = actions.toSpliced(at, size)
      if (await fails(fewer)) actions = fewer
      else at += size
    }
  }
  return { ...scenario, actions }
}
