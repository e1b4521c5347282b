/** Charts as inline SVG: no script, no style attributes, readable by screen readers through a text of their own. */
import { html, raw, type Html } from '../../../../shared/pages/html.ts'
import { countInWords, dayInWords } from './words.ts'

export interface Day {
  readonly day: string
  readonly count: number
}

export function sparkline(counts: readonly number[]): Html {
  const top = Math.max(1, ...counts)
  const step = 100 / Math.max(1, counts.length - 1)
  const points = counts.map((count, index) => `${round(index * step)},${round(26 - (count / top) * 24)}`).join(' ')
  return html`<svg class="spark" viewBox="0 0 100 28" preserveAspectRatio="none" aria-hidden="true">
    <polyline fill="none" stroke="currentColor" stroke-width="1.5" vector-effect="non-scaling-stroke"
        points="${points}"/>
  </svg>`
}

const WIDTH = 720
const HEIGHT = 240
const TOP = 34
const BOTTOM = 34
/** Beside one busy day the others would vanish: a day with views is always seen. */
const MIN_BAR = 3

/** Bars over the whole width; what the lines mean stands on them, so that the text may grow on a small screen. */
export function viewsChart(days: readonly Day[]): Html {
  const top = niceTop(Math.max(...days.map((day) => day.count), 1))
  const slot = WIDTH / days.length
  const floor = HEIGHT - BOTTOM
  const heightOf = (count: number): number => round((floor - TOP) * (count / top))
  const bars = days.map((day, index) => {
    const height = day.count === 0 ? 0 : Math.max(MIN_BAR, heightOf(day.count))
    const title = `${dayInWords(day.day)}: ${countInWords(day.count, 'view')}`
    return html`
<rect x="${round(index * slot + slot * 0.15)}" y="${round(floor - height)}" width="${round(slot * 0.7)}"
        height="${height}" rx="${round(Math.min(3, slot * 0.2))}" fill="currentColor"> <title>${title}</title> </rect>
`
  })
  const lines = [0, top / 2, top].map((count) => {
    const y = round(floor - heightOf(count))
    return html`
<line class="axis" x1="0" x2="${WIDTH}" y1="${y}" y2="${y}"/>
      ${count > 0 && html`<text x="0" y="${y - 6}">${shortCount(count)}</text>`}
`
  })
  const total = days.reduce((sum, day) => sum + day.count, 0)
  return html`<svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img"
      aria-label="${countInWords(total, 'view')} in ${days.length} days">
    ${lines}
    ${bars}
    <text x="0" y="${HEIGHT - 6}">${shortDay(days[0]?.day)}</text>
    <text x="${WIDTH}" y="${HEIGHT - 6}" text-anchor="end">${shortDay(days.at(-1)?.day)}</text>
  </svg>`
}

function shortCount(count: number): string {
  return new Intl.NumberFormat('en-GB', { notation: 'compact' }).format(count)
}

/** The next round number whose half is whole too. */
function niceTop(max: number): number {
  for (let magnitude = 2; ; magnitude *= 10) {
    for (const factor of [1, 2, 5]) if (magnitude * factor >= max) return magnitude * factor
  }
}

function shortDay(day: string | undefined): string {
  return day === undefined
    ? ''
    : new Date(day).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

/** Lucide-like line icons, drawn for this page. */
export function icon(name: keyof typeof ICONS): Html {
  return html`<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"
      stroke-linejoin="round" aria-hidden="true" focusable="false">
    ${raw(ICONS[name])}
  </svg>`
}

const ICONS = {
  upload: '<path d="M12 15V4m0 0L7.5 8.5M12 4l4.5 4.5"/><path d="M4 15v3a2 2 0 0 0 2 2h12a2 2 0 0 0 2-2v-3"/>',
  layers: '<path d="m12 3 9 5-9 5-9-5 9-5Z"/><path d="m3 13 9 5 9-5"/>',
  terminal: '<path d="m5 7 5 5-5 5"/><path d="M12.5 17H19"/>',
  lock: '<rect x="5" y="11" width="14" height="9" rx="2"/><path d="M8 11V8a4 4 0 0 1 8 0v3"/>',
  globe:
    '<circle cx="12" cy="12" r="9"/><path d="M3 12h18M12 3c2.5 2.6 3.8 5.6 3.8 9s-1.3 6.4-3.8 9c-2.5-2.6-3.8-5.6-3.8-9S9.5 5.6 12 3Z"/>',
  spark: '<path d="M12 3v6m0 6v6M3 12h6m6 0h6"/>',
} as const
