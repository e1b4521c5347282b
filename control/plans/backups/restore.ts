/**
 * Brings a backup back into an installation that runs and is empty: tables, content and files in one transaction, then
 * the caller publishes the routing table as a new history. Whatever fails before the commit leaves the database empty, and
 * the restore can be repeated.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { createGunzip } from 'node:zlib'
import { z } from 'zod'
import { PAGES_FOLDER } from '../../ground/config.ts'
import { transaction, type Sql } from '../../ground/database/sql.ts'
import { appliedMigrations } from '../../ground/database/migrate.ts'
import {
  CA_CONTEXT,
  copyBlobs,
  findSnapshot,
  keyFingerprint,
  type BackupContext,
  type BackupFacts,
  type Snapshot,
} from './backup.ts'
import { inSnapshot, type BackupPlace } from './place.ts'
import { countRows, insertRows, isCopied, isEmptyInstallation, keptBlobs, PAGE_ROWS, setSequence } from './queries.ts'

/** A backup that cannot be restored here, and why. */
export class RestoreRefused extends Error {}

export async function restoreBackup(
  context: BackupContext,
  place: BackupPlace,
  name: string | undefined,
): Promise<Snapshot> {
  const found = await findSnapshot(place, name)
  if (!found) throw new RestoreRefused(`There is no complete backup in ${place.description}.`)
  const { facts } = found
  await refuseUnlessFit(context, facts)
  await transaction(context.sql, async (sql) => {
    await sql`set local statement_timeout = 0`
    await sql`set local idle_in_transaction_session_timeout = 0`
    for (const { name: table, rows } of facts.tables.filter(isCopied))
      await fillTable(sql, place, found.name, table, rows)
    for (const sequence of facts.sequences) await setSequence(sql, sequence)
    // What is committed can be served: the content is there first. What was in the store before counts as just written.
    const isThere = async (hash: string): Promise<boolean> => (await context.blobs.keep(hash)) !== undefined
    await copyBlobs(keptBlobs(sql), { from: place.blobs, to: context.blobs, isThere })
    await restoreCa(context, place, found.name)
    await restorePages(context, place, found.name)
  })
  return found
}

async function refuseUnlessFit({ sql, secrets, sitesDomain }: BackupContext, facts: BackupFacts): Promise<void> {
  if (facts.keyFingerprint !== keyFingerprint(secrets))
    throw new RestoreRefused(
      'The backup was made with another SECRET_KEY. Start with that one: nothing sealed in it can be opened otherwise.',
    )
  if (facts.sitesDomain !== sitesDomain)
    throw new RestoreRefused(`The backup is of SITES_DOMAIN ${facts.sitesDomain}; here it is ${sitesDomain}.`)
  const here = await appliedMigrations(sql)
  const differing = [...new Set([...here, ...facts.migrations])].filter(
    (migration) => !here.includes(migration) || !facts.migrations.includes(migration),
  )
  if (differing.length > 0)
    throw new RestoreRefused(
      `The backup is of another release (${differing.join(', ')}). Restore with the release that made it, then upgrade.`,
    )
  if (!(await isEmptyInstallation(sql)))
    throw new RestoreRefused('This installation is not empty. Restore into a new DATA_DIR, or a new database.')
}

async function fillTable(sql: Sql, place: BackupPlace, snapshot: string, table: string, rows: number): Promise<void> {
  // A new installation may hold a row or two of its own (counters); the backup's count.
  await sql`delete from ${sql(table)}`
  let lines: string[] = []
  for await (const line of linesIn(place, inSnapshot(snapshot, `tables/${table}.gz`))) {
    if (lines.push(line) < PAGE_ROWS) continue
    await insertRows(sql, table, lines)
    lines = []
  }
  if (lines.length > 0) await insertRows(sql, table, lines)
  const filled = await countRows(sql, table)
  if (filled !== rows) throw new Error(`${table} has ${filled} rows where the backup says ${rows}`)
}

/** Lines of a compressed file; one that is missing or damaged is an error. */
export async function* linesIn(place: BackupPlace, name: string): AsyncGenerator<string> {
  const file = await place.read(name)
  if (!file) throw new Error(`the backup has no ${name}`)
  let rest = ''
  for await (const chunk of file.compose(createGunzip()).setEncoding('utf8')) {
    const lines = (rest + (chunk as string)).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}

/** Edges that started before keep their own authority until they are started again. */
async function restoreCa({ dataDir, secrets }: BackupContext, place: BackupPlace, snapshot: string): Promise<void> {
  const file = await place.read(inSnapshot(snapshot, 'ca.sealed'))
  if (file === undefined) return
  await writeFiles(path.join(dataDir, 'ca'), secrets.open(await text(file), CA_CONTEXT).toString())
}

async function restorePages({ dataDir }: BackupContext, place: BackupPlace, snapshot: string): Promise<void> {
  const file = await place.read(inSnapshot(snapshot, 'pages.json'))
  if (file !== undefined) await writeFiles(path.join(dataDir, PAGES_FOLDER), await text(file))
}

/** `contents` is JSON: a text for the name of each file. */
async function writeFiles(folder: string, contents: string): Promise<void> {
  const files = z.record(z.string(), z.string()).parse(JSON.parse(contents))
  await mkdir(folder, { recursive: true })
  for (const [name, content] of Object.entries(files))
    await writeFile(path.join(folder, path.basename(name)), content, { mode: 0o600 })
}
