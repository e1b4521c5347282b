/**
 * `/metrics` of a control, for Prometheus: on the private port, for requests that come to it directly. What an edge
 * passes on is the world's, and finds nothing here.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { errors } from '../../shared/contracts/errors.ts'
import type { Request, Route } from './http/route.ts'

/** How often the delay is measured. A loop without delay measures this much, so it is taken off. */
const RESOLUTION_MS = 10

export interface ControlMetrics {
  readonly route: Route
  stop(): void
}

export function createMetrics(): ControlMetrics {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  const delayMs = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)

  async function write(): Promise<{ type: string; body: string }> {
    // Loaded when somebody collects figures.
    const { Gauge, Registry } = await import('prom-client')
    const registry = new Registry()
    const gauge = (name: string, help: string, value: number): void =>
      new Gauge({ name, help, registers: [registry] }).set(value)
    gauge('dropway_control_event_loop_delay_p999_ms', 'Since the last scrape.', delayMs(delay.percentile(99.9)))
    gauge('dropway_control_event_loop_delay_max_ms', 'Since the last scrape.', delayMs(delay.max))
    gauge('dropway_control_start_time_seconds', 'Since the epoch.', performance.timeOrigin / 1000)
    gauge('dropway_control_resident_bytes', 'Memory of the process.', process.memoryUsage.rss())
    delay.reset()
    return { type: registry.contentType, body: await registry.metrics() }
  }

  return {
    route: {
      method: 'GET',
      path: '/metrics',
      async handle(request) {
        if (isPassedOn(request)) throw errors.notFound('address')
        const { type, body } = await write()
        return { status: 200, headers: { 'content-type': type, 'cache-control': 'no-store' }, body }
      },
    },
    stop: () => delay.disable(),
  }
}

/** Every edge and every other proxy says for whom it asks. */
function isPassedOn(request: Request): boolean {
  return request.header('x-forwarded-for') !== undefined || request.header('forwarded') !== undefined
}
