import type { Sql } from '../../../ground/database/sql.ts'
import type { TemplateValues } from '../templates/designs/template.ts'

export interface TemplateFill {
  readonly template: string
  readonly fields: TemplateValues
}

export async function findTemplateFill(sql: Sql, siteId: string): Promise<TemplateFill | undefined> {
  const [row] = await sql<TemplateFill[]>`select template, fields from template_fills where site_id = ${siteId}`
  return row
}

export async function saveTemplateFill(sql: Sql, siteId: string, fill: TemplateFill, now: Date): Promise<void> {
  await sql`
    insert into template_fills (site_id, template, fields, updated_at)
    values (${siteId}, ${fill.template}, ${sql.json(fill.fields)}, ${now})
    on conflict (site_id) do update set template = excluded.template, fields = excluded.fields, updated_at = excluded.updated_at`
}

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
