/**
 * The write side of publication. Called inside the transaction of a change: the change and the news of it
 * commit together or not at all. `publish.ts` carries the rows to Redis.
 */
import type { RouteRecord } from '../../../shared/route-record.ts'
import { encodeRouteRecord } from '../../../shared/route-record.ts'
import { encodeDomainWish, type DomainWish } from '../../../shared/stream.ts'
import { currentCall } from '../database/call.ts'
import { jsonb, one, type Sql } from '../database/sql.ts'

type Unrevised<Record> = Record extends RouteRecord ? Omit<Record, 'v' | 'revision'> : never
export type NewRoute = Unrevised<RouteRecord>

/** Sets what the edges answer at a host. Later calls for the same host win, in commit order of the row lock. */
export async function setRoute(sql: Sql, route: NewRoute): Promise<void> {
  // The upsert locks the host's row first, so that revisions of one host are handed out in commit order.
  await sql`insert into routes (host, record, revision) values (${route.host}, '{}', 0)
            on conflict (host) do update set host = excluded.host`
  const { revision, history } = one(
    await sql<{ revision: number; history: string }[]>`
      select nextval('route_revisions')::bigint as revision, (select id from history) as history`,
  )
  const record = { ...route, v: 1, revision } as RouteRecord
  await sql`update routes set record = ${jsonb(sql, record)}, revision = ${record.revision} where host = ${route.host}`
  noteChange(route.host, history)
  await enqueue(sql, { kind: 'route', name: route.host, value: encodeRouteRecord(record), revision: record.revision })
}

/** What the caller's acknowledgement is about. */
function noteChange(host: string, history: string): void {
  const call = currentCall()
  call?.changedHosts.add(host)
  call?.histories.add(history)
}

/** Asks the edges to have (or to give up) a certificate for a custom domain. */
export async function setDomainWanted(sql: Sql, domain: string, wish: DomainWish): Promise<void> {
  const { revision } = one(await sql<{ revision: number }[]>`select nextval('route_revisions')::bigint as revision`)
  await enqueue(sql, { kind: 'domain', name: domain, value: encodeDomainWish(wish), revision })
}

async function enqueue(
  sql: Sql,
  entry: { kind: 'route' | 'domain'; name: string; value: string; revision: number },
): Promise<void> {
  await sql`insert into outbox ${sql(entry)}`
}

/** Changes that have not reached Redis yet. */
export async function outboxBacklog(sql: Sql): Promise<number> {
  return one(await sql<{ count: number }[]>`select count(*) as count from outbox`).count
}
