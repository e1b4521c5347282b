/**
 * Records that say that a host is nothing (`none`) go when every edge has long heard of them: a host without a record is
 * nothing, too. First from Redis, then from the table: who dies in between leaves a record that the next run removes,
 * never one in Redis that the table does not know.
 */
import type { Redis } from 'ioredis'
import { keys } from '../../../shared/redis/keys.ts'
import { DAY_MS } from '../../../shared/running/clock.ts'
import type { Sql } from '../database/sql.ts'
import { forgetInBatches } from '../database/forget.ts'

/** An edge that was away for longer tells control of what it still holds, and is told (history-rules.ts). */
export const GONE_HOSTS_KEPT_MS = 30 * DAY_MS

/** Compares and removes in one step: a host that is used again meanwhile has another record. */
const REMOVE = `if redis.call('hget', KEYS[1], ARGV[1]) == ARGV[2] then return redis.call('hdel', KEYS[1], ARGV[1]) end return 0`

interface GoneHost {
  readonly host: string
  readonly revision: number
}

type Snapshot = Pick<Redis, 'get' | 'hget' | 'eval'>

/** Notes hosts that are nothing since lately, and forgets those that have been for long. Resolves how many went. */
export async function forgetGoneHosts(sql: Sql, redis: Snapshot, now: Date): Promise<number> {
  await noteGoneHosts(sql, now)
  // Its record is how control knows that the table has what was published last.
  const newest = (await redis.get(keys.newest))?.split(' ')[1] ?? ''
  return forgetInBatches(async (limit) => {
    const gone = await findGoneHosts(sql, newest, new Date(now.getTime() - GONE_HOSTS_KEPT_MS), limit)
    for (const one of gone) await removeFromSnapshot(redis, one)
    return deleteGoneHosts(sql, gone)
  })
}

/** The same record may be written in two ways, as it was announced and as all were published again. */
async function removeFromSnapshot(redis: Snapshot, { host, revision }: GoneHost): Promise<void> {
  const published = await redis.hget(keys.routes, host)
  if (published === null || (JSON.parse(published) as { revision?: number }).revision !== revision) return
  await redis.eval(REMOVE, 1, keys.routes, host, published)
}

async function noteGoneHosts(sql: Sql, now: Date): Promise<void> {
  await sql`
    insert into gone_hosts (host, revision, noted_at)
    select host, revision, ${now} from routes where record ->> 'kind' = 'none'
    on conflict (host) do update set revision = excluded.revision, noted_at = excluded.noted_at
    where gone_hosts.revision <> excluded.revision`
  await sql`
    delete from gone_hosts g using routes r where r.host = g.host and r.record ->> 'kind' <> 'none'`
}

/** Only records that were published: what waits in the outbox would put them back. */
async function findGoneHosts(sql: Sql, except: string, before: Date, limit: number): Promise<GoneHost[]> {
  return sql<GoneHost[]>`
    select r.host, r.revision from gone_hosts g
      join routes r on r.host = g.host and r.revision = g.revision and r.record ->> 'kind' = 'none'
    where g.noted_at < ${before} and r.host <> ${except} and r.revision < (select max(revision) from routes)
      and not exists (select from outbox where kind = 'route' and name = r.host)
    order by g.noted_at limit ${limit}`
}

async function deleteGoneHosts(sql: Sql, gone: readonly GoneHost[]): Promise<number> {
  const hosts = gone.map(({ host }) => host)
  const revisions = gone.map(({ revision }) => revision)
  const { count } = await sql`
    delete from routes r using unnest(${hosts}::text[], ${revisions}::bigint[]) as g (host, revision)
    where r.host = g.host and r.revision = g.revision`
  await sql`delete from gone_hosts where host = any(${hosts})`
  return count
}
