/**
 * What a visitor loses who takes nothing of an answer. Browsers put the dashboard and drops on one session: a video that is
 * paused in one tab must not end the upload of another.
 *
 * The invariant: an answer that stands still is lost, control's with its place, and work of control's is lost with it only
 * when nothing passes between it and the visitor in either direction.
 */
import { MIN_MOVED_BYTES, type Stall } from '../outgoing/stalled.ts'

export interface StalledSession extends Stall {
  /** Requests of the session that control has, answered in part or not at all. */
  readonly controlAnswers: number
}

/** `answers`: those that stand still, and the right to ask for more; what else is under way goes on to its end. */
export type Loss = 'answers' | 'connection'

export function lossOf({ controlAnswers, isBlocked, arrivedBytes }: StalledSession): Loss {
  if (controlAnswers === 0) return 'connection'
  return isBlocked && arrivedBytes < MIN_MOVED_BYTES ? 'connection' : 'answers'
}
