/**
 * Takes a backup: everything of one moment, into a place (place.ts says what lies where).
 *
 * Certificates and the ACME account are rows of Postgres, sealed there. SECRET_KEY, which opens them, is not in the
 * backup: keep it elsewhere. Its fingerprint is, so that a restore with another key is refused.
 */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { createGzip } from 'node:zlib'
import { z } from 'zod'
import type { BlobStore } from '../../../shared/blobs/blob-store.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import { appliedMigrations } from '../../ground/database/migrate.ts'
import type { Pool, Sql } from '../../ground/database/sql.ts'
import { inSnapshot, snapshotEnd, type BackupPlace } from './place.ts'
import { countRows, keptBlobs, rowsOf, sequences, tablesInOrder } from './queries.ts'
import { snapshotName } from './rules.ts'

export const backupSchema = z.object({
  format: z.literal(1),
  takenAt: z.string(),
  keyFingerprint: z.string(),
  sitesDomain: z.string(),
  migrations: z.array(z.string()),
  /** Rows by table, in the order in which they can be filled. */
  tables: z.array(z.object({ name: z.string(), rows: z.number() })),
  sequences: z.array(z.object({ name: z.string(), value: z.number() })),
  blobs: z.number(),
})

export type BackupFacts = z.infer<typeof backupSchema>

export interface BackupContext {
  readonly sql: Pool
  readonly blobs: BlobStore
  readonly secrets: Secrets
  readonly dataDir: string
  readonly sitesDomain: string
  readonly now: number
}

const CA_FILES = ['ca.key', 'ca.pem'] as const
export const CA_CONTEXT = 'backup-ca'

/** Says whether two installations share SECRET_KEY without telling anything about it. */
export function keyFingerprint(secrets: Secrets): string {
  return secrets.sign('seal', 'backup').slice(0, 16)
}

/** A snapshot that is complete, and what is in it. */
export interface Snapshot {
  readonly name: string
  readonly facts: BackupFacts
}

export async function takeBackup(context: BackupContext, place: BackupPlace): Promise<Snapshot> {
  const name = snapshotName(context.now)
  // One moment for all tables. Content is named by hash and kept for a day after its version is dropped, so it may
  // be copied while publishing goes on.
  const facts = (await context.sql.begin('isolation level repeatable read read only', async (sql) => {
    await sql`set local statement_timeout = 0`
    await sql`set local idle_in_transaction_session_timeout = 0`
    const tables = []
    for (const table of await tablesInOrder(sql)) tables.push(await dumpTable(sql, table, name, place))
    await writeLines(place, inSnapshot(name, 'blobs.gz'), endLines(keptBlobs(sql)))
    return {
      format: 1 as const,
      takenAt: new Date(context.now).toISOString(),
      keyFingerprint: keyFingerprint(context.secrets),
      sitesDomain: context.sitesDomain,
      migrations: await appliedMigrations(sql),
      tables,
      sequences: await sequences(sql),
      blobs: await copyBlobs(keptBlobs(sql), context.blobs, place.blobs),
    }
  })) as BackupFacts
  await sealCa(context, place, name)
  await place.write(snapshotEnd(name), Readable.from([Buffer.from(`${JSON.stringify(facts, undefined, 2)}\n`)]))
  return { name, facts }
}

async function dumpTable(
  sql: Sql,
  table: string,
  snapshot: string,
  place: BackupPlace,
): Promise<{ name: string; rows: number }> {
  await writeLines(place, inSnapshot(snapshot, `tables/${table}.gz`), rowsOf(sql, table))
  return { name: table, rows: await countRows(sql, table) }
}

function writeLines(place: BackupPlace, name: string, lines: AsyncIterable<string>): Promise<void> {
  return place.write(name, Readable.from(lines).compose(createGzip()))
}

async function* endLines(lines: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const line of lines) yield `${line}\n`
}

/** Every blob is hashed on its way: a copy that differs is never kept. Returns how many there are. */
export async function copyBlobs(hashes: AsyncIterable<string>, from: BlobStore, to: BlobStore): Promise<number> {
  let count = 0
  for await (const hash of hashes) {
    count++
    if (!(await to.has(hash))) await copyBlob(hash, from, to)
  }
  return count
}

/** Throws when the bytes are not those that the name says. */
export async function copyBlob(hash: string, from: BlobStore, to: BlobStore): Promise<void> {
  const writer = await to.writer()
  try {
    for await (const chunk of from.stream(hash) as AsyncIterable<Uint8Array>) await writer.write(chunk)
  } catch (error) {
    await writer.abort()
    throw error
  }
  const stored = await writer.finish()
  if (stored.hash !== hash) throw new Error(`blob ${hash} has other bytes than its name says`)
}

async function sealCa({ dataDir, secrets }: BackupContext, place: BackupPlace, snapshot: string): Promise<void> {
  const files = await Promise.all(
    CA_FILES.map((name) => readFile(path.join(dataDir, 'ca', name), 'utf8').catch(() => undefined)),
  )
  if (files.some((found) => found === undefined)) return
  const contents = Object.fromEntries(CA_FILES.map((name, index) => [name, files[index]]))
  const sealed = secrets.seal(JSON.stringify(contents), CA_CONTEXT)
  await place.write(inSnapshot(snapshot, 'ca.sealed'), Readable.from([Buffer.from(sealed)]))
}

/** The newest complete snapshot, or the one that is named. */
export async function findSnapshot(place: BackupPlace, name: string | undefined): Promise<Snapshot | undefined> {
  const wanted = name === undefined ? (await place.snapshots()).at(-1) : path.basename(name)
  const end = wanted === undefined ? undefined : await place.read(snapshotEnd(wanted))
  if (wanted === undefined || end === undefined) return undefined
  return { name: wanted, facts: backupSchema.parse(JSON.parse(await text(end))) }
}
