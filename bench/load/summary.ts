/** The figures of a load that is over, and what they mean. Pure. */
import { isFailure, type Second, type Tally } from './tally.ts'
import { CLOSED, RESET, TOO_MANY_FILES } from './failures.ts'
import type { LatencyBucket } from './latencies.ts'

/** What was asked for, and of what. */
export interface Plan {
  readonly url: string
  readonly host: string
  readonly protocol: 'HTTP/1.1' | 'HTTP/2'
  readonly connections: number
  readonly streams: number
  readonly threads: number
  readonly pages: number
  readonly wantedSeconds: number
  readonly isOnThisMachine: boolean
  /** Cores of this machine. */
  readonly cores: number
}

export type Ending = 'over' | 'interrupted' | 'given up'

export interface Summary {
  readonly plan: Plan
  readonly ending: Ending
  readonly measuredAt: string
  readonly seconds: number
  readonly answers: number
  readonly answersPerSecond: number
  readonly megabytesPerSecond: number
  readonly failures: number
  readonly failuresByKind: readonly (readonly [kind: string, count: number])[]
  readonly statuses: Readonly<Record<string, number>>
  readonly percentiles: readonly (readonly [name: string, ms: number])[]
  readonly buckets: readonly LatencyBucket[]
  readonly bySecond: readonly Second[]
  /** Shares: of the busiest thread here, and of all processors of this machine. */
  readonly generatorBusy: number
  readonly machineBusy: number
  readonly advice: readonly string[]
}

const PERCENTILES = [
  ['p50', 0.5],
  ['p75', 0.75],
  ['p90', 0.9],
  ['p95', 0.95],
  ['p99', 0.99],
  ['p99.9', 0.999],
] as const

export interface Measured {
  readonly plan: Plan
  readonly tally: Tally
  readonly ending: Ending
  readonly machineBusy: number
  readonly measuredAt: string
}

export function summarise({ plan, tally, ending, machineBusy, measuredAt }: Measured): Summary {
  const seconds = Math.max(0.001, tally.elapsedSeconds)
  const found = {
    plan,
    ending,
    measuredAt,
    seconds,
    answers: tally.answers,
    answersPerSecond: tally.answers / seconds,
    megabytesPerSecond: tally.bytes / 1e6 / seconds,
    failures: tally.failures,
    failuresByKind: tally.failuresByKind(),
    statuses: tally.statuses,
    percentiles: [
      ...PERCENTILES.map(([name, share]) => [name, tally.latencies.quantileMs(share)] as const),
      ['longest', tally.latencies.maxMs] as const,
    ],
    buckets: tally.latencies.buckets(),
    bySecond: tally.seconds(),
    generatorBusy: tally.generatorBusy(),
    machineBusy,
  }
  return { ...found, advice: adviceOn(found) }
}

/** From here on a thread delays answers that are there already. */
const BUSY = 0.85
/** Fewer answers say little about one in a thousand. */
const FEW_ANSWERS = 10_000

/** Sentences for the person who runs it; what distorts the figures most comes first. */
export function adviceOn(found: Omit<Summary, 'advice'>): string[] {
  const { plan, failuresByKind, answers, failures, ending } = found
  const failed = new Map(failuresByKind)
  const cut = (failed.get(RESET) ?? 0) + (failed.get(CLOSED) ?? 0)
  return [
    ...(ending === 'given up' ? ['The load ended early: for ten seconds nothing was answered any more.'] : []),
    ...(answers === 0 && failures === 0
      ? ['Nothing was answered before the time was over: measure longer, or with fewer connections.']
      : []),
    ...bottlenecks(found),
    ...(failed.has('answered 429')
      ? [
          'The edge refused requests with 429: it limits what one network may ask for. Raise EDGE_REQUESTS_PER_IP (2,000 a second and worker) for the time of the test.',
        ]
      : []),
    ...(cut > 0
      ? [
          `Connections were cut off: the edge takes 512 of one network at a time and 200 new ones a second, per worker (EDGE_CONNECTIONS_PER_IP, EDGE_HANDSHAKES_PER_IP), and this load has ${plan.connections}.`,
        ]
      : []),
    ...(failed.has(TOO_MANY_FILES) ? ['This machine allows too few open files: raise ulimit -n.'] : []),
    ...(Object.keys(found.statuses).some((status) => Number(status) >= 500 && isFailure(status))
      ? ['The edge answered with 5xx: its log and npm run -s admin -- doctor say why.']
      : []),
    ...(failures === 0 && answers > 0 && answers < FEW_ANSWERS
      ? [
          `${count(answers)} answers are few: p99.9 rests on the slowest ${Math.max(1, Math.round(answers / 1000))} of them. Measure longer.`,
        ]
      : []),
  ]
}

function bottlenecks({ plan, generatorBusy, machineBusy, answers, failures }: Omit<Summary, 'advice'>): string[] {
  const advice: string[] = []
  // Connections that fail at once keep a thread busy too.
  if (generatorBusy >= BUSY && answers > failures) {
    const more =
      plan.threads < plan.cores
        ? `use --threads ${Math.min(plan.cores, plan.threads * 2)}`
        : 'load from further machines at the same time'
    advice.push(
      `The generator was the bottleneck: its busiest thread worked ${percent(generatorBusy)} of the time. The edge can do more than this, and the latencies contain waiting on this side: ${more}.`,
    )
  }
  if (plan.isOnThisMachine && machineBusy >= BUSY)
    advice.push(
      `The generator and the edge share the ${plan.cores} cores of this machine, which were ${percent(machineBusy)} busy: from another machine the edge bears more.`,
    )
  return advice
}

export const percent = (share: number): string => `${Math.round(share * 100)} %`

export function count(figure: number): string {
  return Math.round(figure).toLocaleString('en-GB')
}

/** Three digits are enough for a latency. */
export function milliseconds(ms: number): string {
  return `${ms >= 100 ? count(ms) : ms.toFixed(ms >= 10 ? 1 : 2)} ms`
}

/** As it is printed when the load is over. */
export function textOf(summary: Summary): string {
  const { plan, failuresByKind, percentiles, advice } = summary
  const rows = (pairs: readonly (readonly [string, string])[]): string[] => {
    const width = Math.max(0, ...pairs.map(([left]) => left.length)) + 2
    return pairs.map(([left, right]) => `  ${left.padEnd(width)}${right}`)
  }
  return [
    `${plan.protocol}, ${plan.connections} connections${plan.streams > 1 ? ` of ${plan.streams} streams` : ''}, ${Math.round(summary.seconds)} s${summary.ending === 'interrupted' ? ', interrupted' : ''}`,
    '',
    ...rows([
      [
        'answers',
        `${count(summary.answers)}, ${count(summary.answersPerSecond)} a second, ${summary.megabytesPerSecond.toFixed(1)} MB a second`,
      ],
      ['failures', count(summary.failures)],
      ['generator', `${percent(summary.generatorBusy)} busy; this machine ${percent(summary.machineBusy)}`],
    ]),
    ...(summary.answers > 0
      ? ['', 'Latency', ...rows(percentiles.map(([name, ms]) => [name, milliseconds(ms)] as const))]
      : []),
    ...(failuresByKind.length > 0
      ? ['', 'Failures', ...rows(failuresByKind.map(([kind, many]) => [kind, count(many)] as const))]
      : []),
    ...(advice.length > 0 ? ['', ...advice] : []),
  ].join('\n')
}
