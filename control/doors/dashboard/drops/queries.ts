import type { Sql } from '../../../ground/database/sql.ts'

/** Views per day of many sites at once, for their sparklines. */
export async function dailyViewsOf(
  sql: Sql,
  siteIds: readonly string[],
  since: string,
): Promise<{ site_id: string; day: string; count: number }[]> {
  return sql`
    select site_id, to_char(day, 'YYYY-MM-DD') as day, count from views
    where site_id in ${sql(siteIds as string[])} and day >= ${since}`
}

/** Why trust and safety removed a drop, for its owner. */
export async function findTakedownReason(sql: Sql, siteId: string): Promise<string | undefined> {
  const [row] = await sql<{ reason: string | null }[]>`
    select taken_down_reason as reason from sites where id = ${siteId} and taken_down_at is not null`
  return row?.reason ?? undefined
}
