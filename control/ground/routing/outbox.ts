/**
 * The write side of publication. Called inside the transaction of a change: the change and the news of it
 * commit together or not at all. `routing.ts` carries the rows to Redis.
 */
import { wildcardOf } from '../../../shared/certificates/bundle.ts'
import type { RouteRecord, SiteRoute } from '../../../shared/contracts/route-record.ts'
import { encodeDomainWish, type DomainWish } from '../../../shared/redis/stream.ts'
import { jsonb, one, type Sql } from '../database/sql.ts'
import type { QueueRow } from '../watching/queue.ts'
import { noteRoute, type RoutingTransaction } from './changes.ts'

type Unrevised<Record> = Record extends RouteRecord ? Omit<Record, 'v' | 'revision'> : never
export type NewRoute = Unrevised<RouteRecord>

/** Sets what the edges answer at a host. Later calls for the same host win, in commit order of the row lock. */
export async function setRoute(tx: RoutingTransaction, route: NewRoute): Promise<void> {
  await setRoutes(tx, [route])
}

/** Sets several, in this order, in one statement; of two for one host the later wins. */
export async function setRoutes(tx: RoutingTransaction, routes: readonly NewRoute[]): Promise<void> {
  if (routes.length > 0) noteRoutes(tx, routes, await writeRoutes(tx, routes))
}

/** Notes routes that a statement with `routeParts` has written. */
export function noteRoutes(tx: RoutingTransaction, routes: readonly NewRoute[], history: string): void {
  for (const { host } of routes) noteRoute(tx, host, history)
}

/** Writes routes and the news of them; resolves to the id of the history that they are part of. */
async function writeRoutes(sql: Sql, routes: readonly NewRoute[]): Promise<string> {
  const { history } = one(
    await sql<{ history: string }[]>`with ${routeParts(sql, routes)} select id as history from history`,
  )
  return history
}

/** Writes the routes of hosts that have none, and the news of them; resolves to these hosts. */
export async function writeNewRoutes(sql: Sql, routes: readonly NewRoute[]): Promise<string[]> {
  const written = await sql<{ host: string }[]>`
    with ${routeParts(sql, routes, sql`nothing`)} select host from written_routes`
  return written.map(({ host }) => host)
}

/**
 * The parts of a statement that write routes and the news of them. It locks a host's row, and only then draws the revision
 * that is written, so that revisions of one host are handed out in commit order.
 */
export function routeParts(sql: Sql, routes: readonly NewRoute[], whereKnown = replacing(sql)) {
  const lastOfHost = new Map(routes.map((route) => [route.host, { ...route, v: 1 }]))
  return sql`
    written_routes as (
      insert into routes (host, record, revision)
      select host, record || jsonb_build_object('revision', r), r
      from (
        select route ->> 'host' as host, route as record, nextval('route_revisions') as r
        from jsonb_array_elements(${jsonb(sql, [...lastOfHost.values()])}::jsonb) route) drawn
      on conflict (host) do ${whereKnown}
      returning host, record, revision),
    told_routes as (
      insert into outbox (kind, name, value, revision)
      select 'route', host, record::text, revision from written_routes)`
}

function replacing(sql: Sql) {
  return sql`update set (record, revision) = (
    select excluded.record || jsonb_build_object('revision', r), r from nextval('route_revisions') r)`
}

/** The part of a record that says whether visitors may come in, and which. */
export type ToldRoute = Pick<SiteRoute, 'state' | 'password' | 'viewers'>

/** What the edges were last told of a site, at one of its slugs. */
export async function toldRouteOf(tx: Sql, siteId: string, sitesDomain: string): Promise<ToldRoute | undefined> {
  const [row] = await tx<{ record: SiteRoute }[]>`
    select record from routes
    where host = any(array(select slug || '.' || ${sitesDomain}::text from slugs where site_id = ${siteId})) and record ->> 'kind' = 'site' and record ->> 'site_id' = ${siteId}
    order by revision desc limit 1`
  return row?.record
}

/** The record that edges answer a host by, as a query: its own, else that of the wildcard which stands for it. */
export function routeOfHost(sql: Sql, host: string): ReturnType<Sql> {
  const names = [host, wildcardOf(host) ?? host]
  return sql`
    select host, record from routes where host = any(${names})
    order by record ->> 'kind' = 'none', host <> ${host} limit 1`
}

/** Asks the edges to have (or to give up) a certificate for a custom domain. */
export async function setDomainWanted(tx: RoutingTransaction, domain: string, wish: DomainWish): Promise<void> {
  await tx`
    insert into outbox (kind, name, value, revision)
    values ('domain', ${domain}, ${encodeDomainWish(wish)}, nextval('route_revisions'))`
}

/** Changes that have not reached Redis yet. */
export async function outboxBacklog(sql: Sql): Promise<number> {
  return one(await sql<{ count: number }[]>`select count(*) as count from outbox`).count
}

export async function outboxQueue(sql: Sql): Promise<QueueRow> {
  return one(await sql<QueueRow[]>`select count(*) as length, min(created_at) as since from outbox`)
}
