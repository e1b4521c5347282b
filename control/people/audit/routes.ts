import { requirePermission } from '../../ground/actor.ts'
import { z } from 'zod'
import type { Pool } from '../../ground/database/sql.ts'
import type { ApiRouteFactory } from '../../ground/http/api.ts'
import type { Route } from '../../ground/http/route.ts'
import { readAuditLog } from './audit.ts'

const entrySchema = z.strictObject({
  id: z.number().int(),
  at: z.iso.datetime(),
  actor: z.string(),
  action: z.string(),
  subject: z.string(),
  detail: z.record(z.string(), z.unknown()),
  ip: z.string().nullable(),
})

const pageQuery = z.strictObject({
  before: z.coerce.number().int().positive().optional(),
  limit: z.coerce.number().int().min(1).max(200).optional(),
})

export function auditRoutes({ sql, apiRoute }: { sql: Pool; apiRoute: ApiRouteFactory }): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: '/api/v1/audit-log',
      access: 'verified',
      summary: 'What was done in the organisation, newest first',
      tag: 'Organisation',
      query: pageQuery,
      status: 200,
      output: z.strictObject({ entries: z.array(entrySchema), next: z.number().int().nullable() }),
      async run({ actor, query }) {
        requirePermission(actor.role, 'read_audit_log')
        const page = await readAuditLog(sql, actor.orgId, query)
        return {
          entries: page.entries.map((entry) => ({ ...entry, at: entry.at.toISOString() })),
          next: page.next ?? null,
        }
      },
    }),
  ]
}
