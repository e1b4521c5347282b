/**
 * A figure beside its bar, and the table that is kept of them: for each architecture one of all benches, in which each row says
 * what was measured first and what was measured last.
 */

export interface Judged {
  /** What was measured; each bench has it once. */
  readonly row: string
  readonly figure: number
  /** Empty for what is counted. */
  readonly unit: string
  readonly bar: number
  /** The bar is the least that the figure may be, and not the most. */
  readonly isLeast?: true
}

/** When and on which code a figure was measured; the load tells whether others used the machine. The oldest know the day alone. */
export interface Measured {
  readonly figure: number
  readonly day: string
  readonly commit?: string
  readonly loadAverage?: number
}

interface KeptRow extends Pick<Judged, 'unit' | 'bar' | 'isLeast'> {
  readonly before: Measured
  readonly after: Measured
}

/** Bench → row. */
export type Table = Readonly<Record<string, Readonly<Record<string, KeptRow>>>>

export function isMet({ figure, bar, isLeast }: Pick<Judged, 'figure' | 'bar' | 'isLeast'>): boolean {
  return isLeast ? figure >= bar : figure <= bar
}

/** One line of a bench. */
export function verdictOn(judged: Judged): string {
  const { row, figure, unit } = judged
  return `${row}: ${withUnit(figure, unit)} (bar: ${barOf(judged)})  ${isMet(judged) ? 'met' : 'MISSED'}`
}

/** The first figure of a row stays as what was before. Pure. */
export function withFigure(
  table: Table,
  bench: string,
  { row, ...judged }: Judged,
  found: Omit<Measured, 'figure'>,
): Table {
  const { figure, unit, bar, isLeast } = judged
  const after = { figure, ...found }
  const kept: KeptRow = { unit, bar, ...(isLeast && { isLeast }), before: table[bench]?.[row]?.before ?? after, after }
  return { ...table, [bench]: { ...table[bench], [row]: kept } }
}

/** Pure. */
export function tableText(architecture: string, table: Table): string {
  const rows = Object.entries(table).flatMap(([bench, kept]) =>
    Object.entries(kept).map(([row, { before, after, ...judged }]) => {
      const shown = (measured: Measured): string => `${withUnit(measured.figure, judged.unit)} (${sourceOf(measured)})`
      const held = isMet({ ...judged, figure: after.figure }) ? shown(after) : `**${shown(after)}**`
      // A row that was measured once has no before.
      return `| ${bench} | ${row} | ${barOf(judged)} | ${isSame(before, after) ? '–' : shown(before)} | ${held} |`
    }),
  )
  return [
    `# Figures beside their bars, ${architecture}`,
    '',
    'Written by `npm run bench -- --keep`, and for the rows of one bench by itself with the same option. Before is the first figure that was kept of a row, after the last one; with each its day, its commit, and the load average when the bench began. Bold misses its bar.',
    '',
    '| bench | row | bar | before | after |',
    '|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}

function barOf({ bar, unit, isLeast }: Pick<Judged, 'bar' | 'unit' | 'isLeast'>): string {
  return `at ${isLeast ? 'least' : 'most'} ${withUnit(bar, unit)}`
}

function isSame(one: Measured, other: Measured): boolean {
  return one.figure === other.figure && sourceOf(one) === sourceOf(other)
}

function sourceOf({ day, commit, loadAverage }: Measured): string {
  return [day, commit, loadAverage === undefined ? undefined : `load ${loadAverage}`].filter((part) => part).join(', ')
}

/** Four digits say all that a bench knows. */
function withUnit(figure: number, unit: string): string {
  const digits = String(Math.abs(figure) >= 1000 ? Math.round(figure) : Number(figure.toPrecision(4)))
  return unit === '' ? digits : `${digits} ${unit}`
}
