/** What `npm run bench` and `npm run bench:<name>` do with what they are told: a decision, which main.ts carries out. */
import { describeOptions, readArguments, type Options } from '../test/support/arguments.ts'
import { benches, IN_ORDER, PACKAGE_OF, type Bench, type BenchName, type Program } from './benches.ts'

export type Decision =
  | { readonly kind: 'say'; readonly text: string; readonly isWrong: boolean }
  | { readonly kind: 'run'; readonly name: BenchName; readonly values: object; readonly order: Order }
  | { readonly kind: 'runAll'; readonly names: readonly BenchName[]; readonly order: Order; readonly isQuick: boolean }

/** What is true of every run. */
interface Order {
  /** Figures go into the repository. */
  readonly isKept: boolean
  /** What is left out because a program is missing. */
  readonly notes: readonly string[]
}

const KEEP = {
  kind: 'flag',
  about: 'write the figures to bench/results, in the repository, not to bench-results',
} as const
const ALL_OPTIONS = {
  only: { kind: 'list', of: IN_ORDER, about: 'benches to run' },
  quick: { kind: 'flag', about: 'just see that they work; the figures say little, and are never kept' },
  keep: KEEP,
} as const satisfies Options

/** What the machine has for a bench. */
export interface Surroundings {
  isInstalled(program: string): boolean
  readonly isRoot: boolean
}

export function decide(args: readonly string[], { isInstalled, isRoot }: Surroundings): Decision {
  const [name = '', ...rest] = args
  if (name === 'all') return decideAll(rest, { isInstalled, isRoot })
  if (!isBench(name)) return wrong(`There is no bench “${name}”: ${['all', ...Object.keys(benches)].join(', ')}.`)
  const bench: Bench = benches[name]
  const options: Options = bench.hasResults ? { ...bench.options, keep: KEEP } : bench.options
  const read = readArguments(options, rest)
  if (read.kind === 'help') return { kind: 'say', text: helpOf(name, bench, options), isWrong: false }
  if (read.kind === 'wrong') return wrong(read.sentence)
  if (bench.isForRoot && !isRoot) return wrong(sentenceOfRoot(name))
  const isAsked = (program: Program): boolean =>
    Array.isArray(read.values['only']) &&
    rest.some((arg) => arg.startsWith('--only')) &&
    read.values['only'].includes(program)
  const missing = [...bench.needs, ...bench.uses.filter(isAsked)].find((program) => !isInstalled(program))
  if (missing !== undefined) return wrong(sentenceOfMissing(missing))
  const notes = bench.uses.filter((program) => !isInstalled(program)).map(noteOfMissing)
  return { kind: 'run', name, values: read.values, order: { isKept: read.values['keep'] === true, notes } }
}

function decideAll(args: readonly string[], { isInstalled, isRoot }: Surroundings): Decision {
  const read = readArguments(ALL_OPTIONS, args)
  if (read.kind === 'help') return { kind: 'say', text: helpOfAll(), isWrong: false }
  if (read.kind === 'wrong') return wrong(read.sentence)
  const { only, quick, keep } = read.values
  if (quick && keep) return wrong('The figures of a quick run say little: --quick and --keep exclude each other.')
  const wanted = IN_ORDER.filter((name) => only.includes(name))
  const isPossible = (name: BenchName): boolean => isRoot || !('isForRoot' in benches[name])
  const names = wanted.filter(isPossible)
  const missing = names.flatMap((name) => benches[name].needs).find((program) => !isInstalled(program))
  if (missing !== undefined) return wrong(sentenceOfMissing(missing))
  const notes = [...new Set<Program>(names.flatMap((name) => benches[name].uses))]
    .filter((program) => !isInstalled(program))
    .map(noteOfMissing)
  const refused = wanted.filter((name) => !isPossible(name)).map((name) => `${sentenceOfRoot(name)} It is left out.`)
  return { kind: 'runAll', names, order: { isKept: keep, notes: [...notes, ...refused] }, isQuick: quick }
}

function isBench(name: string): name is BenchName {
  return Object.hasOwn(benches, name)
}

const wrong = (text: string): Decision => ({ kind: 'say', text, isWrong: true })

const sentenceOfMissing = (program: Program): string =>
  `${program} is not installed, and this cannot be measured without it (Debian: apt-get install ${PACKAGE_OF[program]}).`

const sentenceOfRoot = (name: BenchName): string => `bench:${name} makes a control group, which takes root.`

const noteOfMissing = (program: Program): string =>
  `${program} is not installed (Debian: apt-get install ${PACKAGE_OF[program]}): what is measured with it is left out.`

function helpOf(name: BenchName, bench: Bench, options: Options): string {
  return [
    `npm run bench:${name} -- [options]`,
    `${bench.asks}. Takes ${bench.lasts}.`,
    describeOptions(options),
    ...programsOf(bench.needs, bench.uses),
    ...(name === 'load' ? [HELP_OF_LOAD] : []),
  ].join('\n\n')
}

function helpOfAll(): string {
  const width = Math.max(...Object.keys(benches).map((name) => name.length)) + 2
  const lines = Object.entries(benches).map(([name, { asks, lasts }]) => `  ${name.padEnd(width)}${asks} (${lasts})`)
  return [
    'npm run bench -- [options]',
    'Runs the benches in order and writes one report. Each runs alone too, as npm run bench:<name>:',
    lines.join('\n'),
    describeOptions(ALL_OPTIONS),
    ...programsOf(
      IN_ORDER.flatMap((name) => benches[name].needs),
      IN_ORDER.flatMap((name) => benches[name].uses),
    ),
  ].join('\n\n')
}

function programsOf(needs: readonly Program[], uses: readonly Program[]): string[] {
  const list = (programs: readonly Program[]): string =>
    [...new Set(programs)].map((program) => `${program} (${PACKAGE_OF[program]})`).join(', ')
  return [
    ...(needs.length > 0 ? [`Must be installed, by Debian package: ${list(needs)}.`] : []),
    ...(uses.length > 0 ? [`Measures more where these are installed: ${list(uses)}.`] : []),
  ]
}

const HELP_OF_LOAD = `Examples
  npm run bench:load -- --url https://localhost:8443/ --host my-drop.localhost --insecure
  npm run bench:load -- --url https://my.edge/ --host my-drop.example.com --connections 100 --duration 1m \\
    --http2 --streams 4 --zipf paths.txt --report load.html --yes

All connections go to the address of --url, whatever the list of --zipf names. Ends with 0 when every request was
answered with 2xx or 3xx, with 1 when some were not or the edge cannot be reached, with 2 when it was called wrongly
or nobody agreed, and with 130 after Ctrl-C, with the figures until then.`
