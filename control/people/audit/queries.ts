import { jsonb, type Sql } from '../../ground/database/sql.ts'

export interface AuditRow {
  readonly id: number
  readonly at: Date
  readonly actor: string
  readonly action: string
  readonly subject: string
  readonly detail: Record<string, unknown>
  readonly ip: string | null
}

export async function insertAuditEntry(
  sql: Sql,
  entry: {
    at: Date
    orgId: string | null
    userId: string | null
    actor: string
    action: string
    subject: string
    detail: object
    ip: string | null
  },
): Promise<void> {
  await sql`
    insert into audit_log (at, org_id, user_id, actor, action, subject, detail, ip)
    values (${entry.at}, ${entry.orgId}, ${entry.userId}, ${entry.actor}, ${entry.action}, ${entry.subject}, ${jsonb(sql, entry.detail)}, ${entry.ip})`
}

/** Newest first; `before` is the id of the last entry already seen, `subjects` null for whatever was done to anything. */
export async function listAuditRows(
  sql: Sql,
  orgId: string,
  page: { before: number | undefined; limit: number; subjects: readonly string[] | null },
): Promise<AuditRow[]> {
  return sql<AuditRow[]>`
    select id, at, actor, action, subject, detail, ip from audit_log
    where org_id = ${orgId} and id < ${page.before ?? Number.MAX_SAFE_INTEGER}
      and (${page.subjects as string[] | null}::text[] is null or subject = any(${page.subjects as string[] | null}::text[]))
    order by id desc limit ${page.limit}`
}

export async function emailsOf(sql: Sql, userId: string): Promise<string[]> {
  const rows = await sql<{ address: string }[]>`
    select distinct lower(address) as address from audit_log
    cross join lateral (values (actor), (detail ->> 'from')) as named (address)
    where user_id = ${userId} and address like '%@%'`
  return rows.map(({ address }) => address)
}

/** The entries stay, because organisations rely on them; who it was and from where does not. */
export async function eraseAuditRows(
  sql: Sql,
  { userId, addresses, instead }: { userId: string; addresses: readonly string[]; instead: string },
): Promise<void> {
  await sql`update audit_log set actor = ${instead}, ip = null, detail = detail - 'from' where user_id = ${userId}`
  await sql`
    update audit_log set subject = ${instead} where subject like '%@%' and lower(subject) = any(${addresses as string[]})`
}

/** Looks at the first of all only: ids are given out in the order of time, so no index on the time is needed. */
export async function deleteAuditBefore(sql: Sql, before: Date, limit: number): Promise<number> {
  const { count } = await sql`
    delete from audit_log a using (select id, at from audit_log order by id limit ${limit}) oldest
    where a.id = oldest.id and oldest.at < ${before}`
  return count
}
