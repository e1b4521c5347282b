/**
 * A backup is a directory:
 *
 *   blobs/ab/<hash>                     content, shared by all snapshots in the directory: a second one adds what is new
 *   snapshots/<time>/tables/<t>.gz      each table, a row per line of JSON, all of one moment
 *   snapshots/<time>/ca.sealed          the local certificate authority, where one is used
 *   snapshots/<time>/backup.json        what is in it; written last, so a snapshot without it is not one
 *
 * Certificates and the ACME account are rows of Postgres, sealed there. SECRET_KEY, which opens them, is not in the
 * backup: keep it elsewhere. Its fingerprint is, so that a restore with another key is refused.
 */
import { createWriteStream } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { z } from 'zod'
import type { BlobStore } from '../../../shared/blobs/blob-store.ts'
import { createDirectoryBlobStore } from '../../../shared/blobs/directory-store.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import type { Pool, Sql } from '../../ground/database/sql.ts'
import { countRows, keptBlobs, rowsOf, sequences, tablesInOrder } from './backup-queries.ts'
import { appliedMigrations } from './queries.ts'

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

export function blobsOf(directory: string): BlobStore {
  return createDirectoryBlobStore(path.join(directory, 'blobs'))
}

export function snapshotsOf(directory: string): string {
  return path.join(directory, 'snapshots')
}

/** Says whether two installations share SECRET_KEY without telling anything about it. */
export function keyFingerprint(secrets: Secrets): string {
  return secrets.sign('seal', 'backup').slice(0, 16)
}

export async function takeBackup(context: BackupContext, directory: string): Promise<BackupFacts & { path: string }> {
  const takenAt = new Date(context.now).toISOString()
  const folder = path.join(snapshotsOf(directory), takenAt.replaceAll(':', '-'))
  await mkdir(path.join(folder, 'tables'), { recursive: true, mode: 0o700 })
  // One moment for all tables. Content is named by hash and kept for a day after its version is dropped, so it may
  // be copied while publishing goes on.
  const facts = (await context.sql.begin('isolation level repeatable read read only', async (sql) => {
    await sql`set local statement_timeout = 0`
    await sql`set local idle_in_transaction_session_timeout = 0`
    const tables = []
    for (const name of await tablesInOrder(sql)) tables.push(await dumpTable(sql, name, folder))
    return {
      format: 1 as const,
      takenAt,
      keyFingerprint: keyFingerprint(context.secrets),
      sitesDomain: context.sitesDomain,
      migrations: await appliedMigrations(sql),
      tables,
      sequences: await sequences(sql),
      blobs: await copyBlobs(keptBlobs(sql), context.blobs, blobsOf(directory)),
    }
  })) as BackupFacts
  await sealCa(context, folder)
  await writeDurably(path.join(folder, 'backup.json'), `${JSON.stringify(facts, undefined, 2)}\n`)
  return { ...facts, path: folder }
}

async function dumpTable(sql: Sql, name: string, folder: string): Promise<{ name: string; rows: number }> {
  await pipeline(
    rowsOf(sql, name),
    createGzip(),
    createWriteStream(path.join(folder, 'tables', `${name}.gz`), { mode: 0o600, flush: true }),
  )
  return { name, rows: await countRows(sql, name) }
}

/** Every blob is hashed on its way: a copy that differs is never kept. Returns how many there are. */
export async function copyBlobs(hashes: AsyncIterable<string>, from: BlobStore, to: BlobStore): Promise<number> {
  let count = 0
  for await (const hash of hashes) {
    count++
    if (await to.has(hash)) continue
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
  return count
}

async function sealCa({ dataDir, secrets }: BackupContext, folder: string): Promise<void> {
  const files = await Promise.all(
    CA_FILES.map((name) => readFile(path.join(dataDir, 'ca', name), 'utf8').catch(() => undefined)),
  )
  if (files.some((text) => text === undefined)) return
  const contents = Object.fromEntries(CA_FILES.map((name, index) => [name, files[index]]))
  await writeFile(path.join(folder, 'ca.sealed'), secrets.seal(JSON.stringify(contents), CA_CONTEXT), { mode: 0o600 })
}

async function writeDurably(file: string, text: string): Promise<void> {
  const handle = await open(`${file}.draft`, 'w', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(`${file}.draft`, file)
}

/** The newest complete snapshot, or the one that is named. */
export async function findSnapshot(
  directory: string,
  name: string | undefined,
): Promise<{ folder: string; facts: BackupFacts } | undefined> {
  const names = name === undefined ? await readdir(snapshotsOf(directory)).catch(() => []) : [name]
  for (const candidate of names.toSorted().toReversed()) {
    const folder = path.join(snapshotsOf(directory), path.basename(candidate))
    const text = await readFile(path.join(folder, 'backup.json'), 'utf8').catch(() => undefined)
    if (text !== undefined) return { folder, facts: backupSchema.parse(JSON.parse(text)) }
  }
  return undefined
}
