/**
 * `npm run simulate -- --seeds 100000 [--from <seed>]`: runs so many scenarios, from anywhere unless told, and says how
 * quickly; the first that breaks a promise is shortened and told. `--seed <seed>` tells one run, bit by bit the same each time. `--planted` plants known
 * mistakes, each in a process of its own, and says after how many seeds each was found.
 */
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { argumentsOf } from '../support/arguments.ts'
import { mistakes, plant } from './planted.ts'

const PROGRESS_MS = 5000
const DEFAULT_SEEDS = 10_000
/** Each planted mistake has to be found within so many. */
const PLANTED_SEEDS = 20_000

const SEED = { kind: 'whole', least: 0, most: Number.MAX_SAFE_INTEGER } as const
const { values } = argumentsOf(
  {
    command: 'simulate',
    does: 'Runs the publish path on simulated machines, and says whether every promise was kept.',
  },
  {
    seeds: {
      ...SEED,
      least: 1,
      about: `how many runs (${DEFAULT_SEEDS}; with --planted at most ${PLANTED_SEEDS} each)`,
    },
    from: { ...SEED, about: 'the first seed, anywhere by default' },
    seed: { ...SEED, about: 'tell this one run, bit by bit' },
    planted: { kind: 'flag', about: 'plant known mistakes, and say after how many seeds each was found' },
    plant: { kind: 'text', sample: 'name', about: 'plant this mistake' },
  },
)

// Before anything of the publish path is loaded.
if (values.plant !== undefined) plant(values.plant)
const { runScenario } = await import('./run.ts')
const { scenarioOf } = await import('./scenario.ts')
const { shorten } = await import('./shorten.ts')
const { runSeeds } = await import('./seeds.ts')

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

async function simulate(count: number, from: number): Promise<boolean> {
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
    return true
  }
  print(
    `seed ${failed.seed} broke a promise, after ${failed.after} seeds. Again: npm run simulate -- --seed ${failed.seed}`,
  )
  await tellSeed(failed.seed)
  return false
}

/** Returns whether each was found. As many processes as there are processors; what one prints is the next that is done. */
async function findPlanted(): Promise<boolean> {
  const left = mistakes.map(({ name }) => name)
  let found = 0
  async function searchOn(): Promise<void> {
    for (let name = left.shift(); name !== undefined; name = left.shift()) if (await isFound(name)) found++
  }
  await Promise.all(Array.from({ length: availableParallelism() }, searchOn))
  print(`${found} of ${mistakes.length} mistakes found`)
  return found === mistakes.length
}

async function isFound(name: string): Promise<boolean> {
  const program = fileURLToPath(import.meta.url)
  const args = [program, '--plant', name, '--seeds', String(values.seeds ?? PLANTED_SEEDS), '--from', '1']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const said = await text(child.stdout)
  const after = /broke a promise, after (\d+) seeds/.exec(said)?.[1]
  const promise = /VIOLATED ([\w ]+):/.exec(said)?.[1]
  print(after === undefined ? `NOT FOUND: ${name}` : `${name}: found after ${after} seeds (${promise})`)
  return after !== undefined
}

if (values.planted) process.exitCode = (await findPlanted()) ? 0 : 1
else if (values.seed !== undefined) await tellSeed(values.seed)
else process.exitCode = (await simulate(values.seeds ?? DEFAULT_SEEDS, values.from ?? randomInt(2 ** 32))) ? 0 : 1
