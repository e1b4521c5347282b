/** `/sites`: the list, a new drop, publishing, versions, views. */
import { parseAuthority } from '../../../../shared/http/hosts.ts'
import { safeNext } from '../../../../shared/http/safe-next.ts'
import { DAY_MS, MINUTE_MS } from '../../../../shared/running/clock.ts'
import { makePass } from '../../../../shared/secrets/previews.ts'
import { addressOf } from '../../../../shared/settings/settings.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { fileKindOf, isPageFormat } from '../../../../shared/content/upload-kind.ts'
import { decodeText } from '../../../drops/publishing/files/text-encoding.ts'
import { dayOf } from '../../../drops/sites/rules.ts'
import { uploadedFiles } from '../../../drops/sites/versions/uploaded-files.ts'
import { plans } from '../../../ground/terms/plans.ts'
import { json, noContent, seeOther } from '../../../ground/http/reply.ts'
import type { PathParams, Route } from '../../../ground/http/route.ts'
import { flashOf } from '../frame/flash.ts'
import { isFragment, type AccountRequest } from '../frame/callers.ts'
import { problemText, orShow, type Handlers } from '../frame/handlers.ts'
import type { Answer, FormOptions } from '../frame/returned-forms.ts'
import { findTemplateFill } from '../templates/queries.ts'
import { dailyViewsOf, findTakedownReason } from './queries.ts'
import { createOwnPublishing } from '../publish/own-drops.ts'
import type { Limit } from '../../../ground/http/limits/sliding-window.ts'
import type { DashboardServices } from '../frame/services.ts'
import { siteVersionsPage, siteChangesPage } from './versions-view.ts'
import { siteViewsPage } from './views-view.ts'
import { sitePublishPage } from './publish-view.ts'
import type { Actor } from '../../../ground/actor.ts'
import { MAX_QUESTION_CHARS } from '../../search/search.ts'
import { listQueryOf, pageOf, type ListQuery } from './list-order.ts'
import { newSitePage, sitesPage, type EditedText, type ListedSite } from './list-view.ts'
import type { ApiSite, VersionEntry } from '../../../drops/sites/schemas.ts'

const SPARKLINE_DAYS = 30
/** A text that is edited in a page is read and sent as a whole. */
const MAX_EDITED_BYTES = 1_000_000
const VIEW_SPANS: readonly [number, ...number[]] = [30, 90]

/** A person who types without pause asks about three times a second. */
const ADDRESS_LIMIT: Limit = { points: 900, windowSeconds: 300 }
/** What is longer is no address, and its refusal says the same. */
const MAX_LOOKED_CHARS = 200

interface OfSite {
  readonly params: { readonly id: string }
}

export function sitesRoutes(services: DashboardServices, handlers: Handlers): Route[] {
  return [
    ...listRoutes(services, handlers),
    ...publishRoutes(services, handlers),
    ...versionRoutes(services, handlers),
    ...previewRoutes(services, handlers),
    ...passRoutes(services, handlers),
  ]
}

function listRoutes(services: DashboardServices, handlers: Handlers): Route[] {
  const { sites, search, sql, clock } = services

  /** Words are looked for in what the pages say, too. */
  async function foundBy(actor: Actor, { search: words }: ListQuery): Promise<ReadonlySet<string> | undefined> {
    if (words === '') return undefined
    return new Set((await search.find(actor, words.slice(0, MAX_QUESTION_CHARS))).map(({ id }) => id))
  }

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
    handlers.accountPage('/sites', async ({ request, viewer, actor }) => {
      const query = listQueryOf(request.query)
      const all = await sites.list(actor)
      const { shown, ...page } = pageOf(all, query, await foundBy(actor, query))
      const { drops: usage } = await sites.usage(actor)
      return {
        ...sitesPage(viewer, {
          sites: await withViews(shown),
          total: all.length,
          states: [...new Set(all.map(({ state }) => state))],
          query: { ...query, page: page.page },
          page,
          usage,
          elsewhere: Math.max(0, usage.used - all.filter(({ state }) => ACTIVE_STATES.has(state)).length),
          now: clock.now(),
        }),
        ...flashOf(request),
      }
    }),
  ]
}

