/** Folds the page views that the edges counted into Postgres, exactly once. */
import type { Redis } from 'ioredis'
import { keys } from '../../../shared/redis/keys.ts'
import { foldCounts } from '../../ground/database/fold.ts'
import type { Pool, Sql } from '../../ground/database/sql.ts'

export async function foldViews({ sql, redis }: { sql: Pool; redis: Redis }): Promise<void> {
  await foldCounts({ sql, redis, key: keys.views, add: addBatch })
}

/** Ids of batches that are long gone from Redis. */
export async function forgetBatches(sql: Sql, foldedBefore: Date): Promise<void> {
  await sql`delete from view_batches where folded_at < ${foldedBefore}`
}

async function addBatch(sql: Sql, batchId: string, counts: Readonly<Record<string, string>>): Promise<void> {
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
