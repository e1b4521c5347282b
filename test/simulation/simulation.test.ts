/** Some hundred runs of the publish path, always the same ones; `npm run simulate` makes others. */
import { expect, test } from 'vitest'
import { runScenario } from './run.ts'
import { scenarioOf } from './scenario.ts'
import { runSeeds } from './seeds.ts'

const FROM = 1
const SEEDS = 400

test('a run is a function of its seed', async () => {
  for (const seed of [3, 77, 1623]) {
    const [first, second] = [await runScenario(scenarioOf(seed), true), await runScenario(scenarioOf(seed), true)]
    expect(first.story.length).toBeGreaterThan(5)
    expect(second).toEqual(first)
  }
})

test('every promise is kept, whatever happens', async () => {
  const failed = await runSeeds(FROM, SEEDS)
  expect(failed, `again: npm run simulate -- --seed ${failed?.seed}`).toBeUndefined()
})
