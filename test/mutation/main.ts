/**
 * `npm run mutate [-- <folder or file>…]`: plants small faults into the pure decisions, one at a time, and tells which of
 * them no unit test notices. Fails when a folder is below its floor. `--json <file>` writes the survivors for a program to read.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { argumentsOf, EXIT_USAGE } from '../support/arguments.ts'
import { FLOORS } from './floors.ts'
import { read, write } from './journal.ts'
import { report } from './report.ts'
import { findTargets, findWitnesses, ROOT, wholeFolders } from './targets.ts'

const CONFIG = 'test/mutation/vitest.config.ts'

/** The tests that reach a fault take a few seconds; what is silent for longer does not return. */
const SILENCE_MS = 45_000

const { values, words: filters } = argumentsOf(
  {
    command: 'mutate',
    does: 'Plants small faults into the pure decisions, and tells which of them no unit test notices. Takes ten minutes.',
    words: { sample: 'folder or file', about: 'only what is below it, edge/send for example' },
  },
  { json: { kind: 'text', sample: 'file', about: 'write the faults that no test noticed to this file' } },
)
const started = Date.now()
const targets = findTargets(filters)
if (targets.length === 0) {
  console.error(`There is nothing to mutate in ${filters.join(', ')} (see test/mutation/targets.ts).`)
  process.exit(EXIT_USAGE)
}
const witnesses = findWitnesses(targets.map(({ file }) => file))
const count = targets.reduce((sum, { mutants }) => sum + mutants.length, 0)
console.log(`${count} faults in ${targets.length} files, ${witnesses.length} test files that load them`)

const directory = mkdtempSync(join(tmpdir(), 'dropway-mutation-'))
const journal = join(directory, 'journal')
writeFileSync(journal, '')
process.once('exit', () => rmSync(directory, { recursive: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

await tryEverything()
const floors = Object.fromEntries(wholeFolders(filters).map((folder) => [folder, FLOORS[folder] ?? 0]))
const { text, survivors, isGood } = report(targets, read(journal), floors)
console.log(`${text}\n${Math.round((Date.now() - started) / 1000)} s`)
if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(survivors, null, 1))
process.exitCode = isGood ? 0 : 1

/** A fault that does not return, or ends the process, is caught by that; the run goes on with the next one. */
async function tryEverything(): Promise<void> {
  for (let left = witnesses; left.length > 0;) {
    const output = await runTests(left)
    const { done, open } = read(journal)
    if (open !== undefined) write(journal, { kind: 'end', ...open, verdict: 'endless' })
    const after = left.filter((witness) => !done.has(witness))
    if (after.length === left.length && open === undefined) throw new Error(`vitest did not run the tests:\n${output}`)
    left = after
  }
}

async function runTests(files: readonly string[]): Promise<string> {
  const vitest = spawn(process.execPath, [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--config', CONFIG], {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      MUTATION_JOURNAL: journal,
      MUTATION_FILTERS: JSON.stringify(filters),
      MUTATION_WITNESSES: JSON.stringify(files),
    },
  })
  let output = ''
  for (const stream of [vitest.stdout, vitest.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
  const watch = setInterval(() => {
    if (Date.now() - statSync(journal).mtimeMs < SILENCE_MS || read(journal).open === undefined) return
    process.kill(-vitest.pid!, 'SIGKILL')
  }, 1000)
  const stop = (): void => void process.kill(-vitest.pid!, 'SIGKILL')
  process.once('exit', stop)
  await new Promise((resolve) => vitest.once('close', resolve))
  process.off('exit', stop)
  clearInterval(watch)
  return output
}
