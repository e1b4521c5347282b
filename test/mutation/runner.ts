/**
 * Runs a test file as it is, notes which test reaches which fault, then makes one fault after the other active and runs the
 * tests that reach it, until one fails. Modules are loaded anew for each: what one fault leaves in a cache must not speak
 * for the next. A fault that is reached while they load (a pattern, a table) is shown to all tests of the file.
 */
import { TestRunner, vi, type RunnerTask, type RunnerTestCase, type RunnerTestFile, type RunnerTestSuite } from 'vitest'
import { collectTests } from 'vitest/internal/browser'
import { read, write, type Verdict } from './journal.ts'
import { toRelative } from './targets.ts'

/** What takes longer costs more than it tells. */
const MAX_TEST_MS = 4000

/** A loop that asks so often without an end has none. */
const MAX_QUESTIONS_MORE = 50
const MIN_QUESTIONS = 2_000_000

const { MUTATION_JOURNAL: journal = '' } = process.env

const NOBODY = Symbol('while loading')
type Reached = Map<string | typeof NOBODY, Set<number>>

const state = { active: 0, test: NOBODY as string | typeof NOBODY, questions: 0, limit: Number.POSITIVE_INFINITY }
const reached: Reached = new Map()
/** Without a fault, by the test's full name; quick tests are asked first. */
const durations = new Map<string, number>()
let isNoting = true

declare global {
  var __mutant: (number: number) => boolean
}

globalThis.__mutant = (number) => {
  if (++state.questions > state.limit) throw new Error('endless')
  if (isNoting) {
    let numbers = reached.get(state.test)
    if (numbers === undefined) reached.set(state.test, (numbers = new Set()))
    numbers.add(number)
  }
  return number === state.active
}

export default class MutationRunner extends TestRunner {
  readonly #questions = new Map<string, number>()

  override async onBeforeRunTask(test: RunnerTask): Promise<void> {
    await super.onBeforeRunTask(test)
    state.test = test.id
    state.questions = 0
  }

  override onAfterRunTask(test: RunnerTask): void {
    state.test = NOBODY
    this.#questions.set(test.id, state.questions)
    super.onAfterRunTask(test)
  }

  override async onAfterRunFiles(files: RunnerTestFile[]): Promise<void> {
    super.onAfterRunFiles(files)
    isNoting = false
    for (const file of files) await this.#tryAll(file)
  }

  async #tryAll(file: RunnerTestFile): Promise<void> {
    const witness = toRelative(file.filepath)
    if (file.tasks.length === 0) write(journal, { kind: 'useless', test: witness })
    const tests = testsOf(file).filter((test) => isUseful(test, witness))
    for (const test of tests) durations.set(test.fullName, test.result?.duration ?? 0)
    const loading = reached.get(NOBODY) ?? new Set()
    const all = new Set([...loading, ...tests.flatMap((test) => [...(reached.get(test.id) ?? [])])])
    write(journal, { kind: 'reached', numbers: [...all] })
    const { caught, tried } = read(journal)
    const open = [...all].filter((number) => !caught.has(number) && !tried.has(`${number} ${witness}`))
    for (const number of open) {
      const reaching = loading.has(number) ? tests : tests.filter((test) => reached.get(test.id)?.has(number))
      await this.#judge(number, file.filepath, reaching, tests)
    }
    write(journal, { kind: 'done', witness })
  }

  /** What a cache holds reaches a later test without the fault itself: who survives those is shown to all. */
  async #judge(
    number: number,
    filepath: string,
    reaching: readonly RunnerTestCase[],
    all: readonly RunnerTestCase[],
  ): Promise<void> {
    const witness = toRelative(filepath)
    const usual = all.reduce((sum, test) => sum + (this.#questions.get(test.id) ?? 0), 0)
    write(journal, { kind: 'begin', number, witness })
    Object.assign(state, { active: number, questions: 0, limit: MIN_QUESTIONS + usual * MAX_QUESTIONS_MORE })
    const isCaught =
      (await this.#isCaughtBy(filepath, namesOf(reaching))) ||
      (reaching.length < all.length && (await this.#isCaughtBy(filepath, namesOf(all))))
    const isEndless = state.questions > state.limit
    Object.assign(state, { active: 0, limit: Number.POSITIVE_INFINITY })
    vi.useRealTimers()
    const verdict: Verdict = isEndless ? 'endless' : isCaught ? 'caught' : 'survived'
    write(journal, { kind: 'end', number, witness, verdict })
  }

  async #isCaughtBy(filepath: string, names: ReadonlySet<string>): Promise<boolean> {
    vi.resetModules()
    // The reporter has no business with these.
    const quiet = Object.create(this, {
      onCollectStart: { value: undefined },
      onCollected: { value: undefined },
      onBeforeCollect: { value: undefined },
    }) as TestRunner
    const [file] = await collectTests([filepath], quiet)
    if (file === undefined || file.result?.state === 'fail') return true
    return await isCaughtBy(file, new Set(testsOf(file).filter((test) => names.has(test.fullName))))
  }
}

function namesOf(tests: readonly RunnerTestCase[]): ReadonlySet<string> {
  return new Set(tests.map((test) => test.fullName))
}

function isUseful(test: RunnerTestCase, witness: string): boolean {
  const isUsed = test.result?.state === 'pass' && (test.result.duration ?? 0) <= MAX_TEST_MS
  if (!isUsed && test.mode === 'run') write(journal, { kind: 'useless', test: `${witness} > ${test.name}` })
  return isUsed
}

function testsOf(suite: RunnerTestSuite): RunnerTestCase[] {
  return suite.tasks.flatMap((task) => (task.type === 'suite' ? testsOf(task) : [task]))
}

/** True as soon as something fails. */
async function isCaughtBy(suite: RunnerTestSuite, chosen: ReadonlySet<RunnerTestCase>): Promise<boolean> {
  const hooks = TestRunner.getSuiteHooks(suite)
  const within = suite.tasks
    .filter((task) => (task.type === 'suite' ? testsOf(task).some((test) => chosen.has(test)) : chosen.has(task)))
    .sort((a, b) => durationOf(a) - durationOf(b))
  if (within.length === 0) return false
  try {
    for (const hook of hooks.beforeAll) await hook(suite)
    for (const task of within) {
      if (task.type === 'suite' ? await isCaughtBy(task, chosen) : await fails(task)) return true
    }
    return false
  } catch {
    return true
  } finally {
    for (const hook of hooks.afterAll) await Promise.resolve(hook(suite)).catch(() => undefined)
  }
}

function durationOf(task: RunnerTask): number {
  return task.type === 'suite' ? Math.min(...testsOf(task).map(durationOf)) : (durations.get(task.fullName) ?? 0)
}

async function fails(test: RunnerTestCase): Promise<boolean> {
  const suites = suitesAround(test)
  try {
    for (const suite of suites)
      for (const hook of TestRunner.getSuiteHooks(suite).beforeEach) await hook(test.context, suite)
    await TestRunner.getTestFn(test)()
    return false
  } catch {
    return true
  } finally {
    for (const suite of suites.toReversed())
      for (const hook of TestRunner.getSuiteHooks(suite).afterEach)
        await Promise.resolve(hook(test.context, suite)).catch(() => undefined)
  }
}

/** From the outside in. */
function suitesAround(test: RunnerTestCase): RunnerTestSuite[] {
  const suites: RunnerTestSuite[] = []
  for (let suite: RunnerTestSuite | undefined = test.suite ?? test.file; suite !== undefined; suite = suite.suite)
    suites.unshift(suite)
  if (suites[0] !== test.file) suites.unshift(test.file)
  return suites
}
