/**
 * The door to every bench: reads what was said, and only then loads what measures.
 *
 *   npm run bench [-- --quick] [--only edge,mixed]     npm run bench:<name> [-- options]     … -- --help
 */
import path from 'node:path'
import { EXIT_USAGE } from '../test/support/arguments.ts'
import { isInstalled } from '../test/support/programs.ts'
import { findPeer } from './peers.ts'
import type { BenchName, BenchValues } from './benches.ts'
import { decide } from './command.ts'
import { createResults, resultsFolder, type Results } from './results.ts'

type Runners = {
  readonly [Name in BenchName]: () => Promise<{ run(values: BenchValues<Name>, results: Results): Promise<void> }>
}

const runners: Runners = {
  edge: () => import('./edge/edge.ts'),
  walk: () => import('./edge/walk.ts'),
  connections: () => import('./edge/connections.ts'),
  'edge-outage': () => import('./edge/outage.ts'),
  routes: () => import('./edge/routes.ts'),
  handshake: () => import('./edge/handshake.ts'),
  publish: () => import('./stack/publish.ts'),
  mixed: () => import('./stack/mixed.ts'),
  streams: () => import('./stack/streams.ts'),
  compression: () => import('./stack/compression.ts'),
  growth: () => import('./stack/growth.ts'),
  start: () => import('./stack/start.ts'),
  small: () => import('./stack/small.ts'),
  search: () => import('./stack/search.ts'),
  mcp: () => import('./stack/mcp.ts'),
  load: () => import('./load/load.ts'),
}

const say = (text: string): void => void process.stderr.write(`${text}\n`)
const isThere = (program: string): boolean =>
  program === 'nginx' || program === 'caddy' ? findPeer(program) !== undefined : isInstalled(program)
const decision = decide(process.argv.slice(2), { isInstalled: isThere, isRoot: process.getuid?.() === 0 })
switch (decision.kind) {
  case 'say':
    ;(decision.isWrong ? process.stderr : process.stdout).write(`${decision.text}\n`)
    process.exitCode = decision.isWrong ? EXIT_USAGE : 0
    break
  case 'run': {
    const { name, values, order } = decision
    order.notes.forEach(say)
    const folder = process.env['BENCH_RESULTS'] ?? resultsFolder(order.isKept)
    const results = createResults(folder, name, (file) => say(`written: ${path.relative(process.cwd(), file)}`))
    const { run } = await runners[name]()
    // The catalogue checked them for this very bench.
    await run(values as never, results)
    break
  }
  case 'runAll': {
    const { names, order, isQuick } = decision
    order.notes.forEach(say)
    const { runAll } = await import('./all.ts')
    await runAll(names, { isQuick, folder: resultsFolder(order.isKept) })
    break
  }
  default:
    decision satisfies never
}
