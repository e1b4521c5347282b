/**
 * A drill: the newest backup is restored into a scratch database and a scratch directory, everything in it is counted
 * and compared, and both go again. Nothing of the running service is touched; a backup that cannot be restored is found
 * out on a quiet day.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { createDirectoryBlobStore } from '../../../shared/blobs/directory-store.ts'
import { SECOND_MS } from '../../../shared/running/clock.ts'
import { migrate } from '../../ground/database/migrate.ts'
import { openDatabase, type Pool } from '../../ground/database/sql.ts'
import type { BackupContext } from './backup.ts'
import type { BackupPlace } from './place.ts'
import { countRestored } from './queries.ts'
import { restoreBackup, RestoreRefused } from './restore.ts'

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
  const folder = path.join(context.dataDir, `drill-${randomBytes(6).toString('hex')}`)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const scratch = await openScratch(options)
  try {
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

interface Scratch {
  readonly sql: Pool
  close(): Promise<void>
}

async function openScratch({ context, databaseUrl, scratchUrl }: DrillOptions): Promise<Scratch> {
  if (scratchUrl !== undefined) {
    const sql = openDatabase({ url: scratchUrl, maxConnections: 2 })
    return { sql, close: () => sql.end({ timeout: 2 }) }
  }
  const name = `dropway_drill_${randomBytes(6).toString('hex')}`
  try {
    await context.sql`create database ${context.sql(name)}`
  } catch (error) {
    throw new RestoreRefused(
      `No scratch database can be made (${(error as Error).message}). Make an empty one and say --database postgres://…`,
      { cause: error },
    )
  }
  const sql = openDatabase({ url: withDatabase(databaseUrl, name), maxConnections: 2 })
  return {
    sql,
    async close() {
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
