/**
 * Brings counts that the edges add to a hash in Redis into Postgres, exactly once. The hash is renamed aside as a batch
 * with an id; `add` records the id in the transaction that adds the counts.
 */
import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { transaction, type Pool, type Sql } from './sql.ts'

export interface Folding {
  readonly sql: Pool
  readonly redis: Redis
  readonly key: string
  /** Adds the counts unless the batch of this id was added before. */
  add(tx: Sql, batchId: string, counts: Readonly<Record<string, string>>): Promise<void>
}

export async function foldCounts({ sql, redis, key, add }: Folding): Promise<void> {
  if (await redis.exists(key)) await redis.rename(key, `${key}:batch:${randomUUID()}`).catch(ignoreMissing)
  for (const batchKey of await batches(redis, key)) {
    const counts = await redis.hgetall(batchKey)
    await transaction(sql, (tx) => add(tx, batchKey, counts))
    await redis.del(batchKey)
  }
}

/** Another control may have renamed it a moment before. */
function ignoreMissing(error: Error): void {
  if (!error.message.includes('no such key')) throw error
}

async function batches(redis: Redis, key: string): Promise<string[]> {
  const found: string[] = []
  let cursor = '0'
  do {
    const [next, page] = await redis.scan(cursor, 'MATCH', `${key}:batch:*`, 'COUNT', 1000)
    found.push(...page)
    cursor = next
  } while (cursor !== '0')
  return found
}
