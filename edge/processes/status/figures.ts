/** The edge's figures for Prometheus. */
import { Counter, Gauge, Registry } from 'prom-client'
import type { CertificateCounts } from '../../../certs/counters.ts'
import type { DelayMeter } from './delay-meter.ts'
import type { Counters } from '../messages.ts'
import type { Workers } from '../workers.ts'
import type { Follower } from '../../store/follow/follower.ts'
import type { Replica } from '../../store/replica/replica.ts'
import type { ViewLedger } from '../../store/view-ledger.ts'

export interface FiguresDependencies {
  readonly workers: Pick<Workers, 'report' | 'restarts'>
  readonly follower: Pick<Follower, 'isFollowing' | 'position'>
  readonly ledger: Pick<ViewLedger, 'pending'>
  readonly replica: Pick<Replica, 'snapshotEpoch' | 'refusals'>
  readonly certificates: { read(): CertificateCounts }
  /** The primary's own. */
  readonly delay: DelayMeter
}

export async function writeFigures(dependencies: FiguresDependencies): Promise<{ type: string; body: string }> {
  const registry = new Registry()
  collect(registry, await dependencies.workers.report({ isScrape: true }), dependencies)
  collectDelays(registry, 'primary', dependencies.delay.read(true))
  collectCertificates(registry, dependencies.certificates.read())
  collectRefusals(registry, [...dependencies.replica.refusals().keys()])
  return { type: registry.contentType, body: await registry.metrics() }
}

function collect(
  registry: Registry,
  reports: readonly Counters[],
  { workers, follower, ledger }: FiguresDependencies,
): void {
  const gauge = (name: string, help: string, value: number): void =>
    new Gauge({ name: `dropway_edge_${name}`, help, registers: [registry] }).set(value)
  const sum = (of: (report: Counters) => number): number => reports.reduce((total, report) => total + of(report), 0)
  const requests = new Counter({
    name: 'dropway_edge_requests_total',
    help: 'Answers by status.',
    labelNames: ['status'],
    registers: [registry],
  })
  for (const report of reports)
    for (const [status, count] of Object.entries(report.requests)) requests.inc({ status }, count)
  gauge('workers', 'Workers that answer.', reports.length)
  gauge('worker_restarts', 'Workers replaced since the start.', workers.restarts())
  gauge(
    'connections_http1',
    'Open HTTP/1.1 connections.',
    sum((report) => report.http1Connections),
  )
  gauge(
    'connections_http2',
    'Open HTTP/2 connections.',
    sum((report) => report.http2Connections),
  )
  gauge(
    'connections_refused',
    'Connections refused by the limits per network.',
    sum((report) => report.refusedConnections),
  )
  gauge(
    'networks',
    'Visitor networks being counted.',
    sum((report) => report.networks),
  )
  gauge(
    'held_bytes',
    'Bytes of answers that wait for their readers.',
    sum((report) => report.heldBytes),
  )
  gauge(
    'cache_bytes',
    'Bytes in the memory caches.',
    sum((report) => report.cacheBytes),
  )
  gauge(
    'resident_bytes',
    'Resident memory of the workers.',
    sum((report) => report.residentBytes),
  )
  gauge(
    'proxied_requests',
    'Requests that control is answering.',
    sum((report) => report.proxiedRequests),
  )
  for (const { pid, eventLoopDelay } of reports) collectDelays(registry, `worker ${pid}`, eventLoopDelay)
  gauge('following', '1 while the change log is followed.', follower.isFollowing() ? 1 : 0)
  gauge('views_pending', 'Page views not yet in Redis.', ledger.pending())
}

/** Each process by itself: an average over them would hide the one that all visitors wait for. */
function collectDelays(registry: Registry, process: string, delay: ReturnType<DelayMeter['read']>): void {
  const gauge = (name: string): Gauge =>
    (registry.getSingleMetric(name) as Gauge | undefined) ??
    new Gauge({ name, help: 'Since the last scrape.', labelNames: ['process'], registers: [registry] })
  gauge('dropway_edge_event_loop_delay_p999_ms').set({ process }, delay.p999Ms)
  gauge('dropway_edge_event_loop_delay_max_ms').set({ process }, delay.maxMs)
}

/** Each name is a series of its own: so many at most, the newest. */
const MAX_NAMED_REFUSALS = 50
const MAX_LABEL_CHARS = 253

function collectRefusals(registry: Registry, refused: readonly string[]): void {
  const registers = [registry]
  new Gauge({
    name: 'dropway_edge_refused',
    help: 'Hosts, certificates and others whose news cannot be used.',
    registers,
  }).set(refused.length)
  const named = new Gauge({
    name: 'dropway_edge_refused_name',
    help: 'Which they are.',
    labelNames: ['kind', 'name'],
    registers,
  })
  for (const key of refused.slice(-MAX_NAMED_REFUSALS)) {
    const space = key.indexOf(' ')
    named.set({ kind: key.slice(0, space), name: key.slice(space + 1, space + 1 + MAX_LABEL_CHARS) }, 1)
  }
}

function collectCertificates(registry: Registry, counts: CertificateCounts): void {
  const name = (suffix: string): string => `dropway_certificates_${suffix}`
  const orders = new Counter({
    name: name('orders_total'),
    help: 'Orders by outcome.',
    labelNames: ['outcome'],
    registers: [registry],
  })
  orders.inc({ outcome: 'issued' }, counts.issued)
  orders.inc({ outcome: 'renewed' }, counts.renewed)
  orders.inc({ outcome: 'revoked' }, counts.revoked)
  orders.inc({ outcome: 'postponed' }, counts.postponed)
  for (const [reason, count] of counts.failed) orders.inc({ outcome: reason }, count)
  const gauge = (suffix: string, help: string, value: number): void =>
    new Gauge({ name: name(suffix), help, registers: [registry] }).set(value)
  gauge('issue_seconds_sum', 'Time that all orders of this edge took.', counts.issueSeconds)
  gauge('issue_seconds_last', 'Time that the last order of this edge took.', counts.lastIssueSeconds)
  gauge('wanted', 'Custom domains that want a certificate.', counts.wanted)
  gauge('held', 'Custom domains that have one.', counts.certificates)
  // Without any certificate there is no nearest end.
  if (counts.fewestDaysLeft !== undefined)
    gauge('days_left_min', 'Days until the first certificate ends.', counts.fewestDaysLeft)
}
