/** Per file and folder: how many faults there are, how many the tests notice, and whether that is enough. */
import type { History } from './journal.ts'
import type { Mutant } from './mutants.ts'
import type { Target } from './targets.ts'

interface Counts {
  readonly faults: number
  readonly caught: number
}

export interface Report {
  readonly text: string
  readonly survivors: readonly Pick<Mutant, 'file' | 'line' | 'code' | 'change'>[]
  /** No folder is below its floor. */
  readonly isGood: boolean
}

/** `floors`: the least percentage by folder. A folder that is not there, or was asked for in part, is told and not judged. */
export function report(targets: readonly Target[], history: History, floors: Readonly<Record<string, number>>): Report {
  const survivors: (Mutant & { readonly isReached: boolean })[] = []
  const files = targets.map(({ file, folder, first, mutants }) => {
    const alive = mutants.flatMap((mutant, index) =>
      history.caught.has(first + index) ? [] : [{ ...mutant, isReached: history.reached.has(first + index) }],
    )
    survivors.push(...alive)
    return { file, folder, faults: mutants.length, caught: mutants.length - alive.length }
  })
  const folders = [...Map.groupBy(files, ({ folder }) => folder)].map(([folder, all]) => ({ folder, ...sum(all) }))
  const low = folders.filter((counts) => scoreOf(counts) < (floors[counts.folder] ?? 0))
  const text = [
    ...survivors.map(
      ({ file, line, change, isReached }) => `${file}:${line}  ${change}${isReached ? '' : '  (no test gets here)'}`,
    ),
    '',
    ...(history.useless.length > 0
      ? [`Not asked, as they fail or take long without a fault: ${history.useless.join(', ')}`]
      : []),
    table(files.map((row) => [`  ${row.file}`, row])),
    '',
    table([...folders.map((row) => [row.folder, row, floors[row.folder]] as const), ['all', sum(files)]]),
    ...low.map(({ folder }) => `${folder} is below its floor: add the cases that its survivors above are missing.`),
  ].join('\n')
  return {
    text,
    survivors: survivors.map(({ file, line, code, change }) => ({ file, line, code, change })),
    isGood: low.length === 0,
  }
}

function sum(all: readonly Counts[]): Counts {
  const total = (key: keyof Counts): number => all.reduce((before, counts) => before + counts[key], 0)
  return { faults: total('faults'), caught: total('caught') }
}

function scoreOf({ faults, caught }: Counts): number {
  return faults === 0 ? 100 : (100 * caught) / faults
}

function table(rows: readonly (readonly [name: string, counts: Counts, floor?: number | undefined])[]): string {
  const cells = [
    ['', 'faults', 'caught', 'survived', 'score', 'floor'],
    ...rows.map(([name, counts, floor]) => [
      name,
      ...[counts.faults, counts.caught, counts.faults - counts.caught].map(String),
      `${scoreOf(counts).toFixed(1)} %`,
      floor === undefined ? '' : `${floor.toFixed(1)} %`,
    ]),
  ]
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)))
  return cells
    .map((row) =>
      row
        .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
