/** `/sites`: the list, a new drop, publishing, versions, views. */
import { MAX_MESSAGE_CHARS } from '../../../../shared/limits.ts'
import { DAY_MS } from '../../../../shared/clock.ts'
import { errors } from '../../../../shared/errors.ts'
import { plans } from '../../../../shared/plans.ts'
import { json, seeOther } from '../../../ground/http/reply.ts'
import type { PathParams, Route } from '../../../ground/http/route.ts'
import { flashOf } from '../frame/flash.ts'
import { isFragment, type AccountRequest, type Answer, type FormOptions, type Handlers } from '../frame/handlers.ts'
import { findTemplateFill } from '../templates/queries.ts'
import { dailyViewsOf, findTakedownReason } from './queries.ts'
import { receivePublishForm } from '../publish/received.ts'
import type { DashboardServices } from '../frame/services.ts'
import { siteVersionsPage, siteChangesPage } from './versions-view.ts'
import { siteViewsPage } from './views-view.ts'
import { sitePublishPage } from './publish-view.ts'
import { newSitePage, sitesPage, type ListedSite } from './list-view.ts'
import type { ApiSite } from '../../../drops/sites/schemas.ts'

const SPARKLINE_DAYS = 30
const VIEW_SPANS: readonly [number, ...number[]] = [30, 90]

interface OfSite {
  readonly params: { readonly id: string }
}

export function sitesRoutes(services: DashboardServices, handlers: Handlers): Route[] {
  return [...listRoutes(services, handlers), ...publishRoutes(services, handlers), ...versionRoutes(services, handlers)]
}

function listRoutes(services: DashboardServices, handlers: Handlers): Route[] {
  const { sites, sql, clock } = services

  async function withViews(shown: readonly ApiSite[]): Promise<ListedSite[]> {
    const days = Array.from({ length: SPARKLINE_DAYS }, (_, index) =>
      dayOf(clock.now() - (SPARKLINE_DAYS - 1 - index) * DAY_MS),
    )
    const counts = new Map<string, number>()
    if (shown.length > 0) {
      const rows = await dailyViewsOf(
        sql,
        shown.map((site) => site.id),
        dayOf(clock.now() - (SPARKLINE_DAYS - 1) * DAY_MS),
      )
      for (const row of rows) counts.set(`${row.site_id}|${row.day}`, row.count)
    }
    return shown.map((site) => ({ site, recent: days.map((day) => counts.get(`${site.id}|${day}`) ?? 0) }))
  }

  return [
    handlers.accountPage('/sites', async ({ request, actor }) => {
      const search = (request.query.get('q') ?? '').trim()
      const all = await sites.list(actor)
      const shown = all.filter((site) => matches(site, search))
      const active = all.filter((site) => site.state !== 'paused').length
      return {
        ...sitesPage({
          sites: await withViews(shown),
          total: all.length,
          search,
          usage: { used: active, limit: plans[actor.plan].activeDrops },
          now: clock.now(),
        }),
        ...flashOf(request),
      }
    }),
  ]
}

