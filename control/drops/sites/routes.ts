/** REST: /api/v1/sites… */
import { z } from 'zod'
import { MINUTE_MS, type Clock } from '../../../shared/running/clock.ts'
import { plans } from '../../ground/terms/plans.ts'
import { requireActor, type ApiRouteFactory, type Authenticate } from '../../ground/http/api.ts'
import { described } from '../../ground/http/operations/described.ts'
import { describeOperation } from '../../ground/http/operations/operation.ts'
import { stream } from '../../ground/http/reply.ts'
import type { Request, Route } from '../../ground/http/route.ts'
import type { Actor } from '../../ground/actor.ts'
import type { Publishing } from '../publishing/contract.ts'
import type { SiteExport } from './versions/site-export.ts'
import { receiveBundle, receiveSingle } from './versions/upload-request.ts'
import * as schemas from './schemas.ts'
import { reply } from './propagation.ts'
import type { Sites } from './sites.ts'
import { uploadRoutes } from './uploads/routes.ts'
import type { Uploads } from './uploads/uploads.ts'
import type { Versions } from './versions/versions.ts'
import type { Sql } from '../../ground/database/sql.ts'

/** How long an edge believes what it heard of a token. */
const PASS_BELIEVED_MS = MINUTE_MS

interface SiteRoutesDependencies {
  sql: Sql
  clock: Clock
  apiRoute: ApiRouteFactory
  authenticate: Authenticate
  sites: Sites
  versions: Versions
  uploads: Uploads
  publishing: Pick<Publishing, 'receive'>
  siteExport: SiteExport
  countDomains(orgId: string): Promise<number>
  /** Those that have all words of a question; all for an empty one. */
  findSites(actor: Actor, question: string): Promise<schemas.ApiSite[]>
}

const root = '/api/v1/sites'
const tag = 'Sites'
const versionTag = 'Versions'

const exportSpec = {
  method: 'GET',
  path: `${root}/export`,
  access: 'verified',
  needs: 'read',
  tag,
  summary: 'Download every site as one .zip',
  status: 200,
  produces: 'application/zip',
} as const

export function siteRoutes(deps: SiteRoutesDependencies): Route[] {
  return [
    ...ownRoutes(deps),
    ...publishRoutes(deps),
    ...versionRoutes(deps),
    ...numberRoutes(deps),
    ...uploadRoutes(deps),
  ]
}

/** Routes of the drops themselves. */
function ownRoutes({ apiRoute, authenticate, clock, sites, siteExport, findSites }: SiteRoutesDependencies): Route[] {
  return [
    apiRoute({
      method: 'POST',
      path: root,
      access: 'account',
      needs: 'publish',
      tag,
      summary: 'Reserve a slug for a new site',
      status: 201,
      body: schemas.createSiteSchema,
      output: schemas.siteSchema,
      run: async ({ actor, body }) => reply(await sites.create(actor, body)),
    }),
    apiRoute({
      method: 'GET',
      path: root,
      access: 'account',
      needs: 'read',
      isOfPreview: true,
      tag,
      summary: 'List the sites of the account, or find some by words of their name, title or text',
      status: 200,
      query: z.object({
        q: described(
          z.string(),
          'Words that a site must have, all of them, in its name, title or text; at most 100 sites are found, the best first. Empty: all sites.',
          'report',
        ).optional(),
      }),
      output: z.array(schemas.siteSchema),
      run: ({ actor, query }) => findSites(actor, query.q ?? ''),
    }),
    {
      method: exportSpec.method,
      path: exportSpec.path,
      operation: describeOperation(exportSpec),
      async handle(request) {
        const actor = await requireActor(authenticate, request, exportSpec)
        return stream(200, await siteExport(actor), {
          'content-type': 'application/zip',
          'content-disposition': 'attachment; filename="dropway-export.zip"',
          'cache-control': 'no-store',
        })
      },
    },
    apiRoute({
      method: 'PUT',
      path: `${root}/staying-live`,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Choose the drops that stay live when a plan ends; where some are paused, swap them',
      status: 200,
      body: schemas.chooseSchema,
      output: z.array(schemas.siteSchema),
      run: async ({ actor, body }) => reply(await sites.choose(actor, body.site_ids)),
    }),
    apiRoute({
      method: 'GET',
      path: `${root}/:id`,
      access: 'account',
      needs: 'read',
      isOfPreview: true,
      tag,
      summary: 'Read a site',
      status: 200,
      output: schemas.siteSchema,
      run: ({ actor, params }) => sites.get(actor, params.id),
    }),
    apiRoute({
      method: 'GET',
      path: `${root}/:id/pass`,
      access: 'verified',
      needs: 'read',
      tag,
      summary: 'Whether this credential may see previews that are for members; the edges ask it for bearers of a token',
      status: 200,
      output: schemas.passSchema,
      run: async ({ actor, params }) => {
        await sites.get(actor, params.id)
        return { expires_at: new Date(clock.now() + PASS_BELIEVED_MS).toISOString() }
      },
    }),
    apiRoute({
      method: 'PATCH',
      path: `${root}/:id`,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Change the settings of a site',
      status: 200,
      body: schemas.patchSiteSchema,
      output: schemas.siteSchema,
      run: async ({ actor, params, body }) => reply(await sites.patch(actor, params.id, body)),
    }),
    apiRoute({
      method: 'DELETE',
      path: `${root}/:id`,
      access: 'account',
      needs: 'manage',
      tag,
      summary: 'Delete a site for good',
      status: 204,
      output: undefined,
      run: async ({ actor, params }) => reply(await sites.delete(actor, params.id)),
    }),
  ]
}

