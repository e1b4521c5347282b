import { requirePermission } from '../../ground/actor.ts'
import { z } from 'zod'
import type { Pool } from '../../ground/database/sql.ts'
import type { ApiRouteFactory } from '../../ground/http/api.ts'
import { described } from '../../ground/http/operations/described.ts'
import type { Route } from '../../ground/http/route.ts'
import { readAuditLog } from './audit.ts'

const entrySchema = z.strictObject({
  id: described(z.number().int(), 'Larger is newer.', 4711),
  at: described(z.iso.datetime(), 'When it was done.', '2026-11-15T09:00:00.000Z'),
  actor: described(z.string(), 'Who did it.', 'you@example.com'),
  action: described(z.string(), 'What was done.', 'site.create'),
  subject: described(z.string(), 'To what.', 'st_4f9kq2m7x1'),
  detail: described(z.record(z.string(), z.unknown()), 'Further facts.', { slug: 'my-page' }),
  ip: described(z.string().nullable(), 'From where; null for what the service did.', '203.0.113.7'),
})

const pageQuery = z.strictObject({
  before: described(
    z.coerce.number<number>().int().positive(),
    'Entries before this id: `next` of the answer before.',
  ).optional(),
  limit: described(z.coerce.number<number>().int().min(1).max(200), 'How many at most.', 20).optional(),
})

export function auditRoutes({ sql, apiRoute }: { sql: Pool; apiRoute: ApiRouteFactory }): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: '/api/v1/audit-log',
      access: 'verified',
      needs: 'read',
      summary: 'What was done in the organisation, newest first',
      tag: 'Organisation',
      query: pageQuery,
      status: 200,
      output: z.strictObject({
        entries: z.array(entrySchema),
        next: described(
          z.number().int().nullable(),
          'What to send as `before` for older entries; null at the end.',
          null,
        ),
      }),
      async run({ actor, query }) {
        requirePermission(actor.role, 'read_audit_log')
        const page = await readAuditLog(sql, actor.orgId, { ...query, subjects: actor.reach.sites })
        return {
          entries: page.entries.map((entry) => ({ ...entry, at: entry.at.toISOString() })),
          next: page.next ?? null,
        }
      },
    }),
  ]
}
