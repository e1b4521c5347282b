/**
 * What edges call out when they have acknowledged something. A hint only says that it is time to look: what counts is what
 * stands in Redis then. Hints get lost with connections, and a Redis may refuse them; looking every few milliseconds goes
 * on without them.
 */
import type { Redis } from 'ioredis'
import { keys } from '../../../shared/redis/keys.ts'
import { openBlocking } from '../../../shared/redis/redis.ts'

export interface AcknowledgementHints {
  start(): void
  stop(): void
  /** One listener: the acknowledgements. */
  onHint(listener: (edgeId: string, position: string) => void): void
}

/** Longer than any silence of a Redis that is well: a connection that only listens has nothing to time out. */
const NEVER_MS = 2 ** 31 - 1

export function listenForHints(redis: Redis): AcknowledgementHints {
  let subscriber: Redis | undefined
  let hear: (edgeId: string, position: string) => void = () => {}
  return {
    start() {
      subscriber = openBlocking(redis, NEVER_MS)
      subscriber.on('error', () => {})
      subscriber.on('message', (_channel: string, message: string) => {
        const [edgeId = '', position = ''] = message.split(' ')
        hear(edgeId, position)
      })
      subscriber.subscribe(keys.acknowledged).catch(() => {})
    },
    stop: () => subscriber?.disconnect(),
    onHint: (listener) => (hear = listener),
  }
}
