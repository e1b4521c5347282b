import type { Actor } from '../../../ground/actor.ts'
import { jsonb, type Sql } from '../../../ground/database/sql.ts'
import type { AccessInput } from '../../viewers/access.ts'
import type { Purge } from '../schemas.ts'

export interface UploadRow {
  id: string
  site_id: string
  user_id: string | null
  message: string
  if_version: number | null
  spa_fallback: boolean | null
  allow_secrets: boolean
  purge: Purge | null
  preview: string | null
  /** Threads that the version mends. */
  resolves: string[] | null
  /** What the publish says about who may see the drop. */
  access: AccessInput | null
  expires_at: Date
}

export interface UploadFile {
  path: string
  hash: string
  size: number
}

export interface UploadBlob {
  hash: string
  size: number
  stored: boolean
}

/** The list of files is one value: an upload asks for all of it, once, at the end. */
type PackedFile = [path: string, hash: string, size: number]

export async function insertUpload(
  sql: Sql,
  upload: UploadRow,
  files: readonly UploadFile[],
  pieces: readonly UploadBlob[],
): Promise<void> {
  const packed = files.map((file): PackedFile => [file.path, file.hash, file.size])
  await sql`insert into uploads ${sql({ ...upload, access: upload.access && jsonb(sql, upload.access), files: sql.json(packed) })}`
  if (pieces.length === 0) return
  const arrived = pieces.filter((blob) => blob.stored).map((blob) => blob.hash)
  await sql`
    insert into upload_blobs (upload_id, hash, size, stored)
    select ${upload.id}, b.hash, b.size, b.hash = any(${arrived}::text[])
    from unnest(${pieces.map((blob) => blob.hash)}::text[], ${pieces.map((blob) => blob.size)}::bigint[]) as b (hash, size)`
}

export async function findOpenUpload(
  sql: Sql,
  siteId: string,
  uploadId: string,
  now: Date,
): Promise<UploadRow | undefined> {
  const [upload] = await sql<UploadRow[]>`
    select id, site_id, user_id, message, if_version, spa_fallback, allow_secrets, purge, preview, resolves, access, expires_at from uploads
    where id = ${uploadId} and site_id = ${siteId} and expires_at > ${now}`
  return upload
}

/** A blob that the upload names; one that never had to be sent counts as stored. */
export async function findUploadBlob(sql: Sql, uploadId: string, hash: string): Promise<UploadBlob | undefined> {
  const [blob] = await sql<UploadBlob[]>`
    select hash, size, stored from upload_blobs where upload_id = ${uploadId} and hash = ${hash}
    union all
    select file ->> 1, (file ->> 2)::bigint, true from uploads, json_array_elements(files) file
    where id = ${uploadId} and file ->> 1 = ${hash}
    limit 1`
  return blob
}

/** Undefined when another caller has finished it meanwhile. */
export async function listUploadFiles(sql: Sql, uploadId: string): Promise<UploadFile[] | undefined> {
  const [row] = await sql<{ files: PackedFile[] }[]>`select files from uploads where id = ${uploadId}`
  return row?.files.map(([path, hash, size]) => ({ path, hash, size }))
}

export async function listMissing(sql: Sql, uploadId: string): Promise<Set<string>> {
  const rows = await sql<{ hash: string }[]>`
    select hash from upload_blobs where upload_id = ${uploadId} and not stored`
  return new Set(rows.map((row) => row.hash))
}

/** Those that had to be sent, whether or not they have arrived, by hash. */
export async function listUploadBlobs(sql: Sql, uploadId: string): Promise<Map<string, UploadBlob>> {
  const rows = await sql<UploadBlob[]>`select hash, size, stored from upload_blobs where upload_id = ${uploadId}`
  return new Map(rows.map((row) => [row.hash, row]))
}

export async function markStored(sql: Sql, uploadId: string, hashes: readonly string[]): Promise<void> {
  await sql`
    update upload_blobs set stored = true where upload_id = ${uploadId} and hash = any(${hashes as string[]})`
}

/** False when it is gone already: another caller has finished it. */
export async function deleteUpload(sql: Sql, uploadId: string): Promise<boolean> {
  return (await sql`delete from uploads where id = ${uploadId}`).count === 1
}

/** Those of the hashes that have arrived for an upload that is under way, to a drop that the credential reaches. */
export async function sentBlobs(
  sql: Sql,
  { orgId, reach }: Pick<Actor, 'orgId' | 'reach'>,
  hashes: readonly string[],
  now: Date,
): Promise<Set<string>> {
  if (hashes.length === 0) return new Set()
  const among = (reach.sites as string[] | undefined) ?? null
  const rows = await sql<{ hash: string }[]>`
    select distinct b.hash from upload_blobs b join uploads u on u.id = b.upload_id join sites s on s.id = u.site_id
    where b.hash = any(${hashes as string[]}) and b.stored and s.org_id = ${orgId}
      and (${among}::text[] is null or s.id = any(${among}::text[])) and u.expires_at > ${now}`
  return new Set(rows.map((row) => row.hash))
}

/** Keeps the newest lists of an organisation that have nothing to send. The organisation is locked. */
export async function dropIdleUploads(sql: Sql, orgId: string, keep: number): Promise<void> {
  await sql`
    delete from uploads where id in (
      select u.id from uploads u join sites s on s.id = u.site_id
      where s.org_id = ${orgId} and not exists (select from upload_blobs b where b.upload_id = u.id)
      order by u.id desc offset ${keep})`
}

export async function deleteExpiredUploads(sql: Sql, now: Date): Promise<number> {
  return (await sql`delete from uploads where expires_at <= ${now}`).count
}

/** Which of these are not forgotten. */
export async function knownUploads(sql: Sql, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set()
  const rows = await sql<{ id: string }[]>`select id from uploads where id = any(${ids as string[]})`
  return new Set(rows.map((row) => row.id))
}
