import type { Sql } from '../database/sql.ts'

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
    insert into audit_log (org_id, user_id, actor, action, subject, detail, ip)
    values (${entry.orgId}, ${entry.userId}, ${entry.actor}, ${entry.action}, ${entry.subject}, ${sql.json(entry.detail as never)}, ${entry.ip})`
}

/** Newest first; `before` is the id of the last entry already seen. */
export async function listAuditRows(
  sql: Sql,
  orgId: string,
  page: { before: number | undefined; limit: number },
): Promise<AuditRow[]> {
  return sql<AuditRow[]>`
    select id, at, actor, action, subject, detail, ip from audit_log
    where org_id = ${orgId} and id < ${page.before ?? Number.MAX_SAFE_INTEGER}
    order by id desc limit ${page.limit}`
}
