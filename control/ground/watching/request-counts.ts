/** Counts what this control answered, by route and status. The routes are a fixed list, so the figures are bounded. */
import type { Answered } from '../http/server/server.ts'
import type { Family, Sample } from './exposition.ts'

/** Upper ends in seconds: from a look-up in memory to an upload over a slow line. */
const BUCKETS_S: readonly number[] = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

export interface RequestCounts {
  arrived(): void
  answered(answer: Answered): void
  families(): Family[]
}

interface Durations {
  /** How many took no longer than the bucket at this place, and longer than the one before. */
  readonly counts: number[]
  sum: number
  count: number
}

export function createRequestCounts(): RequestCounts {
  const byStatus = new Map<string, { readonly labels: Record<string, string>; value: number }>()
  const byRoute = new Map<string, Durations>()
  let underWay = 0

  function durationsOf(route: string): Durations {
    let durations = byRoute.get(route)
    if (!durations) byRoute.set(route, (durations = { counts: BUCKETS_S.map(() => 0), sum: 0, count: 0 }))
    return durations
  }

  return {
    arrived() {
      underWay += 1
    },
    answered({ route = 'none', method: asked, status, seconds }) {
      underWay -= 1
      const method = METHODS.has(asked) ? asked : 'other'
      const key = `${method} ${status ?? 'left'} ${route}`
      const counted = byStatus.get(key)
      if (counted) counted.value += 1
      else byStatus.set(key, { labels: { route, method, status: String(status ?? 'left') }, value: 1 })
      const durations = durationsOf(route)
      const bucket = BUCKETS_S.findIndex((end) => seconds <= end)
      if (bucket >= 0) durations.counts[bucket]! += 1
      durations.sum += seconds
      durations.count += 1
    },
    families: () => [
      {
        name: 'dropway_control_requests_total',
        help: 'Answers by route, method and status; "left" when the caller did not wait for one.',
        type: 'counter',
        samples: [...byStatus.values()],
      },
      {
        name: 'dropway_control_request_seconds',
        help: 'From the arrival of a request to the end of its answer.',
        type: 'histogram',
        samples: [...byRoute].flatMap(([route, durations]) => histogram(route, durations)),
      },
      {
        name: 'dropway_control_requests_under_way',
        help: 'Requests that wait for their answer.',
        type: 'gauge',
        samples: [{ value: underWay }],
      },
    ],
  }
}

function histogram(route: string, { counts, sum, count }: Durations): Sample[] {
  let total = 0
  const buckets = BUCKETS_S.map((end, index) => {
    total += counts[index] ?? 0
    return { suffix: '_bucket', labels: { route, le: String(end) }, value: total }
  })
  return [
    ...buckets,
    { suffix: '_bucket', labels: { route, le: '+Inf' }, value: count },
    { suffix: '_sum', labels: { route }, value: sum },
    { suffix: '_count', labels: { route }, value: count },
  ]
}
