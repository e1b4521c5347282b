/** What backing up and restoring ask of Postgres, table by table. */
import { one, type Sql } from '../../ground/database/sql.ts'
import type { BackupRun } from './rules.ts'

const BACKUP_LOCK_ID = 7_316_010

/**
 * Left out: which migrations ran is compared, not copied; what waits for Redis is published whole after a restore;
 * uploads that were under way, and files that were sent ahead of their publish, are sent again by their callers, since
 * their bytes are no content of a version; when backups were taken is of this installation; what drops
 * are found by when their names are searched is written anew with them, by a trigger.
 */
const NOT_COPIED = [
  'schema_migrations',
  'outbox',
  'uploads',
  'upload_blobs',
  'content_uploads',
  'backups',
  'site_names',
]

/** Backups of earlier releases hold more tables than are brought back. */
export function isCopied({ name }: { readonly name: string }): boolean {
  return !NOT_COPIED.includes(name)
}

/** Rows in one round trip. */
export const PAGE_ROWS = 500

export interface SequenceState {
  readonly name: string
  readonly value: number
}

/** Every table, each after those that it refers to. */
export async function tablesInOrder(sql: Sql): Promise<string[]> {
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace and relname::text <> all(${NOT_COPIED}) order by relname`
  const references = await sql<{ from: string; to: string }[]>`
    select a.relname as from, b.relname as to from pg_constraint c
    join pg_class a on a.oid = c.conrelid join pg_class b on b.oid = c.confrelid
    where c.contype = 'f' and a.oid <> b.oid`
  const ordered = new Set<string>()
  const names = tables.map(({ name }) => name)
  const visit = (name: string, path: readonly string[]): void => {
    if (ordered.has(name) || !names.includes(name)) return
    if (path.includes(name)) throw new Error(`tables refer to each other in a circle: ${[...path, name].join(' → ')}`)
    for (const { from, to } of references) if (from === name) visit(to, [...path, name])
    ordered.add(name)
  }
  for (const name of names) visit(name, [])
  return [...ordered]
}

/** Columns by name: the order in which they were added may differ between two installations. */
async function columnsOf(sql: Sql, table: string): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select attname as name from pg_attribute
    where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attname`
  return rows.map(({ name }) => name)
}

/** Each row as one line of JSON; Postgres writes every type so that it can read it back exactly. */
export async function* rowsOf(sql: Sql, table: string): AsyncGenerator<string> {
  const rows = sql<{ line: string }[]>`select row_to_json(t)::text as line from ${sql(table)} t`
  for await (const page of rows.cursor(PAGE_ROWS)) for (const { line } of page) yield `${line}\n`
}

/** Takes lines of `rowsOf`. */
export async function insertRows(sql: Sql, table: string, lines: readonly string[]): Promise<void> {
  const columns = sql(await columnsOf(sql, table))
  await sql`
    insert into ${sql(table)} (${columns}) overriding system value
    select ${columns} from json_populate_recordset(null::${sql(table)}, ${`[${lines.join(',')}]`}::text::json)`
}

export async function countRows(sql: Sql, table: string): Promise<number> {
  return one(await sql<{ count: number }[]>`select count(*) as count from ${sql(table)}`).count
}

export async function sequences(sql: Sql): Promise<SequenceState[]> {
  const rows = await sql<{ name: string; value: number | null }[]>`
    select sequencename as name, last_value as value from pg_sequences where schemaname = 'public'`
  return rows.flatMap(({ name, value }) => (value === null ? [] : [{ name, value }]))
}

export async function setSequence(sql: Sql, { name, value }: SequenceState): Promise<void> {
  await sql`select setval(${name}::regclass, ${value})`
}

/** Files, variants and manifests of every version that is kept. */
export async function* keptBlobs(sql: Sql): AsyncGenerator<string> {
  const rows = sql<{ hash: string }[]>`
    select distinct b.hash from site_blobs b
    join versions v on v.site_id = b.site_id and v.number between b.from_version and coalesce(b.to_version, v.number)
    where v.dropped_at is null
    union
    select hash from kept_blobs where ended_at is null
    union
    select hash from thread_images`
  for await (const page of rows.cursor(PAGE_ROWS)) for (const { hash } of page) yield hash
}

/** No one has an account or a drop yet. A certificate is no content: edges with DNS01 order the service's own by themselves. */
export async function isEmptyInstallation(sql: Sql): Promise<boolean> {
  const { found } = one(
    await sql<{ found: boolean }[]>`select exists (select from users) or exists (select from sites) as found`,
  )
  return !found
}

/** Whoever wants to begin a backup waits here until the other one has begun, or has not. */
export async function lockBackups(sql: Sql): Promise<void> {
  await sql`select pg_advisory_xact_lock(${BACKUP_LOCK_ID})`
}

export async function lastBackup(sql: Sql, { good }: { good: boolean }): Promise<BackupRun | undefined> {
  const [row] = await sql<BackupRun[]>`
    select started_at, alive_at, ended_at, error from backups
    where ${good ? sql`ended_at is not null and error is null` : sql`true`} order by started_at desc limit 1`
  return row
}

export async function insertBackup(sql: Sql, id: string, now: Date): Promise<void> {
  await sql`insert into backups (id, started_at, alive_at) values (${id}, ${now}, ${now})`
}

export async function noteAlive(sql: Sql, id: string, now: Date): Promise<void> {
  await sql`update backups set alive_at = ${now} where id = ${id}`
}

export async function endBackup(
  sql: Sql,
  id: string,
  now: Date,
  outcome: { snapshot: string; rows: number; blobs: number } | { error: string },
): Promise<void> {
  await sql`update backups set ended_at = ${now}, ${sql(outcome)} where id = ${id}`
}

export async function deleteOldRuns(sql: Sql, before: Date): Promise<void> {
  await sql`delete from backups where started_at < ${before}`
}

/** What a person wants to know of a restored installation. */
export async function countRestored(sql: Sql): Promise<{ live_drops: number; accounts: number }> {
  return one(
    await sql<{ live_drops: number; accounts: number }[]>`
      select (select count(*) from sites where deleted_at is null and live_version_id is not null) as live_drops,
        (select count(*) from users) as accounts`,
  )
}

const MAX_NAMED_DROPS = 5

/** Slugs of drops whose kept versions hold this content. */
export async function dropsWith(sql: Sql, hash: string): Promise<string[]> {
  const rows = await sql<{ slug: string }[]>`
    select distinct s.slug from site_blobs b join sites s on s.id = b.site_id
    where b.hash = ${hash} and s.deleted_at is null order by s.slug limit ${MAX_NAMED_DROPS}`
  return rows.map(({ slug }) => slug)
}
