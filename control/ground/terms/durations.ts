/** A setting in words. */
import { DAY_MS, HOUR_MS } from '../../../shared/running/clock.ts'

/** `30 days`, `12 hours`. */
export function durationInWords(ms: number): string {
  const [count, unit] =
    ms >= DAY_MS ? [Math.round(ms / DAY_MS), 'day'] : [Math.max(1, Math.round(ms / HOUR_MS)), 'hour']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}
