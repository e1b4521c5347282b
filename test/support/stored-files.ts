/** What lies in the directories of a stack, and what its published versions need of it. */
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { openDatabase } from '../../control/ground/database/sql.ts'

/** Files below a folder of DATA_DIR, as paths from there; none when there is no such folder. */
export async function filesIn(dataDir: string, folder: string): Promise<string[]> {
  const root = path.join(dataDir, folder)
  const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => [])
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
    .toSorted()
}

export interface BlobsOfVersions {
  /** What the manifests of retained versions name, and these manifests: without one of these a version is not whole. */
  readonly named: string[]
  /** What belongs to retained versions: besides those, their quickly compressed forms from before the better ones. */
  readonly owned: string[]
}

/** As files of the blob store. */
export async function blobsOfVersions(dataDir: string, databaseUrl: string): Promise<BlobsOfVersions> {
  const sql = openDatabase({ url: databaseUrl, maxConnections: 1 })
  const versions = await sql<{ manifest_hash: string }[]>`select manifest_hash from versions where dropped_at is null`
  const owned = await sql<{ hash: string }[]>`
    select distinct b.hash from site_blobs b join versions v
      on v.site_id = b.site_id and v.number >= b.from_version and (b.to_version is null or v.number <= b.to_version)
    where v.dropped_at is null`
  await sql.end()
  const named = new Set<string>()
  for (const { manifest_hash } of versions) {
    named.add(manifest_hash)
    const manifest = await readFile(path.join(dataDir, 'blobs', fileOf(manifest_hash)), 'utf8')
    for (const [hash] of manifest.matchAll(/\b[0-9a-f]{64}\b/g)) named.add(hash)
  }
  return { named: [...named].map(fileOf).toSorted(), owned: owned.map(({ hash }) => fileOf(hash)).toSorted() }
}

/** Versions that are still to be compressed harder, which adds blobs. */
export async function unrefinedVersions(databaseUrl: string): Promise<number> {
  const sql = openDatabase({ url: databaseUrl, maxConnections: 1 })
  const rows = await sql`select 1 from versions where refined_at is null and dropped_at is null`
  await sql.end()
  return rows.length
}

const fileOf = (hash: string): string => path.join(hash.slice(0, 2), hash)
