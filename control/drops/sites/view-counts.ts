/**
 * Folds the page views that the edges counted into Postgres, exactly once.
 * The counts are renamed aside as a batch with an id; the batch id is recorded in the transaction that adds them.
 */
import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { keys } from '../../../shared/redis/keys.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'

export async function foldViews({ sql, redis }: { sql: Pool; redis: Redis }): Promise<void> {
  if (await redis.exists(keys.views))
    await redis.rename(keys.views, `${keys.views}:batch:${randomUUID()}`).catch(ignoreMissing)
  for (const batchKey of await batches(redis)) {
    const counts = await redis.hgetall(batchKey)
    await transaction(sql, (tx) => addBatch(tx, batchKey, counts))
    await redis.del(batchKey)
  }
}

/** Ids of batches that are long gone from Redis. */
export async function forgetBatches(sql: Sql, foldedBefore: Date): Promise<void> {
  await sql`delete from view_batches where folded_at < ${foldedBefore}`
}

/** Another control may have renamed it a moment before. */
function ignoreMissing(error: Error): void {
  if (!error.message.includes('no such key')) throw error
}

async function batches(redis: Redis): Promise<string[]> {
  const found: string[] = []
  let cursor = '0'
  do {
    const [next, page] = await redis.scan(cursor, 'MATCH', `${keys.views}:batch:*`, 'COUNT', 1000)
    found.push(...page)
    cursor = next
  } while (cursor !== '0')
  return found
}

async function addBatch(sql: Sql, batchId: string, counts: Record<string, string>): Promise<void> {
  const isNew = await sql`insert into view_batches (id) values (${batchId}) on conflict do nothing returning id`
  if (isNew.length === 0) return
  const entries = Object.entries(counts).map(([field, count]) => {
    const [siteId = '', day = ''] = field.split('|')
    return { siteId, day, count: Number(count) }
  })
  await sql`
    insert into views (site_id, day, count)
    select v.site_id, v.day, v.count
    from unnest(${entries.map((entry) => entry.siteId)}::text[], ${entries.map((entry) => entry.day)}::date[], ${entries.map((entry) => entry.count)}::bigint[]) as v (site_id, day, count)
    join sites s on s.id = v.site_id
    on conflict (site_id, day) do update set count = views.count + excluded.count`
}
