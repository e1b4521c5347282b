/** The figures of a load as one page that needs nothing else: no script, no font, no picture from elsewhere. Pure. */
import { distribution, escapeHtml, lineChart, type Column } from './charts.ts'
import type { LatencyBucket } from './latencies.ts'
import { count, milliseconds, percent, type Summary } from './summary.ts'
import type { Second } from './tally.ts'

/** More points are finer than a screen. */
const MAX_POINTS = 240
const MAX_COLUMNS = 70

export function pageOf(summary: Summary): string {
  const { plan, percentiles, advice } = summary
  const ms = new Map(percentiles)
  const title = `Load on ${plan.host}`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<header>
<h1>${escapeHtml(title)}</h1>
<p class="quiet">${escapeHtml(subtitleOf(summary))}</p>
</header>
<dl class="tiles">
${tile('answers a second', count(summary.answersPerSecond))}
${tile('half within', milliseconds(ms.get('p50') ?? 0))}
${tile('99 of 100 within', milliseconds(ms.get('p99') ?? 0))}
${tile('failures', count(summary.failures), summary.failures > 0)}
</dl>
${advice.length > 0 ? `<section class="advice"><h2>Before you trust these figures</h2>${advice.map((sentence) => `<p>${escapeHtml(sentence)}</p>`).join('')}</section>` : ''}
${chartsOf(summary)}
<div class="tables">
${table(
  'Latency',
  percentiles.map(([name, value]) => [name, milliseconds(value)] as const),
)}
${table(
  'Answers by status',
  Object.entries(summary.statuses).map(([status, many]) => [status, count(many)] as const),
)}
${
  summary.failures > 0
    ? table(
        'Failures by kind',
        summary.failuresByKind.map(([kind, many]) => [kind, count(many)] as const),
      )
    : ''
}
${table('This side', thisSide(summary))}
</div>
<footer class="quiet">Latency is the time from a request to the last byte of its answer. The curves are of single seconds${summary.bySecond.length > MAX_POINTS ? ', several put together' : ''}.</footer>
</main>
</body>
</html>
`
}

function subtitleOf({ plan, seconds, measuredAt, ending }: Summary): string {
  return [
    plan.url,
    plan.protocol,
    `${count(plan.connections)} connections${plan.streams > 1 ? ` of ${plan.streams} streams` : ''}`,
    ...(plan.pages > 1 ? [`${count(plan.pages)} pages by Zipf’s law`] : []),
    `${Math.round(seconds)} s${ending === 'interrupted' ? ', interrupted' : ''}`,
    `${measuredAt.slice(0, 16).replace('T', ' ')} UTC`,
  ].join(' · ')
}

function chartsOf(summary: Summary): string {
  if (summary.answers === 0) return ''
  const seconds = thinned(summary.bySecond)
  const ms = new Map(summary.percentiles)
  const failures = seconds.map((second) => second.failuresPerSecond)
  const rate = [
    {
      name: 'answers a second',
      colour: 'var(--accent)',
      values: seconds.map((second) => second.answersPerSecond),
      isFilled: true,
    },
    ...(summary.failures > 0 ? [{ name: 'failures a second', colour: 'var(--bad)', values: failures }] : []),
  ] as const
  const latency = [
    { name: 'p99', colour: 'var(--second)', values: seconds.map((second) => second.p99Ms) },
    { name: 'p50', colour: 'var(--accent)', values: seconds.map((second) => second.p50Ms) },
  ]
  const marks = (['p50', 'p99'] as const).map((name) => ({
    name: `${name} ${milliseconds(ms.get(name) ?? 0)}`,
    at: ms.get(name) ?? 0,
  }))
  return [
    figure('Answers a second', rate.length > 1 ? rate : [], lineChart('Answers a second over time', rate, count)),
    figure('Latency over time', latency, lineChart('Latency over time', latency, axisMs)),
    figure(
      'How long answers took',
      [],
      distribution('How many answers took how long', columnsOf(summary.buckets), marks, axisMs),
    ),
  ].join('\n')
}

/** Round figures: no digits behind the point where there are any before it. */
function axisMs(ms: number): string {
  return ms >= 1000 ? `${Number((ms / 1000).toFixed(1))} s` : `${Number(ms.toPrecision(2))} ms`
}

function figure(caption: string, legend: readonly { name: string; colour: string }[], chart: string): string {
  const keys = legend.map(
    ({ name, colour }) => `<span class="key"><i style="background:${colour}"></i>${escapeHtml(name)}</span>`,
  )
  return `<figure><figcaption><h2>${escapeHtml(caption)}</h2>${keys.join('')}</figcaption>${chart}</figure>`
}

/** Neighbouring seconds are put together until they fit: rates and medians by their mean, p99 and failures by the worst. */
function thinned(seconds: readonly Second[]): Second[] {
  const each = Math.ceil(seconds.length / MAX_POINTS)
  const mean = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0) / values.length
  return Array.from({ length: Math.ceil(seconds.length / each) }, (_, index) => {
    const part = seconds.slice(index * each, (index + 1) * each)
    return {
      answersPerSecond: mean(part.map((second) => second.answersPerSecond)),
      p50Ms: mean(part.map((second) => second.p50Ms)),
      p99Ms: Math.max(...part.map((second) => second.p99Ms)),
      failuresPerSecond: Math.max(...part.map((second) => second.failuresPerSecond)),
    }
  })
}

/** Columns of equal width on a logarithmic axis. */
export function columnsOf(buckets: readonly LatencyBucket[]): Column[] {
  const [first, last] = [buckets[0], buckets.at(-1)]
  if (first === undefined || last === undefined) return []
  const span = Math.log(last.toMs / first.fromMs)
  // A column is at least as wide as the buckets: narrower ones would show gaps that are none.
  const number = Math.max(1, Math.min(MAX_COLUMNS, Math.floor(span / Math.log(first.toMs / first.fromMs) / 2)))
  const edge = (index: number): number => first.fromMs * Math.exp((span * index) / number)
  const counts = Array.from({ length: number }, () => 0)
  for (const { fromMs, toMs, count: many } of buckets) {
    const middle = Math.sqrt(fromMs * toMs)
    const column = Math.min(number - 1, Math.floor((Math.log(middle / first.fromMs) / span) * number))
    counts[column] = (counts[column] ?? 0) + many
  }
  return counts.map((many, index) => ({
    from: edge(index),
    to: edge(index + 1),
    count: many,
    label: `${milliseconds(edge(index))} to ${milliseconds(edge(index + 1))}: ${count(many)} answers`,
  }))
}

function thisSide({ plan, generatorBusy, machineBusy, megabytesPerSecond, answers }: Summary): [string, string][] {
  return [
    ['answers', count(answers)],
    ['received', `${megabytesPerSecond.toFixed(1)} MB/s`],
    ['threads', String(plan.threads)],
    ['busiest one', percent(generatorBusy)],
    ['this machine', percent(machineBusy)],
  ]
}

function tile(name: string, value: string, isBad = false): string {
  return `<div${isBad ? ' class="bad"' : ''}><dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd></div>`
}

function table(caption: string, rows: readonly (readonly [string, string])[]): string {
  const lines = rows.map(
    ([name, value]) => `<tr><th scope="row">${escapeHtml(name)}</th><td>${escapeHtml(value)}</td></tr>`,
  )
  return `<table><caption>${escapeHtml(caption)}</caption><tbody>${lines.join('')}</tbody></table>`
}

const STYLE = `
:root { --paper: #faf9f6; --card: #ffffff; --ink: #22282d; --quiet: #68717a; --rule: #e6e4de; --accent: #2f6f8f; --second: #b9713a; --bad: #b3392f; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #15181b; --card: #1c2024; --ink: #e4e3df; --quiet: #98a1a9; --rule: #2e343a; --accent: #79b8d8; --second: #e0a36c; --bad: #f0857b; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; font-variant-numeric: tabular-nums; }
main { max-width: 52rem; margin: 0 auto; padding: 3rem 1.25rem 4rem; }
h1 { margin: 0; font-size: 1.75rem; font-weight: 600; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { margin: 0; font-size: 1rem; font-weight: 600; }
.quiet { color: var(--quiet); font-size: 0.9rem; overflow-wrap: anywhere; }
header .quiet { margin: 0.35rem 0 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 0.75rem; margin: 2rem 0; }
.tiles div, figure, .advice, table { background: var(--card); border: 1px solid var(--rule); border-radius: 0.75rem; }
.tiles div { padding: 0.9rem 1.1rem; }
dt { color: var(--quiet); font-size: 0.85rem; }
dd { margin: 0.1rem 0 0; font-size: 1.6rem; font-weight: 600; letter-spacing: -0.02em; }
.bad dd { color: var(--bad); }
.advice { border-left: 4px solid var(--second); padding: 1rem 1.25rem; margin: 0 0 1.25rem; }
.advice p { margin: 0.5rem 0 0; }
figure { margin: 0 0 1.25rem; padding: 1rem 1.1rem 0.6rem; }
figcaption { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0.25rem 1.1rem; margin-bottom: 0.6rem; }
.key { color: var(--quiet); font-size: 0.85rem; }
.key i { display: inline-block; width: 0.9rem; height: 3px; border-radius: 2px; margin-right: 0.4rem; vertical-align: middle; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--quiet); font-size: 11px; }
svg .mark { fill: var(--second); font-weight: 600; }
svg .level { stroke: var(--rule); }
.tables { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 1.25rem; align-items: start; }
table { width: 100%; border-spacing: 0; padding: 0.4rem 1.1rem 0.8rem; }
caption { text-align: left; font-weight: 600; padding: 0 0 0.4rem 0.1rem; }
th { text-align: left; font-weight: 400; color: var(--quiet); padding-right: 1rem; }
td { text-align: right; }
th, td { padding: 0.3rem 0; border-top: 1px solid var(--rule); overflow-wrap: anywhere; }
tr:first-child th, tr:first-child td { border-top: 0; }
footer { margin-top: 1.75rem; }
`
