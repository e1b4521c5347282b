import type { Sql } from '../database/sql.ts'

export interface UploadRow {
  id: string
  site_id: string
  user_id: string | null
  message: string
  if_version: number | null
  spa_fallback: boolean | null
  expires_at: Date
}

export interface UploadFile {
  path: string
  hash: string
  size: number
  stored: boolean
}

/** Booleans travel as text: the driver would take a list of them for one. */
export async function insertUpload(sql: Sql, upload: UploadRow, files: readonly UploadFile[]): Promise<void> {
  await sql`insert into uploads ${sql({ ...upload })}`
  await sql`
    insert into upload_files (upload_id, path, hash, size, stored)
    select ${upload.id}, f.path, f.hash, f.size, f.stored::boolean
    from unnest(${files.map((file) => file.path)}::text[], ${files.map((file) => file.hash)}::text[],
                ${files.map((file) => file.size)}::bigint[], ${files.map((file) => String(file.stored))}::text[]) as f (path, hash, size, stored)`
}

export async function findOpenUpload(
  sql: Sql,
  siteId: string,
  uploadId: string,
  now: Date,
): Promise<UploadRow | undefined> {
  const [upload] = await sql<UploadRow[]>`
    select id, site_id, user_id, message, if_version, spa_fallback, expires_at from uploads
    where id = ${uploadId} and site_id = ${siteId} and finished_at is null and expires_at > ${now}`
  return upload
}

export async function findUploadFile(sql: Sql, uploadId: string, hash: string): Promise<UploadFile | undefined> {
  const [file] = await sql<
    UploadFile[]
  >`select path, hash, size, stored from upload_files where upload_id = ${uploadId} and hash = ${hash} limit 1`
  return file
}

export async function listUploadFiles(sql: Sql, uploadId: string): Promise<UploadFile[]> {
  return sql<
    UploadFile[]
  >`select path, hash, size, stored from upload_files where upload_id = ${uploadId} order by path`
}

export async function markStored(sql: Sql, uploadId: string, hash: string): Promise<void> {
  await sql`update upload_files set stored = true where upload_id = ${uploadId} and hash = ${hash}`
}

export async function markFinished(sql: Sql, uploadId: string, now: Date): Promise<void> {
  await sql`update uploads set finished_at = ${now} where id = ${uploadId}`
}

export async function deleteExpired(sql: Sql, now: Date): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`delete from uploads where expires_at <= ${now} returning id`
  return rows.map((row) => row.id)
}
