/**
 * `npm run test:repeat [-- --times 20] [--beside 2] [file…]`: runs `npm test`, or some of its files, again and again, and says
 * whether every run was green and had the same tests. Runs of one commit add up over several calls: they are kept in
 * `test/output/repeat/journal`, and beside it the names of their tests and what a red one printed.
 */
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { argumentsOf, EXIT_USAGE } from '../support/arguments.ts'
import { watchHost } from '../support/machine.ts'
import { durationOf, isGreen, namesFile, type Run, sayTogether } from './runs.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const KEPT = path.join(ROOT, 'test', 'output', 'repeat')
const JOURNAL = path.join(KEPT, 'journal')
const REPORT = path.join(KEPT, 'report.json')
const LOG = path.join(KEPT, 'run.log')

/** Folders whose files have settings of their own, or those of `pages`. */
const OWN_SETTINGS = /^test\/(pages|browser|operations|faults|image|client)\//

/** What vitest's reporter for programs writes, as far as it is read. */
const reportSchema = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      assertionResults: z.array(z.object({ fullName: z.string(), status: z.string() })),
    }),
  ),
})

const { values, words: files } = argumentsOf(
  {
    command: 'test:repeat',
    does: 'Runs npm test, or some of its files, again and again. All runs of this commit are told together at the end.',
    words: { sample: 'file', about: 'only these, instead of all of npm test' },
  },
  {
    times: { kind: 'whole', least: 1, most: 1000, default: 20, about: 'how often' },
    beside: { kind: 'whole', least: 0, most: 16, default: 0, about: 'busy loops that want the processors too' },
    name: { kind: 'text', sample: 'pattern', about: 'only tests whose name matches' },
  },
)

if (git('status', '--porcelain') !== '') {
  console.error('There are changes that no commit has: runs of them would prove nothing of any commit.')
  process.exit(EXIT_USAGE)
}
mkdirSync(KEPT, { recursive: true })
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
const commit = git('rev-parse', 'HEAD')
const command = commandFor(files, values.name)
for (let index = 0; index < values.times; index++) {
  const run = await runOnce()
  appendFileSync(JOURNAL, `${JSON.stringify(run)}\n`)
  console.log(
    `${index + 1}/${values.times} ${durationOf(run)}: ${run.passed} passed, ${run.failed.length} failed, ${run.skipped} skipped`,
  )
  for (const name of run.failed) console.log(`  red: ${name}`)
  if (!isGreen(run)) renameSync(LOG, path.join(KEPT, `red-${Date.now()}.log`))
}
const together = sayTogether(journal().filter((run) => run.commit === commit && run.command === command))
console.log(`${command} at ${commit.slice(0, 12)} (${process.arch})\n${together.text}`)
process.exitCode = together.isGreen ? 0 : 1

/** The command that anybody would type, without what lets this one read its results. */
function commandFor(wanted: readonly string[], name: string | undefined): string {
  const only = name === undefined ? '' : ` -t ${JSON.stringify(name)}`
  if (wanted.length === 0) return name === undefined ? 'npm test' : `npm test --${only}`
  const folder = OWN_SETTINGS.exec(wanted[0] ?? '')?.[1]
  const settings = folder === 'browser' ? 'pages' : folder
  const config = settings === undefined ? '' : ` --config test/${settings}/vitest.config.ts`
  return `npx vitest run${config} ${wanted.join(' ')}${only}`
}

async function runOnce(): Promise<Run> {
  rmSync(REPORT, { force: true })
  const log = openSync(LOG, 'w')
  const neighbours = Array.from({ length: values.beside }, () => spawn('yes', { stdio: 'ignore' }))
  const startedAt = performance.now()
  const stolen = watchHost()
  const told = `--reporter=default --reporter=json --outputFile.json=${JSON.stringify(REPORT)}`
  const child = spawn(`${command}${command === 'npm test' ? ' --' : ''} ${told}`, {
    shell: true,
    cwd: ROOT,
    stdio: ['ignore', log, log],
    // A group of its own, so that all of it can be ended.
    detached: true,
  })
  const endAll = (): void => {
    neighbours.forEach((neighbour) => neighbour.kill())
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid)
  }
  process.once('exit', endAll)
  const [code] = (await once(child, 'close')) as [number | null]
  const taken = { seconds: Math.round((performance.now() - startedAt) / 1000), stolen: stolen() }
  neighbours.forEach((neighbour) => neighbour.kill())
  process.removeListener('exit', endAll)
  return { commit, command, beside: values.beside, ...taken, ...resultsOf(code) }
}

function resultsOf(code: number | null): Pick<Run, 'passed' | 'skipped' | 'failed' | 'tests'> {
  if (!existsSync(REPORT))
    return { passed: 0, skipped: 0, failed: [`the command ended with ${code} before its tests`], tests: '' }
  const { testResults } = reportSchema.parse(JSON.parse(readFileSync(REPORT, 'utf8')))
  const tests = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map(({ fullName, status }) => ({ name: `${path.relative(ROOT, name)} > ${fullName}`, status })),
  )
  const failed = tests.filter(({ status }) => status === 'failed').map(({ name }) => name)
  const brokenFiles = testResults
    .filter(
      ({ status, assertionResults }) => status === 'failed' && !assertionResults.some((one) => one.status === 'failed'),
    )
    .map(({ name }) => path.relative(ROOT, name))
  const all = [...failed, ...brokenFiles]
  if (code !== 0 && all.length === 0) all.push(`the command ended with ${code}`)
  const names = tests
    .map(({ name }) => name)
    .toSorted()
    .join('\n')
  const digest = createHash('sha256').update(names).digest('hex')
  writeFileSync(path.join(KEPT, namesFile(digest)), `${names}\n`)
  return {
    passed: tests.filter(({ status }) => status === 'passed').length,
    skipped: tests.filter(({ status }) => status !== 'passed' && status !== 'failed').length,
    failed: all,
    tests: digest,
  }
}

function journal(): Run[] {
  return readFileSync(JOURNAL, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Run)
}

function git(...words: readonly string[]): string {
  return execFileSync('git', words, { cwd: ROOT, encoding: 'utf8' }).trim()
}
