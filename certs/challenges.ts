/** http-01 tokens: every live edge can answer one before the CA is told to look (RFC 8555 §8.3). */
import type { Redis } from 'ioredis'
import { MINUTE_MS, SECOND_MS } from '../shared/clock.ts'
import { keys, LOG_LENGTH } from '../shared/keys.ts'
import { everyEdgeReached } from '../shared/live-edges.ts'
import { encodeStreamMessage } from '../shared/stream.ts'

/** An edge that hangs for longer loses its place in the list of live edges, or the order fails and is tried again. */
const WAIT_FOR_EDGES_MS = 10 * SECOND_MS
/** Longer than any CA takes to look; a token that was never withdrawn is then forgotten. */
const TOKEN_LIFETIME_MS = 10 * MINUTE_MS

export interface Challenges {
  /** Resolves when every live edge answers the token. */
  announce(token: string, keyAuthorization: string): Promise<void>
  withdraw(token: string): Promise<void>
}

export function createChallenges(redis: Redis): Challenges {
  const tell = (token: string, value: string): Promise<string | null> =>
    redis.xadd(
      keys.log,
      'MAXLEN',
      '~',
      LOG_LENGTH,
      '*',
      ...encodeStreamMessage({ kind: 'challenge', name: token, value }),
    )
  return {
    async announce(token, keyAuthorization) {
      await redis.set(keys.challenge(token), keyAuthorization, 'PX', TOKEN_LIFETIME_MS)
      const position = await tell(token, keyAuthorization)
      if (position === null) throw new Error('the challenge could not be announced')
      const reached = await everyEdgeReached(redis, position, WAIT_FOR_EDGES_MS)
      if (!reached) throw new Error('some edge does not answer the challenge yet')
    },
    async withdraw(token) {
      await redis.del(keys.challenge(token))
      await tell(token, '')
    },
  }
}
