/** When each job last came to a good end, so that one that fails or hangs is noticed before its work is missed. */
import { SECOND_MS, type Clock } from '../../../shared/running/clock.ts'
import type { Family } from './exposition.ts'

interface JobRecord {
  readonly intervalMs: number
  held: number
  lastSuccessMs: number
  failures: number
  lastSeconds: number | undefined
}

export interface JobRecords {
  /** From now on this job is expected to succeed every so often. */
  expect(job: string, intervalMs: number): void
  succeeded(job: string, seconds: number): void
  failed(job: string): void
  /** So many things it leaves undone until a person has decided. */
  holds(job: string, count: number): void
  families(): Family[]
}

export function createJobRecords(clock: Clock): JobRecords {
  const records = new Map<string, JobRecord>()
  const each = (value: (record: JobRecord) => number | undefined): Family['samples'] =>
    [...records].flatMap(([job, record]) => {
      const figure = value(record)
      return figure === undefined ? [] : [{ labels: { job_name: job }, value: figure }]
    })
  return {
    // Before its first end a job counts as well since it was begun: one that never ends must be noticed too.
    expect: (job, intervalMs) =>
      void records.set(job, { intervalMs, lastSuccessMs: clock.now(), held: 0, failures: 0, lastSeconds: undefined }),
    succeeded(job, seconds) {
      const record = records.get(job)
      if (!record) return
      record.lastSuccessMs = clock.now()
      record.lastSeconds = seconds
    },
    failed(job) {
      const record = records.get(job)
      if (record) record.failures += 1
    },
    holds(job, count) {
      const record = records.get(job)
      if (record) record.held = count
    },
    families: () => [
      {
        name: 'dropway_control_job_held',
        help: 'What the job leaves undone until a person has decided.',
        type: 'gauge',
        samples: each(({ held }) => held),
      },
      {
        name: 'dropway_control_job_last_success_timestamp_seconds',
        help: 'When the job last came to a good end; the start of this control, until it has.',
        type: 'gauge',
        samples: each(({ lastSuccessMs }) => lastSuccessMs / SECOND_MS),
      },
      {
        name: 'dropway_control_job_interval_seconds',
        help: 'How often the job is meant to run.',
        type: 'gauge',
        samples: each(({ intervalMs }) => intervalMs / SECOND_MS),
      },
      {
        name: 'dropway_control_job_failures_total',
        help: 'Runs that failed.',
        type: 'counter',
        samples: each(({ failures }) => failures),
      },
      {
        name: 'dropway_control_job_last_seconds',
        help: 'How long the last good run took.',
        type: 'gauge',
        samples: each(({ lastSeconds }) => lastSeconds),
      },
    ],
  }
}
