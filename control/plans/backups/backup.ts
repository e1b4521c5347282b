/**
 * Takes a backup: everything of one moment, into a place (place.ts says what lies where).
 *
 * Certificates and the ACME account are rows of Postgres, sealed there. SECRET_KEY, which opens them, is not in the
 * backup: keep it elsewhere. Its fingerprint is, so that a restore with another key is refused.
 */
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { createGzip } from 'node:zlib'
import { z } from 'zod'
import type { BlobStore } from '../../../shared/blobs/blob-store.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import { PAGES_FOLDER } from '../../ground/config.ts'
import { appliedMigrations } from '../../ground/database/migrate.ts'
import type { Pool } from '../../ground/database/sql.ts'
import { blobList, hasFile, inSnapshot, snapshotEnd, type BackupPlace } from './place.ts'
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
  /** Aborted: the control stops, and what it has begun ends with an error. */
  readonly stopping?: AbortSignal | undefined
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

/** Takes a whole snapshot, or leaves none: all tables are in it, with addresses and hashes of passwords. */
export async function takeBackup(context: BackupContext, place: BackupPlace): Promise<Snapshot> {
  const name = snapshotName(context.now)
  try {
    return { name, facts: await writeSnapshot(context, place, name) }
  } catch (error) {
    // A place that does not answer now is tidied later (retention.ts).
    await place.remove(name).catch(() => {})
    throw error
  }
}

async function writeSnapshot(context: BackupContext, place: BackupPlace, name: string): Promise<BackupFacts> {
  const { blobs, ...tables } = await dumpTables(context, place, name)
  // Content is named by hash and kept for a day after its version is dropped, so it may be copied while publishing goes
  // on, and while migrations change the tables.
  const isThere = (hash: string): Promise<boolean> => place.blobs.has(hash)
  const copied = await copyBlobs(blobs, { from: context.blobs, to: place.blobs, isThere, stopping: context.stopping })
  const facts: BackupFacts = { ...tables, blobs: copied }
  await sealCa(context, place, name)
  await copyPages(context, place, name)
  if (!(await hasFile(place, blobList(name))))
    throw new Error('the backup took so long that another one, which was over before it, took it for abandoned')
  await place.write(snapshotEnd(name), Readable.from([Buffer.from(`${JSON.stringify(facts, undefined, 2)}\n`)]))
  return facts
}

/** One moment for all tables; `blobs` names the content that belongs to it. */
function dumpTables(
  context: BackupContext,
  place: BackupPlace,
  name: string,
): Promise<Omit<BackupFacts, 'blobs'> & { blobs: string[] }> {
  const { stopping } = context
  const compressed = (lines: AsyncIterable<string>): AsyncIterable<Uint8Array> =>
    Readable.from(unlessStopped(lines, stopping)).compose(createGzip())
  const dumped = context.sql.begin('isolation level repeatable read read only', async (sql) => {
    await sql`set local statement_timeout = 0`
    await sql`set local idle_in_transaction_session_timeout = 0`
    const tables = []
    for (const table of await tablesInOrder(sql)) {
      await place.write(inSnapshot(name, `tables/${table}.gz`), compressed(rowsOf(sql, table)))
      tables.push({ name: table, rows: await countRows(sql, table) })
    }
    const blobs: string[] = []
    for await (const hash of keptBlobs(sql)) blobs.push(hash)
    await place.write(blobList(name), compressed(endLines(blobs)))
    return {
      format: 1 as const,
      takenAt: new Date(context.now).toISOString(),
      keyFingerprint: keyFingerprint(context.secrets),
      sitesDomain: context.sitesDomain,
      migrations: await appliedMigrations(sql),
      tables,
      sequences: await sequences(sql),
      blobs,
    }
  })
  return dumped as Promise<Awaited<typeof dumped> & { blobs: string[] }>
}

async function* endLines(lines: Iterable<string>): AsyncGenerator<string> {
  for (const line of lines) yield `${line}\n`
}

async function* unlessStopped<Item>(
  items: AsyncIterable<Item> | Iterable<Item>,
  stopping: AbortSignal | undefined,
): AsyncGenerator<Item> {
  for await (const item of items) {
    if (stopping?.aborted) throw new Error('the control was stopped on the way')
    yield item
  }
}

export interface BlobCopying {
  readonly from: BlobStore
  readonly to: BlobStore
  /** Whether `to` has it, so that it need not be copied. */
  isThere(hash: string): Promise<boolean>
  readonly stopping?: AbortSignal | undefined
}

/** Every blob is hashed on its way: a copy that differs is never kept. Returns how many there are. */
export async function copyBlobs(
  hashes: AsyncIterable<string> | Iterable<string>,
  { from, to, isThere, stopping }: BlobCopying,
): Promise<number> {
  let count = 0
  for await (const hash of unlessStopped(hashes, stopping)) {
    count++
    if (!(await isThere(hash))) await copyBlob(hash, from, to)
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

/** The operator's own texts, as this control shows them. */
async function copyPages({ dataDir }: BackupContext, place: BackupPlace, snapshot: string): Promise<void> {
  const folder = path.join(dataDir, PAGES_FOLDER)
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const texts: Record<string, string> = {}
  for (const name of names.filter((each) => each.endsWith('.md')))
    texts[name] = await readFile(path.join(folder, name), 'utf8')
  if (Object.keys(texts).length === 0) return
  await place.write(inSnapshot(snapshot, 'pages.json'), Readable.from([Buffer.from(JSON.stringify(texts))]))
}

/** The newest complete snapshot, or the one that is named. */
export async function findSnapshot(place: BackupPlace, name: string | undefined): Promise<Snapshot | undefined> {
  const wanted = name === undefined ? (await place.snapshots()).at(-1) : path.basename(name)
  const end = wanted === undefined ? undefined : await place.read(snapshotEnd(wanted))
  if (wanted === undefined || end === undefined) return undefined
  return { name: wanted, facts: backupSchema.parse(JSON.parse(await text(end))) }
}
