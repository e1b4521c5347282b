import { transaction, type Pool, type Sql } from '../../../ground/database/sql.ts'

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

/** The organisation keeps at most `maxOpen`; the oldest go. */
export async function insertContentUpload(
  sql: Pool,
  upload: Omit<ContentUploadRow, 'hash' | 'size'>,
  maxOpen: number,
): Promise<void> {
  await transaction(sql, async (tx) => {
    await tx`insert into content_uploads ${tx(upload)}`
    await tx`delete from content_uploads where id in (
      select id from content_uploads where org_id = ${upload.org_id} order by created_at desc, id desc offset ${maxOpen})`
  })
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
