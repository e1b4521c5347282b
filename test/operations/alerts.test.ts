/** Every alert fires on what it is for, and on nothing that is well: judged by Prometheus's own tool. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { findProgram } from '../support/programs.ts'

const RULES = path.resolve(import.meta.dirname, '../../.docker/alerts.yml')
const rules = (parse(readFileSync(RULES, 'utf8')) as { groups: { rules: { alert: string }[] }[] }).groups.flatMap(
  (group) => group.rules,
)
const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-alerts-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Series of a healthy service, one value a minute. Times are those of promtool, whose clock begins at 0. */
const WELL: Readonly<Record<string, string>> = {
  'up{job="control",instance="c1"}': '1x90',
  'up{job="edge",instance="e1"}': '1x90',
  'dropway_control_event_loop_delay_p999_ms{instance="c1"}': '5x90',
  'dropway_control_event_loop_delay_max_ms{instance="c1"}': '20x90',
  'dropway_control_start_time_seconds{instance="c1"}': '0x90',
  'dropway_control_requests_total{instance="c1",route="/",method="GET",status="200"}': '0+600x90',
  'dropway_control_requests_total{instance="c1",route="/",method="GET",status="500"}': '0+1x90',
  'dropway_control_request_seconds_bucket{instance="c1",route="/",le="2.5"}': '0+600x90',
  'dropway_control_request_seconds_bucket{instance="c1",route="/",le="+Inf"}': '0+600x90',
  'dropway_control_request_seconds_bucket{instance="c1",route="/",le="0.01"}': '0+600x90',
  'dropway_control_database_seconds{instance="c1"}': '0.001x90',
  'dropway_control_redis_seconds{instance="c1"}': '0.001x90',
  'dropway_control_pool_waiting{instance="c1"}': '0x90',
  'dropway_control_disk_free_bytes{instance="c1"}': '50000000000x90',
  'dropway_control_queue_age_seconds{instance="c1",queue="routes"}': '0x90',
  'dropway_control_queue_age_seconds{instance="c1",queue="mails"}': '20x90',
  'dropway_control_late_recipients{instance="c1"}': '1x90',
  // A job that ends well every hour, and one that does every minute.
  'dropway_control_job_last_success_timestamp_seconds{instance="c1",job_name="blobs"}': '0x59 3600x59',
  'dropway_control_job_interval_seconds{instance="c1",job_name="blobs"}': '3600x90',
  'dropway_control_job_last_success_timestamp_seconds{instance="c1",job_name="views"}': '0+60x90',
  'dropway_control_job_interval_seconds{instance="c1",job_name="views"}': '5x90',
  'dropway_control_job_held{instance="c1",job_name="lifecycle"}': '0x90',
  'dropway_control_job_held{instance="c1",job_name="blobs"}': '0x90',
  'dropway_control_backup_last_success_timestamp_seconds{instance="c1"}': '0+60x90',
  'dropway_control_backup_interval_seconds{instance="c1"}': '600x90',
  'dropway_control_edges{instance="c1"}': '2x90',
  'dropway_control_unknown_addresses{instance="c1"}': '0x90',
  'dropway_control_differing_planes{instance="c1"}': '0x90',
  'dropway_edge_event_loop_delay_p999_ms{instance="e1",process="primary"}': '5x90',
  'dropway_edge_worker_restarts{instance="e1"}': '0x90',
  'dropway_edge_requests_total{instance="e1",status="200"}': '0+6000x90',
  'dropway_edge_requests_total{instance="e1",status="503"}': '0+600x90',
  'dropway_edge_following{instance="e1"}': '1x90',
  'dropway_edge_refused{instance="e1"}': '0x90',
  'dropway_edge_views_pending{instance="e1"}': '300x90',
  'dropway_certificates_days_left_min{instance="e1"}': '40x90',
  'dropway_certificates_orders_total{instance="e1",outcome="issued"}': '0+1x90',
  'dropway_certificates_orders_total{instance="e1",outcome="dns"}': '0x90',
  'dropway_certificates_orders_total{instance="e1",outcome="postponed"}': '0x90',
}

