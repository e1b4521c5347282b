/**
 * A drill: the newest backup is restored into a scratch database and a scratch directory, everything in it is counted
 * and compared, and both go again. Nothing of the running service is touched; a backup that cannot be restored is found
 * out on a quiet day. A drill that was killed leaves both behind; the next one removes them.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { createDirectoryBlobStore } from '../../../shared/blobs/directory-store.ts'
import { SECOND_MS } from '../../../shared/running/clock.ts'
import { migrate } from '../../ground/database/migrate.ts'
import { openDatabase, type Pool } from '../../ground/database/sql.ts'
import type { BackupContext } from './backup.ts'
import type { BackupPlace } from './place.ts'
import { countRestored } from './queries.ts'
import { restoreBackup, RestoreRefused } from './restore.ts'
import { drillId, mayBeAtWork, mayHaveBegun } from './rules.ts'

export interface DrillOptions {
  readonly context: BackupContext
  readonly place: BackupPlace
  readonly snapshot: string | undefined
  /** The running database, on whose server a scratch one is made. */
  readonly databaseUrl: string
  /** An empty database of the operator's instead, where the role may not make one. It is left as it is afterwards. */
  readonly scratchUrl: string | undefined
}

export interface DrillResult {
  readonly snapshot: string
  readonly taken_at: string
  readonly tables: number
  readonly rows: number
  readonly blobs: number
  readonly bytes: number
  readonly live_drops: number
  readonly accounts: number
  readonly seconds: number
}

export async function runDrill(options: DrillOptions): Promise<DrillResult> {
  const began = performance.now()
  const { context, place, snapshot } = options
  await removeAbandoned(context)
  const id = drillId(context.now, randomBytes(2).toString('hex'))
  // The database first: while someone is connected to it, another drill leaves both alone.
  const scratch = await openScratch(options, id)
  const folder = path.join(context.dataDir, scratch.folder)
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await migrate(scratch.sql)
    const blobs = createDirectoryBlobStore(path.join(folder, 'blobs'))
    // Every table is filled and counted, every blob is hashed on its way: a difference is an error.
    const { name, facts } = await restoreBackup(
      { ...context, sql: scratch.sql, blobs, dataDir: folder },
      place,
      snapshot,
    )
    let bytes = 0
    for await (const { size } of blobs.list()) bytes += size
    return {
      snapshot: name,
      taken_at: facts.takenAt,
      tables: facts.tables.length,
      rows: facts.tables.reduce((sum, table) => sum + table.rows, 0),
      blobs: facts.blobs,
      bytes,
      ...(await countRestored(scratch.sql)),
      seconds: Math.round((performance.now() - began) / SECOND_MS),
    }
  } finally {
    await scratch.close()
    await rm(folder, { recursive: true, force: true })
  }
}

const DATABASE_PREFIX = 'dropway_drill_'
const FOLDER_PREFIX = 'drill-'
/** Folders of drills in a database of the operator's: nothing but their age says whether they are at work. */
const GIVEN_FOLDER_PREFIX = 'drill-given-'
const ID = /^[0-9a-f]{12}$/

/** What killed drills left: databases that no one is connected to, and folders that belong to none. */
async function removeAbandoned({ sql, dataDir, now }: BackupContext): Promise<void> {
  const databases = await sql<{ name: string; is_used: boolean }[]>`
    select datname as name, exists (select from pg_stat_activity a where a.datname = d.datname) as is_used
    from pg_database d where starts_with(datname, ${DATABASE_PREFIX})`
  const atWork = new Set<string>()
  for (const { name, is_used: isUsed } of databases) {
    const [id] = idsIn([name], DATABASE_PREFIX)
    if (id === undefined) continue
    if (isUsed || mayHaveBegun(id, now) || !(await isDropped(sql, name))) atWork.add(id)
  }
  const names = await readdir(dataDir).catch(() => [])
  const abandoned = [
    ...foldersIn(names, FOLDER_PREFIX, (id) => !atWork.has(id)),
    ...foldersIn(names, GIVEN_FOLDER_PREFIX, (id) => !mayBeAtWork(id, now)),
  ]
  for (const name of abandoned) await rm(path.join(dataDir, name), { recursive: true, force: true })
}

function foldersIn(names: readonly string[], prefix: string, isAbandoned: (id: string) => boolean): string[] {
  return idsIn(names, prefix)
    .filter(isAbandoned)
    .map((id) => prefix + id)
}

function idsIn(names: readonly string[], prefix: string): string[] {
  return names.flatMap((name) => {
    const id = name.slice(prefix.length)
    return name.startsWith(prefix) && ID.test(id) ? [id] : []
  })
}

/** Postgres refuses where someone has connected meanwhile; one that belongs to another role stays, too. */
async function isDropped(sql: Pool, name: string): Promise<boolean> {
  try {
    await sql`drop database if exists ${sql(name)}`
    return true
  } catch {
    return false
  }
}

interface Scratch {
  readonly sql: Pool
  /** Its name in DATA_DIR. */
  readonly folder: string
  close(): Promise<void>
}

async function openScratch({ context, databaseUrl, scratchUrl }: DrillOptions, id: string): Promise<Scratch> {
  if (scratchUrl !== undefined) {
    const sql = openDatabase({ url: scratchUrl, maxConnections: 2 })
    return { sql, folder: `${GIVEN_FOLDER_PREFIX}${id}`, close: () => sql.end({ timeout: 2 }) }
  }
  const name = `${DATABASE_PREFIX}${id}`
  try {
    await context.sql`create database ${context.sql(name)}`
  } catch (error) {
    throw new RestoreRefused(
      `No scratch database can be made (${(error as Error).message}). Make an empty one and say --database postgres://…`,
      { cause: error },
    )
  }
  const sql = openDatabase({ url: withDatabase(databaseUrl, name), maxConnections: 3 })
  // The driver gives out a connection that is there; for a new one that asks for no types it would wait for ever.
  await sql`select`
  const connection = await sql.reserve()
  return {
    sql,
    folder: `${FOLDER_PREFIX}${id}`,
    async close() {
      connection.release()
      await sql.end({ timeout: 2 })
      await context.sql`drop database if exists ${context.sql(name)} with (force)`
    },
  }
}

/** The same server, another database. */
function withDatabase(url: string, name: string): string {
  if (url.startsWith('/')) return `${url.split('?database=')[0]}?database=${name}`
  return url.replace(/^([a-z]+:\/\/[^/?#]*)(?:\/[^?#]*)?/, `$1/${name}`)
}
