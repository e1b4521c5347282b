import type { Sql } from '../../../ground/database/sql.ts'
import type { TemplateValues } from './designs/template.ts'

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
