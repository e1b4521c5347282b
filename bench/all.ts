/** Benches in order, each in a process of its own, and one report of all of them: report.md and report.json. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { benches, type BenchName } from './benches.ts'
import { createProgress } from './progress.ts'
import { commitOf, machineFacts, MISSED, resultSince, type Machine } from './results.ts'

interface Run {
  readonly name: BenchName
  readonly seconds: number
  readonly code: number
  readonly output: string
  readonly figures?: unknown
}

interface AllOptions {
  readonly isQuick: boolean
  readonly folder: string
}

/** What a bench that failed said last. */
const LAST_WORDS_CHARS = 2000
const TICK_MS = 1000

export async function runAll(names: readonly BenchName[], { isQuick, folder }: AllOptions): Promise<void> {
  const machine = machineFacts()
  const results = isQuick ? mkdtempSync(path.join(os.tmpdir(), 'dropway-bench-quick-')) : folder
  mkdirSync(results, { recursive: true })
  const runs: Run[] = []
  for (const [index, name] of names.entries()) {
    runs.push(await runOne(name, `[${index + 1}/${names.length}] ${name}`, isQuick, results))
    // After each: stopped halfway, it keeps what was measured.
    writeReport(machine, runs, isQuick, results)
  }
  process.stderr.write(`written: ${path.relative(process.cwd(), path.join(results, 'report.md'))}\n`)
  process.exitCode = runs.some(({ code }) => code !== 0) ? 1 : 0
}

async function runOne(name: BenchName, place: string, isQuick: boolean, results: string): Promise<Run> {
  const args = [path.join(import.meta.dirname, 'main.ts'), name, ...(isQuick ? benches[name].quick : [])]
  const child = spawn(process.execPath, args, {
    env: { ...process.env, BENCH_RESULTS: results },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const sinceMs = Date.now()
  const startedAt = performance.now()
  const elapsed = (): number => Math.round((performance.now() - startedAt) / 1000)
  const progress = createProgress()
  let output = ''
  let errors = ''
  // Without a terminal, the bench says every few seconds how far it is.
  const show = (): void =>
    progress.show(`${place}, ${elapsed()} s: ${errors.trimEnd().split('\n').at(-1) || benches[name].asks}`)
  show()
  const ticking = setInterval(show, TICK_MS)
  child.stdout.on('data', (chunk) => (output += String(chunk)))
  child.stderr.on('data', (chunk) => (errors = `${errors}${chunk}`.slice(-LAST_WORDS_CHARS)))
  const [code] = (await once(child, 'close')) as [number | null]
  clearInterval(ticking)
  progress.clear()
  const isDone = code === 0 || code === MISSED
  process.stderr.write(`${place}: ${isDone ? `done${endOf(code)}` : `failed (${code})`} in ${elapsed()} s\n`)
  if (!isDone) process.stderr.write(`${errors}\n`)
  const text = stripVTControlCharacters(isDone ? output : output + errors).trim()
  return { name, seconds: elapsed(), code: code ?? 1, output: text, figures: resultSince(results, name, sinceMs) }
}

function endOf(code: number | null): string {
  return code === 0 ? '' : code === MISSED ? ', a bar missed' : `, failed with ${code}`
}

function writeReport(facts: Machine, all: readonly Run[], isQuick: boolean, results: string): void {
  const commit = commitOf(import.meta.dirname)
  const head = [
    '# Figures',
    '',
    `Measured ${facts.measuredAt} at commit ${commit}, Node ${facts.node}, ${facts.architecture}, ${facts.machine}, ${facts.memoryGb} GB,`,
    `Linux ${facts.kernel}, load average at the start ${facts.loadAverage}${isQuick ? '; a quick run: the figures say little' : ''}.`,
  ]
  const parts = all.map(({ name, seconds, code, output }) =>
    [
      `## ${benches[name].asks}`,
      '',
      `\`npm run bench:${name}\`, ${seconds} s${endOf(code)}`,
      '',
      '```',
      output,
      '```',
    ].join('\n'),
  )
  writeFileSync(path.join(results, 'report.md'), `${[head.join('\n'), ...parts].join('\n\n')}\n`)
  const record = { ...facts, commit, quick: isQuick, runs: all }
  writeFileSync(path.join(results, 'report.json'), `${JSON.stringify(record, undefined, 2)}\n`)
}
