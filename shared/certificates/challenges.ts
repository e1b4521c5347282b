/**
 * Tokens of http-01 (RFC 8555 §8.3) and of our own probes. They live in the change log alone: every edge that follows
 * it answers them, and one that starts looks back for those that are open.
 */
import { MINUTE_MS } from '../running/clock.ts'
import { keys, LOG_LENGTH } from '../redis/keys.ts'
import { everyEdgeReached, type EdgeRegistry } from '../contracts/live-edges.ts'
import { encodeStreamMessage } from '../redis/stream.ts'

/** A token lives longer than any CA takes to look. One that was announced before that is over, withdrawn or not. */
export const CHALLENGE_LIFETIME_MS = 10 * MINUTE_MS

export interface ChallengeLog extends EdgeRegistry {
  xadd(...entry: [key: string, ...fields: (string | number)[]]): Promise<string | null>
}

/** True once every live edge answers the token; false when that took too long. */
export async function announceChallenge(
  redis: ChallengeLog,
  token: string,
  answer: string,
  waitMs: number,
): Promise<boolean> {
  const position = await tell(redis, token, answer)
  return position !== null && everyEdgeReached(redis, position, waitMs)
}

export async function withdrawChallenge(redis: ChallengeLog, token: string): Promise<void> {
  await tell(redis, token, '')
}

function tell(redis: ChallengeLog, token: string, value: string): Promise<string | null> {
  const message = encodeStreamMessage({ kind: 'challenge', name: token, value })
  return redis.xadd(keys.log, 'MAXLEN', '~', LOG_LENGTH, '*', ...message)
}
