/**
 * Page views, and visits of viewers, on their way to Redis. A batch that Redis did not confirm is kept and sent again; only an answer that
 * was lost on the way back can count a batch twice.
 */
import type { Redis } from 'ioredis'
import { keys } from '../../shared/redis/keys.ts'

const FLUSH_MS = 1000
/** Keys in one round trip. */
const BATCH = 500

export interface ViewLedger {
  add(counts: readonly (readonly [string, number])[]): void
  pending(): number
  /** The last attempt, then no more. */
  stop(): Promise<void>
}

/** `key`: the hash in Redis that counts are added to; `maxWaiting`: how many counts wait while it is away. */
export function startViewLedger(
  redis: Pick<Redis, 'multi' | 'status'>,
  { key: hash, maxWaiting }: { key: string; maxWaiting: number } = { key: keys.views, maxWaiting: Infinity },
): ViewLedger {
  const waiting = new Map<string, number>()
  let flushing: Promise<void> | undefined

  const add = (counts: readonly (readonly [string, number])[]): void => {
    for (const [key, count] of counts)
      if (waiting.size < maxWaiting || waiting.has(key)) waiting.set(key, (waiting.get(key) ?? 0) + count)
  }

  async function flush(): Promise<void> {
    while (waiting.size > 0 && redis.status === 'ready') {
      const batch = [...waiting].slice(0, BATCH)
      for (const [key] of batch) waiting.delete(key)
      const transaction = redis.multi()
      for (const [key, count] of batch) transaction.hincrby(hash, key, count)
      try {
        const results = (await transaction.exec()) ?? []
        // A command can be refused inside a transaction that as such went through (no memory left).
        add(batch.filter((_, index) => results[index]?.[0] != null))
        if (results.some(([error]) => error !== null)) return
      } catch {
        add(batch)
        return
      }
    }
  }

  const flushOnce = (): Promise<void> => (flushing ??= flush().finally(() => void (flushing = undefined)))
  const timer = setInterval(() => void flushOnce(), FLUSH_MS)
  return {
    add,
    pending: () => waiting.size,
    async stop() {
      clearInterval(timer)
      await flushOnce()
      await flushOnce()
    },
  }
}