/** Those that take a place in the plan. */
const ACTIVE_STATES: ReadonlySet<ApiSite['state']> = new Set(['reserved', 'live', 'unverified'])

function publishRoutes(services: DashboardServices, handlers: Handlers): Route[] {
  const { sites, versions, publishing, clock, sql, config } = services
  const own = createOwnPublishing(services, handlers)

  async function showSite(asked: AccountRequest & OfSite): Promise<Answer> {
    const { actor } = asked
    const siteId = asked.params.id
    const site = await sites.get(actor, siteId)
    const { query } = asked.request
    const list = await versions.list(actor, siteId)
    const live = list.find((version) => version.live)
    const before = list.find((version) => version.version_id === query.get('before') && !version.live)
    const isEdited = query.has('edit') || asked.viewer.draft?.values.has('if_version')
    const fill = await findTemplateFill(sql, siteId)
    const removedFor = site.state === 'removed' ? await findTakedownReason(sql, siteId) : undefined
    return {
      ...sitePublishPage(asked.viewer, {
        site,
        live,
        justPublished: query.get('done') === 'published',
        before: before && {
          version: before,
          // From the new version back: what it would add is what has gone.
          changes: await versions.changes(actor, siteId, before.version_id),
        },
        edited: isEdited ? await editedText(site, live) : undefined,
        isEditable: (await editableFile(site)) !== undefined,
        template: fill?.template,
        removedFor,
        now: clock.now(),
      }),
      ...(query.get('done') === 'published' ? {} : flashOf(asked.request)),
    }
  }

  /** The file of a drop that is one page, small enough to be edited here. */
  async function editableFile(site: ApiSite): Promise<{ name: string; hash: string } | undefined> {
    const manifest = await versions.liveManifest(site.id, site.live_version_id)
    const [only, ...others] = uploadedFiles(manifest)
    if (only === undefined || others.length > 0) return undefined
    const [name, { hash, size }] = only
    return isPageFormat(fileKindOf(name)) && size <= MAX_EDITED_BYTES ? { name, hash } : undefined
  }

  async function editedText(site: ApiSite, live: VersionEntry | undefined): Promise<EditedText | undefined> {
    const file = await editableFile(site)
    if (!file || !live) return undefined
    return {
      text: decodeText(await publishing.readBlob(file.hash)),
      format: fileKindOf(file.name) === 'html' ? 'html' : 'markdown',
      version: live.version_number,
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

  return [
    // What the address field asks while it is typed into.
    handlers.accountPage('/sites/address', async ({ request, actor }) => {
      await services.limiter.consume('address', actor.userId, ADDRESS_LIMIT)
      const looked = await sites.lookAtSlug(
        actor,
        (request.query.get('slug') ?? '').trim().slice(0, MAX_LOOKED_CHARS),
        request.query.get('site') ?? undefined,
      )
      return json(200, looked ? { problem: problemText(looked.refusal), others: looked.others } : {})
    }),
    handlers.accountPage('/sites/new', async ({ viewer, actor }) => {
      const acting = (await services.organisations.list(actor)).find(({ id }) => id === actor.orgId)
      return newSitePage(viewer, { sitesDomain: config.sitesDomain, policy: acting?.visibilityPolicy ?? 'open' })
    }),
    publishForm('/sites/new', { on: '/sites/new' }, own.publishNew),
    handlers.accountPage('/sites/:id', (asked) => showSite(asked)),
    publishForm('/sites/:id/publish', { on: '/sites/:id' }, (asked, fields) =>
      own.publishVersion(asked, asked.params.id, fields),
    ),
    handlers.accountForm('/sites/check', { on: '/sites/new', verified: false }, ({ actor, form }) =>
      orShow(
        async () => {
          const [siteId, slug] = [form.get('site') ?? '', (form.get('slug') ?? '').trim()]
          await services.uploads.requireWelcome(actor, {
            siteId: siteId === '' ? undefined : siteId,
            slug: slug === '' ? undefined : slug,
            byteSize: Math.max(0, Number(form.get('bytes')) || 0),
          })
          return noContent()
        },
        (problem) => json(problem.status, problem.toBody(), problem.headers),
      ),
    ),
  ]
}

/** A preview's host gets this long to take the entry over. */
const ENTRY_MS = MINUTE_MS

/** The way of a member into a preview that is for members: over this host, where they are signed in, and back. */
function passRoutes({ sites, clock, secrets, config }: DashboardServices, handlers: Handlers): Route[] {
  return [
    handlers.accountPage('/sites/:id/pass', async ({ request, actor, params }) => {
      const { id } = await sites.get(actor, params.id)
      const host = parseAuthority(request.query.get('host') ?? '')
      if (host === undefined || !host.endsWith(`.${config.sitesDomain}`)) throw errors.notFound('preview')
      const pass = makePass(secrets, { kind: 'entry', siteId: id, host, expiresAt: clock.now() + ENTRY_MS })
      const next = encodeURIComponent(safeNext(request.query.get('next'), '/'))
      return seeOther(`${addressOf(config, host)}/.dropway/member?pass=${pass}&next=${next}`)
    }),
  ]
}

const PROMOTE_FORM = { on: '/sites/:id/versions/:version', verified: true } as const

function previewRoutes({ previews }: DashboardServices, handlers: Handlers): Route[] {
  const form = { on: '/sites/:id/versions', verified: true } as const
  return [
    handlers.accountForm('/sites/:id/previews/:name/promote', form, async ({ actor, params }) => {
      await previews.promote(actor, params.id, params.name)
      return seeOther(`/sites/${params.id}/versions?done=promoted`)
    }),
    handlers.accountForm('/sites/:id/previews/:name/remove', form, async ({ actor, params }) => {
      await previews.remove(actor, params.id, params.name)
      return seeOther(`/sites/${params.id}/versions?done=preview-removed`)
    }),
  ]
}

function versionRoutes({ sites, versions, previews, clock }: DashboardServices, handlers: Handlers): Route[] {
  return [
    handlers.accountPage('/sites/:id/versions', async ({ request, viewer, actor, params: { id } }) => {
      const [site, list] = await Promise.all([sites.get(actor, id), versions.history(actor, id)])
      const named = await previews.list(actor, id)
      const { query } = request
      return siteVersionsPage(viewer, {
        site,
        versions: list,
        previews: named,
        flash: flashOf(request).flash,
        kept: plans[actor.plan].versionsKept,
        isPromoted: query.get('done') === 'promoted',
        before: list.find((version) => version.version_id === query.get('before') && !version.live),
        now: clock.now(),
      })
    }),
    handlers.accountPage('/sites/:id/versions/:version', async ({ viewer, actor, params }) => {
      const { id, version: versionId } = params
      const comparison = await versions.compare(actor, id, versionId)
      const [site, list] = await Promise.all([sites.get(actor, id), versions.list(actor, id)])
      const version = list.find((entry) => entry.version_id === versionId)
      if (!version) throw errors.notFound('version')
      return siteChangesPage(viewer, { site, version, comparison })
    }),
    handlers.accountForm('/sites/:id/versions/:version/promote', PROMOTE_FORM, async ({ actor, params }) => {
      const { live_version_id: before } = await sites.get(actor, params.id)
      await versions.promote(actor, params.id, params.version)
      return seeOther(`/sites/${params.id}/versions?done=promoted${before === null ? '' : `&before=${before}`}`)
    }),
    handlers.accountPage('/sites/:id/views', async ({ request, actor, params: { id } }) => {
      const asked = Number(request.query.get('days'))
      const span = VIEW_SPANS.includes(asked) ? asked : VIEW_SPANS[0]
      return siteViewsPage({ site: await sites.get(actor, id), days: await sites.dailyViews(actor, id, span) })
    }),
  ]
}
