/** Per file and folder: how many faults there are, and how many the tests notice. */
import type { Equivalent } from './equivalents.ts'
import type { History } from './journal.ts'
import type { Mutant } from './mutants.ts'
import type { Target } from './targets.ts'

const REQUIRED_PERCENT = 90

interface Counts {
  readonly faults: number
  readonly caught: number
  readonly survived: number
  readonly equivalent: number
}

export interface Report {
  readonly text: string
  readonly survivors: readonly Pick<Mutant, 'file' | 'line' | 'code' | 'change'>[]
  /** Every folder is above the bar, and every equivalent is a fault that survived. */
  readonly isGood: boolean
}

export function report(targets: readonly Target[], history: History, equivalents: readonly Equivalent[]): Report {
  const known = new Set(equivalents.flatMap(faultsOf).map(keyOf))
  const survivors: (Mutant & { readonly isReached: boolean })[] = []
  const files = targets.map(({ file, folder, first, mutants }) => {
    const alive = mutants.flatMap((mutant, index) =>
      history.caught.has(first + index) ? [] : [{ ...mutant, isReached: history.reached.has(first + index) }],
    )
    const wrong = alive.filter((mutant) => !known.has(keyOf(mutant)))
    survivors.push(...wrong)
    const caught = mutants.length - alive.length
    return {
      file,
      folder,
      faults: mutants.length,
      caught,
      survived: wrong.length,
      equivalent: alive.length - wrong.length,
    }
  })
  const folders = [...Map.groupBy(files, ({ folder }) => folder)].map(([folder, all]) => ({ folder, ...sum(all) }))
  const stale = staleOnes(targets, equivalents, history)
  const text = [
    ...survivors.map(
      ({ file, line, change, isReached }) => `${file}:${line}  ${change}${isReached ? '' : '  (no test gets here)'}`,
    ),
    '',
    ...(history.useless.length > 0
      ? [`Not asked, as they fail or take long without a fault: ${history.useless.join(', ')}`]
      : []),
    ...stale.map(({ file, code, change }) => `Not an equivalent, strike it off the list: ${file}  ${code}  ${change}`),
    table([...files.map((row) => ['  ' + row.file, row] as const)]),
    '',
    table([...folders.map((row) => [row.folder, row] as const), ['all', sum(files)]]),
  ].join('\n')
  return {
    text,
    survivors: survivors.map(({ file, line, code, change }) => ({ file, line, code, change })),
    isGood: stale.length === 0 && folders.every((counts) => scoreOf(counts) >= REQUIRED_PERCENT),
  }
}

type Fault = Pick<Mutant, 'file' | 'code' | 'change'>

function faultsOf({ file, code, changes }: Equivalent): Fault[] {
  return changes.map((change) => ({ file, code, change }))
}

function keyOf({ file, code, change }: Fault): string {
  return JSON.stringify([file, code, change])
}

/** A listed fault that is gone, or that a test catches. */
function staleOnes(
  targets: readonly Target[],
  equivalents: readonly Equivalent[],
  { caught }: History,
): readonly Fault[] {
  const asked = new Set(targets.map(({ file }) => file))
  const alive = new Set(
    targets.flatMap(({ mutants, first }) => mutants.filter((_, index) => !caught.has(first + index)).map(keyOf)),
  )
  return equivalents.flatMap(faultsOf).filter((entry) => asked.has(entry.file) && !alive.has(keyOf(entry)))
}

function sum(all: readonly Counts[]): Counts {
  const total = (key: keyof Counts): number => all.reduce((before, counts) => before + counts[key], 0)
  return {
    faults: total('faults'),
    caught: total('caught'),
    survived: total('survived'),
    equivalent: total('equivalent'),
  }
}

function scoreOf({ caught, survived }: Counts): number {
  return caught + survived === 0 ? 100 : (100 * caught) / (caught + survived)
}

function table(rows: readonly (readonly [string, Counts])[]): string {
  const cells = [
    ['', 'faults', 'caught', 'survived', 'equivalent', 'score'],
    ...rows.map(([name, counts]) => [
      name,
      ...[counts.faults, counts.caught, counts.survived, counts.equivalent].map(String),
      `${scoreOf(counts).toFixed(1)} %`,
    ]),
  ]
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)))
  return cells
    .map((row) => row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join('  '))
    .join('\n')
}
