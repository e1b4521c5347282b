/** REST: /api/v1/sites/:id/previews… */
import { z } from 'zod'
import type { ApiRouteFactory } from '../../../ground/http/api.ts'
import type { Route } from '../../../ground/http/route.ts'
import { reply } from '../propagation.ts'
import * as schemas from '../schemas.ts'
import type { Previews } from './previews.ts'

const root = '/api/v1/sites/:id/previews'
const tag = 'Versions'

export function namedPreviewRoutes({ apiRoute, previews }: { apiRoute: ApiRouteFactory; previews: Previews }): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: root,
      access: 'verified',
      needs: 'read',
      tag,
      summary: 'List the named previews, newest first',
      status: 200,
      output: z.array(schemas.previewSchema),
      run: ({ actor, params }) => previews.list(actor, params.id),
    }),
    apiRoute({
      method: 'POST',
      path: `${root}/:name/promote`,
      access: 'verified',
      needs: 'publish',
      tag,
      summary: 'Make what a named preview shows live',
      status: 200,
      output: schemas.versionSchema,
      run: async ({ actor, params }) => reply(await previews.promote(actor, params.id, params.name)),
    }),
    apiRoute({
      method: 'DELETE',
      path: `${root}/:name`,
      access: 'verified',
      needs: 'publish',
      isOfPreview: true,
      tag,
      summary: 'Remove a named preview',
      status: 204,
      output: undefined,
      run: async ({ actor, params }) => reply(await previews.remove(actor, params.id, params.name)),
    }),
  ]
}
