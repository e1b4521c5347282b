/** Charts as inline SVG. Colours are CSS variables of the page around them, so that they follow its light and dark. Pure. */

const WIDTH = 760
const HEIGHT = 220
const PLOT = { left: 56, right: 14, top: 12, bottom: 26 } as const
const INNER = { width: WIDTH - PLOT.left - PLOT.right, height: HEIGHT - PLOT.top - PLOT.bottom } as const

export interface Line {
  readonly name: string
  /** A CSS colour. */
  readonly colour: string
  readonly values: readonly number[]
  readonly isFilled?: true
}

export interface Mark {
  readonly name: string
  readonly at: number
}

export interface Column {
  readonly from: number
  readonly to: number
  readonly count: number
  readonly label: string
}

/** Values second by second, from the same moment. */
export function lineChart(title: string, lines: readonly Line[], unit: (value: number) => string): string {
  const seconds = Math.max(1, ...lines.map(({ values }) => values.length))
  const top = niceTop(Math.max(0, ...lines.flatMap(({ values }) => values)))
  const x = (index: number): number => PLOT.left + (INNER.width * (index + 0.5)) / seconds
  const y = (value: number): number => PLOT.top + INNER.height * (1 - value / top)
  const drawn = lines.map(({ name, colour, values, isFilled }) => {
    const points = values.map((value, index) => `${round(x(index))},${round(y(value))}`)
    const [first, last] = [x(0), x(values.length - 1)].map(round)
    const area = isFilled
      ? `<path d="M${first},${y(0)} L${points.join(' L')} L${last},${y(0)} Z" fill="${colour}" opacity="0.14"/>`
      : ''
    // A single second is a dot: a line needs two.
    const line =
      points.length === 1
        ? `<circle cx="${first}" cy="${round(y(values[0] ?? 0))}" r="3" fill="${colour}"/>`
        : `<polyline points="${points.join(' ')}" fill="none" stroke="${colour}" stroke-width="2" stroke-linejoin="round"/>`
    return `<g><title>${escapeHtml(name)}</title>${area}${line}</g>`
  })
  const every = Math.max(1, Math.ceil(seconds / 12))
  const ticks = Array.from({ length: seconds }, (_, index) => index)
    .filter((index) => (index + 1) % every === 0)
    .map((index) => xLabel(x(index), `${index + 1} s`))
  return svg(title, [...levels(top, y, unit), ...ticks, ...drawn])
}

/** Columns over a logarithmic axis, with marks at some places of it. */
export function distribution(
  title: string,
  columns: readonly Column[],
  marks: readonly Mark[],
  unit: (value: number) => string,
): string {
  const from = Math.min(...columns.map((column) => column.from))
  const to = Math.max(...columns.map((column) => column.to))
  const span = Math.max(1e-9, Math.log(to / from))
  const x = (value: number): number =>
    PLOT.left + (INNER.width * Math.log(Math.min(to, Math.max(from, value)) / from)) / span
  const top = niceTop(Math.max(0, ...columns.map(({ count }) => count)))
  const y = (value: number): number => PLOT.top + INNER.height * (1 - value / top)
  const bars = columns.map(({ from: left, to: right, count, label }) => {
    const width = Math.max(0.5, x(right) - x(left) - 1)
    return `<rect x="${round(x(left))}" y="${round(y(count))}" width="${round(width)}" height="${round(y(0) - y(count))}" fill="var(--accent)" opacity="0.75"><title>${escapeHtml(label)}</title></rect>`
  })
  const lines = marks.map(({ name, at }, index) => {
    const place = round(x(at))
    // Near the right end the words stand before their line.
    const isLate = x(at) > WIDTH - 90
    const text = `<text x="${place + (isLate ? -5 : 5)}" y="${PLOT.top + 10 + index * 14}" text-anchor="${isLate ? 'end' : 'start'}" class="mark">${escapeHtml(name)}</text>`
    return `<line x1="${place}" x2="${place}" y1="${PLOT.top}" y2="${y(0)}" stroke="var(--second)" stroke-dasharray="3 3"/>${text}`
  })
  const ticks = logTicks(from, to).map((value) => xLabel(x(value), unit(value)))
  return svg(title, [...levels(top, y, (value) => value.toLocaleString('en-GB')), ...ticks, ...bars, ...lines])
}

function svg(title: string, parts: readonly string[]): string {
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(title)}">${parts.join('')}</svg>`
}

/** Four quiet lines and their figures. */
function levels(top: number, y: (value: number) => number, unit: (value: number) => string): string[] {
  return [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const at = round(y(top * share))
    return `<line x1="${PLOT.left}" x2="${WIDTH - PLOT.right}" y1="${at}" y2="${at}" class="level"/><text x="${PLOT.left - 8}" y="${at + 4}" text-anchor="end">${escapeHtml(unit(top * share))}</text>`
  })
}

function xLabel(at: number, text: string): string {
  // The last word must not be cut off.
  return `<text x="${round(Math.min(at, WIDTH - 20))}" y="${HEIGHT - 6}" text-anchor="middle">${escapeHtml(text)}</text>`
}

/** The next of 1, 2, 4, 8 times a power of ten: a quarter of it is a round figure too. */
export function niceTop(value: number): number {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 4, 8].find((step) => step * power >= value) ?? 10) * power
}

/** 1, 2 and 5 times the powers of ten between two values; every second of them when there are many. */
function logTicks(from: number, to: number): number[] {
  const ticks: number[] = []
  for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); power++)
    for (const step of [1, 2, 5]) {
      const value = Number((step * 10 ** power).toPrecision(1))
      if (value >= from && value <= to) ticks.push(value)
    }
  return ticks.length > 10 ? ticks.filter((value) => /^0*\.?0*1/.test(String(value))) : ticks
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (char) => ENTITIES[char] ?? char)
}
