import type { Sql } from '../../../../ground/database/sql.ts'

export interface ContentUploadRow {
  id: string
  org_id: string
  name: string
  max_bytes: number
  hash: string | null
  size: number | null
  created_at: Date
  expires_at: Date
}

export async function insertContentUpload(sql: Sql, upload: Omit<ContentUploadRow, 'hash' | 'size'>): Promise<void> {
  await sql`insert into content_uploads ${sql(upload)}`
}

/** Null: the publish that would have used them was refused. */
export async function markUsed(sql: Sql, ids: readonly string[], at: Date | null): Promise<void> {
  if (ids.length > 0) await sql`update content_uploads set used_at = ${at} where id = any(${ids as string[]})`
}

export async function findContentUpload(sql: Sql, id: string, now: Date): Promise<ContentUploadRow | undefined> {
  const [row] = await sql<ContentUploadRow[]>`
    select * from content_uploads where id = ${id} and expires_at > ${now}`
  return row
}

/** False when another request was faster. */
export async function fillContentUpload(
  sql: Sql,
  id: string,
  content: { hash: string; size: number },
): Promise<boolean> {
  const result = await sql`update content_uploads set ${sql(content)} where id = ${id} and hash is null`
  return result.count === 1
}

export async function deleteExpiredContentUploads(sql: Sql, now: Date): Promise<void> {
  await sql`delete from content_uploads where expires_at <= ${now}`
}
