/**
 * Every bench in order, and one report of all of them: bench/results/report.md and report.json. A quick run leaves
 * the figures there alone; it says where its own are.
 *
 *   npm run bench [-- --quick] [--only edge,load]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { parseArgs, stripVTControlCharacters } from 'node:util'
import { commitOf, machineFacts, resultSince, RESULTS, type Machine } from './results.ts'

interface Bench {
  readonly name: string
  readonly file: string
  readonly asks: string
  /** With --quick: enough to see that it works. */
  readonly quick: readonly string[]
}

const BENCHES: readonly Bench[] = [
  {
    name: 'edge',
    file: 'edge/edge.ts',
    asks: 'What a request costs, beside nginx and Caddy',
    quick: ['--seconds', '1'],
  },
  { name: 'walk', file: 'edge/walk.ts', asks: 'What the edge itself adds to a request', quick: ['--rounds', '3'] },
  {
    name: 'connections',
    file: 'edge/connections.ts',
    asks: 'Ten thousand connections, and a second worker',
    quick: ['--idle', '200', '--kept', '500', '--seconds', '1'],
  },
  {
    name: 'edge-outage',
    file: 'edge/outage.ts',
    asks: 'Visitors while Redis is killed or frozen',
    quick: ['--seconds', '2', '--rounds', '1'],
  },
  {
    name: 'routes',
    file: 'edge/routes.ts',
    asks: 'A routing table of a million hosts',
    quick: ['--routes', '50000', '--publishes', '20'],
  },
  { name: 'handshake', file: 'edge/handshake.ts', asks: 'TLS handshakes with ten thousand certificates', quick: ['1'] },
  {
    name: 'publish',
    file: 'stack/publish.ts',
    asks: 'From an upload to the 201',
    quick: ['--rounds', '1', '--parallel', '2'],
  },
  {
    name: 'mixed',
    file: 'stack/mixed.ts',
    asks: 'Visitors and publishers together',
    quick: ['--drops', '200', '--seconds', '3'],
  },
]

interface Run {
  readonly name: string
  readonly asks: string
  readonly seconds: number
  readonly code: number
  readonly output: string
  readonly figures?: unknown
}

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false }, only: { type: 'string' } } })
const wanted = BENCHES.filter(({ name }) => values.only === undefined || values.only.split(',').includes(name))
const machine = machineFacts()
const results = values.quick ? mkdtempSync(path.join(os.tmpdir(), 'dropway-bench-quick-')) : RESULTS
const runs: Run[] = []
for (const [index, bench] of wanted.entries()) {
  runs.push(await run(bench, `${index + 1}/${wanted.length}`))
  // After each: stopped halfway, it keeps what was measured.
  writeReport(machine, runs)
}
process.stderr.write(`written: ${path.relative(process.cwd(), path.join(results, 'report.md'))}\n`)
process.exitCode = runs.some(({ code }) => code !== 0) ? 1 : 0

async function run({ name, file, asks, quick }: Bench, progress: string): Promise<Run> {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, file), ...(values.quick ? quick : [])], {
    env: { ...process.env, BENCH_RESULTS: results },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const sinceMs = Date.now()
  const startedAt = performance.now()
  const elapsed = (): number => Math.round((performance.now() - startedAt) / 1000)
  const show = (text: string): void =>
    void process.stderr.write(`${process.stderr.isTTY ? '\r' : ''}[${progress}] ${text}`)
  show(`${name}: ${asks}${process.stderr.isTTY ? '' : '\n'}`)
  const ticking = process.stderr.isTTY ? setInterval(() => show(`${name}: ${asks} ${elapsed()} s `), 1000) : undefined
  let output = ''
  let errors = ''
  child.stdout.on('data', (chunk) => (output += String(chunk)))
  child.stderr.on('data', (chunk) => (errors += String(chunk)))
  const [code] = (await once(child, 'close')) as [number | null]
  clearInterval(ticking)
  show(`${name}: ${code === 0 ? 'done' : `failed (${code})`} in ${elapsed()} s\n`)
  if (code !== 0) process.stderr.write(`${errors.slice(-2000)}\n`)
  const text = stripVTControlCharacters(code === 0 ? output : output + errors.slice(-2000)).trim()
  const figures = resultSince(results, name, sinceMs)
  return { name, asks, seconds: elapsed(), code: code ?? 1, output: text, figures }
}

function writeReport(facts: Machine, all: readonly Run[]): void {
  const commit = commitOf(import.meta.dirname)
  const head = [
    '# Figures',
    '',
    `Measured ${facts.measuredAt} at commit ${commit}, Node ${facts.node}, ${facts.architecture}, ${facts.machine}, ${facts.memoryGb} GB,`,
    `Linux ${facts.kernel}, load average at the start ${facts.loadAverage}${values.quick ? '; a quick run: the figures say little' : ''}.`,
  ]
  const parts = all.map(({ name, asks, seconds, code, output }) =>
    [
      `## ${asks}`,
      '',
      `\`npm run bench:${name}\`, ${seconds} s${code === 0 ? '' : `, failed with ${code}`}`,
      '',
      '```',
      output,
      '```',
    ].join('\n'),
  )
  mkdirSync(results, { recursive: true })
  writeFileSync(path.join(results, 'report.md'), `${[head.join('\n'), ...parts].join('\n\n')}\n`)
  const record = { ...facts, commit, quick: values.quick, runs: all }
  writeFileSync(path.join(results, 'report.json'), `${JSON.stringify(record, undefined, 2)}\n`)
}
