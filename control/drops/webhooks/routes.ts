/** REST: /api/v1/webhooks… */
import { z } from 'zod'
import type { ApiRouteFactory } from '../../ground/http/api.ts'
import type { Route } from '../../ground/http/route.ts'
import * as schemas from './schemas.ts'
import type { Webhooks } from './webhooks.ts'

const root = '/api/v1/webhooks'
const tag = 'Webhooks'

export function webhookRoutes({ apiRoute, webhooks }: { apiRoute: ApiRouteFactory; webhooks: Webhooks }): Route[] {
  return [
    apiRoute({
      method: 'POST',
      path: root,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Have an address told what happens to the drops',
      status: 201,
      body: schemas.newWebhookSchema,
      output: schemas.shownWebhookSchema,
      run: ({ actor, body }) => webhooks.create(actor, body),
    }),
    apiRoute({
      method: 'GET',
      path: root,
      access: 'verified',
      needs: 'read',
      tag,
      summary: 'List the webhooks of the organisation',
      status: 200,
      output: z.array(schemas.webhookSchema),
      run: ({ actor }) => webhooks.list(actor),
    }),
    apiRoute({
      method: 'DELETE',
      path: `${root}/:id`,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Delete a webhook; what waits for it is not sent',
      status: 204,
      output: undefined,
      run: ({ actor, params }) => webhooks.delete(actor, params.id),
    }),
    apiRoute({
      method: 'POST',
      path: `${root}/:id/rotate`,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Replace the secret; the one before signs too for a day',
      status: 200,
      output: schemas.shownWebhookSchema,
      run: ({ actor, params }) => webhooks.rotate(actor, params.id),
    }),
    apiRoute({
      method: 'POST',
      path: `${root}/:id/test`,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Send a test message',
      status: 202,
      output: schemas.deliverySchema,
      run: ({ actor, params }) => webhooks.test(actor, params.id),
    }),
    apiRoute({
      method: 'GET',
      path: `${root}/:id/deliveries`,
      access: 'verified',
      needs: 'read',
      tag,
      summary: 'List the newest messages, with request and answer',
      status: 200,
      output: z.array(schemas.deliverySchema),
      run: ({ actor, params }) => webhooks.deliveries(actor, params.id),
    }),
    apiRoute({
      method: 'POST',
      path: `${root}/:id/deliveries/:delivery_id/redeliver`,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Send a message again, under the same id',
      status: 202,
      output: schemas.deliverySchema,
      run: ({ actor, params }) => webhooks.redeliver(actor, params.id, params.delivery_id),
    }),
  ]
}
