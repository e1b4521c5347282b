/** How long the event loop keeps what is due waiting. */
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** How often it is measured. A loop without delay measures this much, so it is taken off. */
const RESOLUTION_MS = 10

export interface DelayMeter {
  /** Since the start, or since it was last read anew. */
  read(andBeginAnew: boolean): { readonly p999Ms: number; readonly maxMs: number }
}

export function startDelayMeter(): DelayMeter {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  const toMs = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
  return {
    read(andBeginAnew) {
      const delay = { p999Ms: toMs(histogram.percentile(99.9)), maxMs: toMs(histogram.max) }
      if (andBeginAnew) histogram.reset()
      return delay
    },
  }
}
