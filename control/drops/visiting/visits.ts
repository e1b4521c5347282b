/** Who looked: what the edges note of viewers and guest links, brought into their lists. Members are not counted. */
import type { Redis } from 'ioredis'
import { keys } from '../../../shared/redis/keys.ts'
import { foldCounts } from '../../ground/database/fold.ts'
import type { Pool } from '../../ground/database/sql.ts'
import { addVisits, type Visit } from '../viewers/lists.ts'

export async function foldVisits({ sql, redis }: { sql: Pool; redis: Redis }): Promise<void> {
  await foldCounts({
    sql,
    redis,
    key: keys.visits,
    add: (tx, batchId, counts) => addVisits(tx, batchId, visitsOf(counts)),
  })
}

/** Fields are `<subject>|<second>`. */
function visitsOf(counts: Readonly<Record<string, string>>): Visit[] {
  return Object.entries(counts).map(([field, count]) => {
    const [subject = '', second = '0'] = field.split('|')
    return { subject, second: Number(second), count: Number(count) }
  })
}
