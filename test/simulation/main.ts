/**
 * `npm run simulate -- --seeds 100000 [--from <seed>]`: runs so many scenarios and says how quickly; the first that breaks
 * a promise is shortened and told. `--seed <seed>` tells one run, bit by bit the same each time.
 */
import { parseArgs } from 'node:util'
import { runScenario } from './run.ts'
import { scenarioOf } from './scenario.ts'
import { shorten } from './shorten.ts'
import { baseSeedOfToday, runSeeds } from './seeds.ts'

const PROGRESS_MS = 5000

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '10000' },
    from: { type: 'string' },
    seed: { type: 'string' },
  },
})

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function tellSeed(seed: number): Promise<void> {
  const scenario = scenarioOf(seed)
  const shortened = await shorten(scenario)
  const { violations, story } = await runScenario(shortened, true)
  print(`seed ${seed}: ${scenario.actions.length} actions, shortened to ${shortened.actions.length}`)
  for (const line of story) print(line)
  for (const { promise, what } of violations) print(`VIOLATED ${promise}: ${what}`)
  if (violations.length === 0) print('every promise was kept')
}

async function simulate(count: number, from: number): Promise<number> {
  const startedAt = performance.now()
  let toldAt = startedAt
  const rate = (done: number): string => `${Math.round((1000 * done) / (performance.now() - startedAt))} seeds/s`
  print(`${count} seeds from ${from}`)
  const failed = await runSeeds(from, count, (done) => {
    if (performance.now() - toldAt < PROGRESS_MS) return
    toldAt = performance.now()
    print(`${done} seeds, ${rate(done)}`)
  })
  if (failed === undefined) {
    print(`${count} seeds, ${rate(count)}: every promise was kept`)
    return 0
  }
  print(
    `seed ${failed.seed} broke a promise, after ${failed.after} seeds. Again: npm run simulate -- --seed ${failed.seed}`,
  )
  await tellSeed(failed.seed)
  return 1
}

if (values.seed !== undefined) await tellSeed(Number(values.seed))
else process.exitCode = await simulate(Number(values.seeds), Number(values.from ?? baseSeedOfToday()))
