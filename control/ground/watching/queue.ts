/** Something that waits to be done, as the database counts it. */
import { SECOND_MS } from '../../../shared/running/clock.ts'

/** `since`: when the first of them was due; null when nothing waits. */
export interface QueueRow {
  readonly length: number
  readonly since: Date | null
}

export interface QueueState {
  readonly length: number
  /** How long the first has waited since it was due; 0 when nothing waits. */
  readonly ageSeconds: number
}

export function queueState({ length, since }: QueueRow, now: Date): QueueState {
  const ageMs = since === null ? 0 : now.getTime() - since.getTime()
  return { length, ageSeconds: Math.max(0, ageMs) / SECOND_MS }
}
