import { revisionFloor } from '../../../shared/contracts/history.ts'
import { inOrder, one, transaction, type Pool, type Sql } from '../database/sql.ts'
import { writeNewRoutes } from './outbox.ts'
import type { DatabaseHistory, OutboxRow, Publication, PublicationStore } from './publication.ts'

const PUBLICATION_LOCK = 7_316_002
/** A publisher that says nothing for this long has vanished; waiting for Redis takes it a second. */
const MAX_SILENCE_MS = 30_000

/** Held until the transaction ends. One publisher at a time, across all controls. */
export async function lockPublication(sql: Sql): Promise<void> {
  await sql`
    select set_config('idle_in_transaction_session_timeout', ${String(MAX_SILENCE_MS)}, true),
      pg_advisory_xact_lock(${PUBLICATION_LOCK})`
}

export function createPublicationStore(pool: Pool): PublicationStore {
  return {
    async locked(work, { rows = 0, host } = {}) {
      let deleted: Promise<unknown> | undefined
      const result = await transaction(pool, async (sql) => {
        let published: readonly number[] = []
        const [, history, waiting, askedRevision] = await inOrder(
          () => lockPublication(sql),
          () => readHistory(sql),
          () => (rows === 0 ? Promise.resolve([]) : outboxRows(sql, rows)),
          () => (host === undefined ? Promise.resolve(undefined) : revisionOf(sql, host)),
        )
        const done = await work({
          ...publicationOf(sql, history),
          waiting,
          askedRevision,
          deleteOutbox: (ids) => (published = ids),
        })
        // COMMIT goes out right behind it. Postgres commits nothing where it has failed, and the caller hears it below.
        deleted = published.length === 0 ? undefined : deleteRows(sql, published)
        deleted?.catch(() => {})
        return done
      })
      await deleted
      return result
    },
  }
}

function outboxRows(sql: Sql, limit: number): Promise<OutboxRow[]> {
  return sql<OutboxRow[]>`select id, kind, name, value, revision from outbox order by id limit ${limit}`
}

async function deleteRows(sql: Sql, ids: readonly number[]): Promise<void> {
  await sql`delete from outbox where id = any(${ids as number[]})`
}

async function revisionOf(sql: Sql, host: string): Promise<number | undefined> {
  const [row] = await sql<{ revision: number }[]>`select revision from routes where host = ${host}`
  return row?.revision
}

function publicationOf(
  sql: Sql,
  history: DatabaseHistory,
): Omit<Publication, 'waiting' | 'askedRevision' | 'deleteOutbox'> {
  return {
    history,

    async beginHistory(begun) {
      await sql`set local statement_timeout = 0`
      // Waits for changes of routes that are not committed yet; later ones draw a revision of the new history.
      await sql`lock table routes in exclusive mode`
      const floor = revisionFloor(begun.ordinal)
      await sql`
        update routes set revision = ${floor}::bigint + r.rank,
          record = jsonb_set(routes.record, '{revision}', to_jsonb(${floor}::bigint + r.rank))
        from (select host, row_number() over (order by revision, host) as rank from routes) r where r.host = routes.host`
      await sql`select setval('route_revisions', ${floor}::bigint + 1 + (select count(*) from routes))`
      // The whole table is published now; what waited carries revisions of the old history.
      await sql`delete from outbox where kind = 'route'`
      await sql`
        update history set ordinal = ${begun.ordinal}, id = ${begun.id}, life = ${lifeOfDatabase(sql)},
          removed_unknown = 0, began_at = now()`
    },

    outbox: (limit) => outboxRows(sql, limit),

    routesAfter: (host, limit) =>
      sql`select host, record from routes where host > ${host} order by host limit ${limit}`,

    async countRoutes() {
      return one(await sql<{ count: number }[]>`select count(*) as count from routes`).count
    },

    revisionOf: (host) => revisionOf(sql, host),

    async withoutRoute(hosts) {
      const rows = await sql<{ host: string }[]>`
        select host from unnest(${hosts as string[]}::text[]) as named (host)
        where not exists (select from routes where routes.host = named.host)`
      return rows.map(({ host }) => host)
    },

    async announceAgain(hosts) {
      // Locked: what a change that is not committed yet replaces must not follow its news. Nor is such a change waited
      // for, since all other news would wait with it: it brings news of its own, or the host has its turn later.
      const announced = await sql<{ name: string }[]>`
        insert into outbox (kind, name, value, revision)
        select 'route', host, record::text, revision from routes where host = any(${hosts as string[]})
        order by host for share skip locked
        returning name`
      return announced.map(({ name }) => name)
    },

    async removeUnknown(hosts) {
      const removed = await writeNewRoutes(
        sql,
        hosts.map((host) => ({ kind: 'none', host })),
      )
      await sql`update history set removed_unknown = removed_unknown + ${removed.length}`
      return removed
    },
  }
}

export async function readHistory(sql: Sql): Promise<DatabaseHistory> {
  const row = one(
    await sql<{ ordinal: number; id: string; of_this_life: boolean; removed_unknown: number }[]>`
      select ordinal, id, removed_unknown, life is not distinct from ${lifeOfDatabase(sql)} as of_this_life
      from history`,
  )
  return { ordinal: row.ordinal, id: row.id, ofThisLife: row.of_this_life, removedUnknown: row.removed_unknown }
}

/**
 * The cluster, its timeline (a promoted replica and a recovery to a point in time begin another one), the database and
 * the table: a dump that is read back brings other ones.
 */
function lifeOfDatabase(sql: Sql) {
  return sql`concat_ws(':', (select system_identifier from pg_control_system()),
    left(pg_walfile_name(pg_current_wal_lsn()), 8),
    (select oid from pg_database where datname = current_database()), 'history'::regclass::oid)`
}
