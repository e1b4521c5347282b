/** REST: /api/v1/sites/:id/viewers and guest-links, what others share with the caller, and the desk that edges ask. */
import { z } from 'zod'
import { VISIT_DESK_PATH, visitQuestionSchema } from '../../../shared/contracts/visit-desk.ts'
import type { Clock } from '../../../shared/running/clock.ts'
import { parse, WithHeaders, type ApiRouteFactory } from '../../ground/http/api.ts'
import { described } from '../../ground/http/operations/described.ts'
import { json } from '../../ground/http/reply.ts'
import type { Route } from '../../ground/http/route.ts'
import { propagationHeaders, reply } from '../sites/propagation.ts'
import {
  addGuestLinkSchema,
  addViewersSchema,
  guestLinkSchema,
  guestLinksSchema,
  viewerSchema,
  viewersSchema,
} from '../viewers/schemas.ts'
import type { SharedWithMe } from './shared-with-me.ts'
import { wantedLink, wantedViewers, type ViewerSharing } from './sharing.ts'
import type { VisitDesk } from './visit-desk.ts'

const site = '/api/v1/sites/:id'
const tag = 'Viewers'

const sharedDropSchema = z
  .object({
    id: described(z.string(), 'Id of the drop.', 'st_4f9kq2m7x1'),
    url: described(z.string(), 'Its address.', 'https://my-page.dropway.example'),
    title: described(z.string(), 'Its name, else the title of its page.', 'The plan'),
    shared_by: described(z.string(), 'Whose it is.', 'Example Ltd'),
    role: described(z.string(), 'What you may do.', 'view'),
    shared_at: described(z.iso.datetime(), 'Since when you may see it.', '2026-11-15T09:00:00.000Z'),
    last_opened_at: described(z.iso.datetime().nullable(), 'When you last looked.', null),
  })
  .meta({ id: 'SharedDrop' })

interface VisitingRoutesDependencies {
  apiRoute: ApiRouteFactory
  viewerSharing: ViewerSharing
  sharedWithMe: SharedWithMe
  visitDesk: VisitDesk
  clock: Clock
}

export function visitingRoutes(deps: VisitingRoutesDependencies): Route[] {
  return [...viewerRoutes(deps), ...linkRoutes(deps), ...otherRoutes(deps)]
}

/** Routes of the people who may see a drop. */
function viewerRoutes({ apiRoute, viewerSharing }: VisitingRoutesDependencies): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: `${site}/viewers`,
      access: 'verified',
      needs: 'read',
      tag,
      summary: 'Who may see a site, and who has looked',
      status: 200,
      output: viewersSchema,
      run: async ({ actor, params }) => ({ viewers: await viewerSharing.viewers(actor, params.id) }),
    }),
    apiRoute({
      method: 'POST',
      path: `${site}/viewers`,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Let people see a site, by mail address or domain',
      status: 201,
      body: addViewersSchema,
      output: viewersSchema,
      async run({ actor, params, body }) {
        const { value, pending } = await viewerSharing.add(actor, params.id, wantedViewers(body))
        return new WithHeaders({ viewers: value }, propagationHeaders(pending))
      },
    }),
    apiRoute({
      method: 'DELETE',
      path: `${site}/viewers/:viewer_id`,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Take a viewer off the list; what they opened is closed when this answers',
      status: 204,
      output: undefined,
      run: async ({ actor, params }) => reply(await viewerSharing.remove(actor, params.id, params.viewer_id)),
    }),
    apiRoute({
      method: 'POST',
      path: `${site}/viewers/:viewer_id/remind`,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Remind a viewer who has not opened the site yet, once',
      status: 200,
      output: viewerSchema,
      run: ({ actor, params }) => viewerSharing.remind(actor, params.id, params.viewer_id),
    }),
  ]
}

/** Routes of links that open a drop for who has them. */
function linkRoutes({ apiRoute, viewerSharing, clock }: VisitingRoutesDependencies): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: `${site}/guest-links`,
      access: 'verified',
      needs: 'read',
      tag,
      summary: 'The guest links of a site',
      status: 200,
      output: guestLinksSchema,
      run: async ({ actor, params }) => ({ guest_links: await viewerSharing.guestLinks(actor, params.id) }),
    }),
    apiRoute({
      method: 'POST',
      path: `${site}/guest-links`,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Make a guest link; only this answer shows it',
      status: 201,
      body: addGuestLinkSchema,
      output: guestLinkSchema,
      run: ({ actor, params, body }) => viewerSharing.addLink(actor, params.id, wantedLink(body, clock.now())),
    }),
    apiRoute({
      method: 'DELETE',
      path: `${site}/guest-links/:link_id`,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'End a guest link, and what was opened by it; with comments=remove also what was said by it',
      status: 204,
      query: z.strictObject({
        comments: described(z.enum(['keep', 'remove']).default('keep'), 'What becomes of its comments.', 'keep'),
      }),
      output: undefined,
      run: async ({ actor, params, query }) =>
        reply(await viewerSharing.removeLink(actor, params.id, params.link_id, query.comments)),
    }),
  ]
}

function otherRoutes({ apiRoute, sharedWithMe, visitDesk }: VisitingRoutesDependencies): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: '/api/v1/shared',
      access: 'verified',
      needs: 'read-people',
      tag,
      summary: 'Drops that others share with you',
      status: 200,
      output: z.array(sharedDropSchema),
      run: ({ actor }) => sharedWithMe.list(actor),
    }),
    // Between the planes: no part of the documented API. It tells no more than the pages that edges make of it.
    {
      method: 'POST',
      path: VISIT_DESK_PATH,
      async handle(request) {
        const question = parse(visitQuestionSchema, await request.json())
        return json(200, await visitDesk.answer(question, request.ip), { 'cache-control': 'no-store' })
      },
    },
  ]
}