/** What is different when an alert is due. `null`: the series is gone. */
const ILL: Readonly<Record<string, Readonly<Record<string, string | null>>>> = {
  ControlEventLoopDelayed: { 'dropway_control_event_loop_delay_p999_ms{instance="c1"}': '80x90' },
  EdgeEventLoopDelayed: { 'dropway_edge_event_loop_delay_p999_ms{instance="e1",process="primary"}': '80x90' },
  ProcessRestarted: { 'dropway_control_start_time_seconds{instance="c1"}': '0+60x90' },
  WorkersDie: { 'dropway_edge_worker_restarts{instance="e1"}': '0+1x90' },
  ControlFails: {
    'dropway_control_requests_total{instance="c1",route="/",method="GET",status="500"}': '0+30x90',
  },
  EdgeFails: { 'dropway_edge_requests_total{instance="e1",status="500"}': '0+200x90' },
  ControlSlow: { 'dropway_control_request_seconds_bucket{instance="c1",route="/",le="0.01"}': '0+300x90' },
  DatabaseAway: { 'dropway_control_database_seconds{instance="c1"}': null },
  RedisAway: { 'dropway_control_redis_seconds{instance="c1"}': null },
  DatabasePoolExhausted: { 'dropway_control_pool_waiting{instance="c1"}': '3x90' },
  DiskLow: { 'dropway_control_disk_free_bytes{instance="c1"}': '1000000000x90' },
  ChangesLate: { 'dropway_control_queue_age_seconds{instance="c1",queue="routes"}': '0+60x90' },
  QueueLate: { 'dropway_control_queue_age_seconds{instance="c1",queue="mails"}': '0+60x90' },
  MailsTurnedDown: { 'dropway_control_late_recipients{instance="c1"}': '9x90' },
  JobStale: { 'dropway_control_job_last_success_timestamp_seconds{instance="c1",job_name="views"}': '0x90' },
  RemovalsHeld: { 'dropway_control_job_held{instance="c1",job_name="lifecycle"}': '400x90' },
  BackupOld: { 'dropway_control_backup_last_success_timestamp_seconds{instance="c1"}': '0x90' },
  NoEdges: { 'dropway_control_edges{instance="c1"}': '0x90' },
  EdgeNotFollowing: { 'dropway_edge_following{instance="e1"}': '0x90' },
  EdgeRefuses: { 'dropway_edge_refused{instance="e1"}': '2x90' },
  ViewsLate: { 'dropway_edge_views_pending{instance="e1"}': '20000x90' },
  UnknownAddresses: { 'dropway_control_unknown_addresses{instance="c1"}': '30x90' },
  SettingsDiffer: { 'dropway_control_differing_planes{instance="c1"}': '1x90' },
  CertificateEnds: { 'dropway_certificates_days_left_min{instance="e1"}': '3x90' },
  OrdersFail: { 'dropway_certificates_orders_total{instance="e1",outcome="dns"}': '0+1x90' },
  OrdersPostponed: { 'dropway_certificates_orders_total{instance="e1",outcome="postponed"}': '0+1x90' },
}

/** The longest of them waits for an hour. */
const EVALUATED_AT = '80m'

function promtool(args: readonly string[]): string {
  const program = findProgram('promtool') ?? 'promtool'
  return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

/** An alert that fires unexpectedly, or does not fire, is a failure: each is asked for by name. */
function caseOf(name: string, changed: Readonly<Record<string, string | null>>, firing: readonly string[]): object {
  const series = Object.entries({ ...WELL, ...changed })
  return {
    name,
    interval: '1m',
    input_series: series.flatMap(([of, values]) => (values === null ? [] : [{ series: of, values }])),
    promql_expr_test: rules.map(({ alert }) => ({
      expr: `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`,
      eval_time: EVALUATED_AT,
      exp_samples: [{ labels: '{}', value: firing.includes(alert) ? 1 : 0 }],
    })),
  }
}

test('every rule has a case here, and is a rule', () => {
  expect(rules.map(({ alert }) => alert).toSorted()).toEqual(Object.keys(ILL).toSorted())
  expect(promtool(['check', 'rules', RULES])).toContain('SUCCESS')
})

test('each fires on what it is for, and alone; a service that is well causes none', () => {
  const file = path.join(folder, 'cases.yml')
  const cases = Object.entries(ILL).map(([alert, changed]) => caseOf(alert, changed, [alert]))
  const tests = [caseOf('well', {}, []), ...cases]
  writeFileSync(file, stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }))
  // It says which case found what, and ends with 1.
  expect(promtool(['test', 'rules', file])).toContain('SUCCESS')
})