function matches(site: ApiSite, search: string): boolean {
  const text = `${site.name} ${site.title} ${site.slug}`.toLowerCase()
  return text.includes(search.toLowerCase())
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

function publishRoutes(services: DashboardServices, handlers: Handlers): Route[] {
  const { sites, versions, publishing, clock, sql, config } = services

  async function showSite(asked: AccountRequest & OfSite): Promise<Answer> {
    const { actor } = asked
    const siteId = asked.params.id
    const site = await sites.get(actor, siteId)
    const live = (await versions.list(actor, siteId)).find((version) => version.live)
    const fill = await findTemplateFill(sql, siteId)
    const removedFor = site.state === 'removed' ? await findTakedownReason(sql, siteId) : undefined
    return {
      ...sitePublishPage(asked.viewer, {
        site,
        live,
        justPublished: asked.request.query.get('done') === 'published',
        template: fill?.template,
        removedFor,
        now: clock.now(),
      }),
      ...(asked.request.query.get('done') === 'published' ? {} : flashOf(asked.request)),
    }
  }

  /** A publish form that a script or a browser sends; refusals go back the way they came. */
  function publishForm<Path extends string>(
    path: Path,
    form: FormOptions,
    publish: (asked: AccountRequest & { params: PathParams<Path> }, sent: URLSearchParams) => Promise<string>,
  ): Route {
    return handlers.uploadForm(path, form, async (asked, sent) => {
      const location = await publish(asked, sent)
      return isFragment(asked.request) ? json(201, { location }) : seeOther(location)
    })
  }

  const receive = (asked: AccountRequest, fields: URLSearchParams) =>
    receivePublishForm(asked.request, {
      publishing,
      owner: { kind: 'organisation', id: asked.actor.orgId },
      capBytes: plans[asked.actor.plan].uploadBytes,
      accepts: 'any',
      fields,
      admit: (early) => handlers.requireOwnForm(asked, early),
    })

  async function createAndPublish(asked: AccountRequest, fields: URLSearchParams): Promise<string> {
    const { actor } = asked
    const { prepared } = await receive(asked, fields)
    const slug = (fields.get('slug') ?? '').trim()
    const name = (fields.get('name') ?? '').trim()
    const wanted = { ...(slug === '' ? {} : { slug }), ...(name === '' ? {} : { name }) }
    if (!prepared) return `/sites/${(await sites.create(actor, wanted)).value.id}`
    const { value } = await versions.publishNew(actor, wanted, prepared, {})
    return `/sites/${value.siteId}?done=published`
  }

  async function publishVersion(asked: AccountRequest & OfSite, fields: URLSearchParams): Promise<string> {
    const siteId = asked.params.id
    await sites.get(asked.actor, siteId)
    const { prepared } = await receive(asked, fields)
    if (!prepared) throw errors.invalidRequest('Choose files, or paste some text first.')
    await versions.publish(asked.actor, siteId, prepared, {
      message: (fields.get('message') ?? '').slice(0, MAX_MESSAGE_CHARS),
    })
    return `/sites/${siteId}?done=published`
  }

  return [
    handlers.accountPage('/sites/new', ({ viewer }) => newSitePage(viewer, { sitesDomain: config.sitesDomain })),
    publishForm('/sites/new', { on: '/sites/new' }, createAndPublish),
    handlers.accountPage('/sites/:id', (asked) => showSite(asked)),
    publishForm('/sites/:id/publish', { on: '/sites/:id' }, publishVersion),
  ]
}

const PROMOTE_FORM = { on: '/sites/:id/versions/:version', verified: true } as const

function versionRoutes({ sites, versions, clock }: DashboardServices, handlers: Handlers): Route[] {
  return [
    handlers.accountPage('/sites/:id/versions', async ({ request, viewer, actor, params: { id } }) => {
      const [site, list] = await Promise.all([sites.get(actor, id), versions.list(actor, id)])
      return {
        ...siteVersionsPage(viewer, { site, versions: list, kept: plans[actor.plan].versionsKept, now: clock.now() }),
        ...flashOf(request),
      }
    }),
    handlers.accountPage('/sites/:id/versions/:version', async ({ viewer, actor, params }) => {
      const { id, version: versionId } = params
      const changes = await versions.changes(actor, id, versionId)
      const [site, list] = await Promise.all([sites.get(actor, id), versions.list(actor, id)])
      const version = list.find((entry) => entry.version_id === versionId)
      if (!version) throw errors.notFound('version')
      return siteChangesPage(viewer, { site, version, changes })
    }),
    handlers.accountForm('/sites/:id/versions/:version/promote', PROMOTE_FORM, async ({ actor, params }) => {
      await versions.promote(actor, params.id, params.version)
      return seeOther(`/sites/${params.id}/versions?done=promoted`)
    }),
    handlers.accountPage('/sites/:id/views', async ({ request, actor, params: { id } }) => {
      const asked = Number(request.query.get('days'))
      const span = VIEW_SPANS.includes(asked) ? asked : VIEW_SPANS[0]
      return siteViewsPage({ site: await sites.get(actor, id), days: await sites.dailyViews(actor, id, span) })
    }),
  ]
}