/** Routes that take content. */
function publishRoutes({ apiRoute, sql, sites, versions, publishing }: SiteRoutesDependencies): Route[] {
  async function publish(
    { request, actor, params }: { request: Request; actor: Actor; params: { id: string } },
    receive: typeof receiveSingle,
  ) {
    const site = await sites.requireOwn(sql, actor, params.id)
    versions.requirePublishable(site)
    const { prepared, options } = await receive(request, publishing, {
      owner: { kind: 'organisation', id: actor.orgId },
      capBytes: plans[site.plan].uploadBytes,
      maxFiles: plans[site.plan].filesPerVersion,
      base: await versions.liveManifestHash(site),
    })
    return reply(await versions.publish(actor, site.id, prepared, options))
  }

  return [
    apiRoute({
      method: 'POST',
      path: `${root}/:id/upload`,
      access: 'account',
      needs: 'publish',
      isOfPreview: true,
      tag: versionTag,
      summary:
        'Publish one page (.html, .htm, .md, .markdown); with as=document a document that a small page shows (PDF, image, video, sound, text)',
      status: 201,
      form: schemas.pageFormSchema,
      formSamples: { page: { file: 'page.html' }, document: { as: 'document', file: 'menu.pdf' } },
      output: schemas.versionSchema,
      run: (call) => publish(call, receiveSingle),
    }),
    apiRoute({
      method: 'POST',
      path: `${root}/:id/upload-bundle`,
      access: 'account',
      needs: 'publish',
      isOfPreview: true,
      tag: versionTag,
      summary: 'Publish a folder or a .zip',
      status: 201,
      form: schemas.bundleFormSchema,
      formSamples: {
        folder: { files: ['index.html', 'css/site.css'], paths: ['index.html', 'css/site.css'] },
        zip: { file: 'site.zip', message: 'New opening hours' },
      },
      output: schemas.versionSchema,
      run: (call) => publish(call, receiveBundle),
    }),
  ]
}

/** Routes of the versions that are kept. */
function versionRoutes({ apiRoute, versions }: SiteRoutesDependencies): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: `${root}/:id/versions`,
      access: 'verified',
      needs: 'read',
      tag: versionTag,
      summary: 'List the retained versions, newest first',
      status: 200,
      output: z.array(schemas.versionEntrySchema),
      run: ({ actor, params }) => versions.list(actor, params.id),
    }),
    apiRoute({
      method: 'POST',
      path: `${root}/:id/versions/:version_id/promote`,
      access: 'verified',
      needs: 'publish',
      tag: versionTag,
      summary: 'Make a version live',
      status: 200,
      output: schemas.versionSchema,
      run: async ({ actor, params }) => reply(await versions.promote(actor, params.id, params.version_id)),
    }),
    apiRoute({
      method: 'GET',
      path: `${root}/:id/versions/:version_id/changes`,
      access: 'verified',
      needs: 'read',
      tag: versionTag,
      summary: 'What would change if this version went live',
      status: 200,
      output: schemas.changesSchema,
      run: ({ actor, params }) => versions.changes(actor, params.id, params.version_id),
    }),
  ]
}

/** Routes that count: views, and what the plan has left. */
function numberRoutes({ apiRoute, sites, countDomains }: SiteRoutesDependencies): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: `${root}/:id/views`,
      access: 'verified',
      needs: 'read',
      tag,
      summary: 'Page views per day',
      status: 200,
      query: z.strictObject({
        days: described(z.coerce.number<number>().int().min(1).max(366).default(30), 'How many days back.', 7),
      }),
      output: schemas.dailyViewsSchema,
      async run({ actor, params, query }) {
        const days = await sites.dailyViews(actor, params.id, query.days)
        return { days, total: days.reduce((sum, day) => sum + day.count, 0) }
      },
    }),
    apiRoute({
      method: 'GET',
      path: '/api/v1/usage',
      access: 'verified',
      needs: 'read',
      tag: 'Account',
      summary: "Consumption against the plan's caps",
      status: 200,
      output: schemas.usageSchema,
      async run({ actor }) {
        const plan = plans[actor.plan]
        return {
          ...(await sites.usage(actor)),
          custom_domains: { used: await countDomains(actor.orgId), limit: plan.customDomains },
        }
      },
    }),
  ]
}
