/** REST: GET /api/v1/status, for monitors. */
import { z } from 'zod'
import type { ApiRouteFactory } from '../../ground/http/api.ts'
import { described } from '../../ground/http/operations/described.ts'
import type { Route } from '../../ground/http/route.ts'
import type { ServiceStatus } from './status.ts'

const state = z.enum(['ok', 'degraded', 'away'])

const statusSchema = z.object({
  state: described(state, 'The worst of its parts.', 'ok'),
  checked_at: described(
    z.iso.datetime(),
    'When it was looked at; a few seconds ago at most.',
    '2026-11-15T09:00:00.000Z',
  ),
  parts: described(z.array(z.object({ name: z.string(), state, detail: z.string() })), 'What was looked at.', [
    { name: 'Published drops', state: 'ok', detail: 'All 3 edges answer.' },
  ]),
})

export function statusRoutes({
  apiRoute,
  serviceStatus,
}: {
  apiRoute: ApiRouteFactory
  serviceStatus: ServiceStatus
}): Route[] {
  return [
    {
      ...apiRoute({
        method: 'GET',
        path: '/api/v1/status',
        access: 'public',
        needs: 'nothing',
        tag: 'Status',
        summary: 'Whether the service is well',
        status: 200,
        output: statusSchema,
        async run() {
          const { state: worst, checkedAt, parts } = await serviceStatus.current()
          return { state: worst, checked_at: checkedAt.toISOString(), parts: [...parts] }
        },
      }),
      worksWithoutDatabase: true,
    },
  ]
}
