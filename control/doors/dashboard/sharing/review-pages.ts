/** /review/<slug>: a drop in a frame, and what people say about it. Every deed works without scripts, too. */
import { ApiError, errors } from '../../../../shared/contracts/errors.ts'
import { openAdmission } from '../../../../shared/contracts/admission.ts'
import { isPreviewName, siteHost } from '../../../../shared/http/hosts.ts'
import { addressOf } from '../../../../shared/settings/settings.ts'
import { ENTER_PATH, GUEST_PATH } from '../../../../shared/contracts/visit-desk.ts'
import type { Actor } from '../../../ground/actor.ts'
import { transaction } from '../../../ground/database/sql.ts'
import { parse } from '../../../ground/http/api.ts'
import { html as htmlReply, json, seeOther } from '../../../ground/http/reply.ts'
import { paramsOf, type Request, type Route } from '../../../ground/http/route.ts'
import { isCrossOrigin } from '../../../people/access/same-origin.ts'
import type { SiteFacts } from '../../../drops/sites/rules.ts'
import {
  MAX_IMAGE_BYTES,
  MAX_IMAGES_PER_MESSAGE,
  mayDo,
  pagePathOf,
  THREAD_LABELS,
  THREAD_STATES,
  type ThreadLabel,
} from '../../../drops/threads/rules.ts'
import { requireMay, type Reviewer } from '../../../drops/threads/reviewer.ts'
import { reviewUrlOf } from '../../../drops/threads/threads.ts'
import { editMessageSchema, openThreadSchema, showImage, writeMessageSchema } from '../../../drops/threads/schemas.ts'
import { accessModeOf } from '../../../drops/viewers/access.ts'
import { INVITATION_PATH } from '../../../drops/viewers/lists.ts'
import type { PageRequest } from '../frame/callers.ts'
import type { FormRequest, Handlers } from '../frame/handlers.ts'
import type { Page, Viewer } from '../frame/layout.ts'
import type { DashboardServices } from '../frame/services.ts'
import { ANCHOR_FIELDS, comeInPage, namePage, reviewPage } from './review-view.ts'
import { threadList, type ListedFor } from './thread-view.ts'

const HOME = '/review/:slug'
const DOOR = `${HOME}/guest/:token` as const
const INVITATION = `${HOME}${INVITATION_PATH}/:token` as const
const FORM = { on: HOME, keeps: ['preview', 'state', 'label'] } as const
const WITH_IMAGES = { ...FORM, files: { most: MAX_IMAGES_PER_MESSAGE, maxBytes: MAX_IMAGE_BYTES } } as const

type Services = DashboardServices

export function reviewPageRoutes(services: Services, handlers: Handlers): Route[] {
  return [
    ...shellRoutes(services, handlers),
    ...doorRoutes(services, handlers),
    ...invitationRoutes(services, handlers),
    ...deedRoutes(services, handlers),
    ...scriptRoutes(services, handlers),
    ...imageRoutes(services),
  ]
}

/** What of the address a page keeps. */
interface Asked {
  readonly page: string
  readonly preview: string | undefined
  readonly state: 'open' | 'resolved' | 'all'
  readonly label: ThreadLabel | undefined
  readonly thread: string | undefined
  /** The message that is being changed. */
  readonly edit: string | undefined
}

function askedOf({ query }: Request): Asked {
  const state = query.get('state') ?? 'open'
  const preview = query.get('preview') ?? ''
  return {
    page: pagePathOf(query.get('page') ?? '/') ?? '/',
    preview: isPreviewName(preview) ? preview : undefined,
    state: [...THREAD_STATES, 'all' as const].find((each) => each === state) ?? 'open',
    label: THREAD_LABELS.find((each) => each === query.get('label')),
    thread: query.get('thread') ?? undefined,
    edit: query.get('edit') ?? undefined,
  }
}

/** The preview and the filters, which are names of ours. */
function keptOf({ preview, state, label }: Pick<Asked, 'preview' | 'state' | 'label'>): string {
  const parts = [
    preview !== undefined && `preview=${preview}`,
    state !== 'open' && `state=${state}`,
    label !== undefined && `label=${label}`,
  ]
  const kept = parts.filter((part) => part !== false).join('&')
  return kept === '' ? '' : `?${kept}`
}

async function requireDrop({ sites }: Services, slug: string): Promise<SiteFacts> {
  const site = await sites.findNamed(slug)
  if (!site || site.org_id === null) throw errors.notFound('drop to review')
  return site
}

interface Entered {
  readonly site: SiteFacts
  readonly reviewer: Reviewer
}

/** Who comes to the page of a drop; throws 401 for strangers. */
async function requireReviewer(
  services: Services,
  { request, actor }: { request: Request; actor: Actor | undefined },
  slug: string,
): Promise<Entered> {
  const site = await requireDrop(services, slug)
  const reviewer = await services.reviewers.find(request, site, actor)
  if (!reviewer) throw errors.unauthorized('Open the link that you were sent, or sign in.')
  return { site, reviewer }
}

function listedFor(viewer: Viewer, { site, reviewer }: Entered, asked: Asked, now: number): ListedFor {
  const kept = keptOf(asked)
  const visible = site.threads_visible
  return {
    viewer,
    base: `/review/${site.slug}`,
    query: kept,
    mayWrite: mayDo(reviewer, 'reply', { visible }),
    isMember: reviewer.role === 'member',
    isFiltered: asked.state !== 'open' || asked.label !== undefined,
    maySettle: ({ mine }) => reviewer.role === 'member' || (mine === true && reviewer.role === 'comment'),
    chosen: asked.thread,
    editing: asked.edit,
    now,
  }
}

function shellRoutes(services: Services, handlers: Handlers): Route[] {
  const { review, reviewFrames, reviewers, versions, previews, clock } = services

  async function show(asked: PageRequest, entered: Entered): Promise<Page> {
    const { site, reviewer } = entered
    const wanted = askedOf(asked.request)
    const list = listedFor(asked.viewer, entered, wanted, clock.now())
    const shown =
      wanted.thread === undefined
        ? await review.list(reviewer, wanted)
        : await review.list(reviewer, { state: 'all', label: undefined })
    const chosen = shown.find(({ id }) => id === wanted.thread)
    const page = chosen?.page ?? wanted.page
    const preview = wanted.preview ?? chosen?.preview ?? undefined
    const version = preview === undefined ? await versions.liveVersion(site) : await previews.named(site.id, preview)
    if (!version) throw errors.notFound(preview === undefined ? 'page to review yet' : 'preview')
    return reviewPage(asked.viewer, {
      drop: site,
      frame: await reviewFrames.of(site, reviewer, { page, preview }),
      page,
      preview,
      version: version.number,
      state: wanted.state,
      label: wanted.label,
      threads: shown,
      changed: await review.changed(reviewer),
      list,
      name: reviewer.name,
      shareUrl:
        reviewer.role === 'member' && accessModeOf(site) !== 'public' ? `/sites/${site.id}/sharing/public` : undefined,
    })
  }

  return [
    handlers.page(HOME, async (asked) => {
      const site = await requireDrop(services, asked.params.slug)
      const reviewer = await reviewers.find(asked.request, site, asked.actor)
      if (reviewer && mayDo(reviewer, 'read', { visible: site.threads_visible })) return show(asked, { site, reviewer })
      const email = asked.request.query.get('email') ?? undefined
      return comeInPage(asked.viewer, { base: `/review/${site.slug}`, email })
    }),
  ]
}

function doorRoutes(services: Services, handlers: Handlers): Route[] {
  const { sql, reviewers, visitDesk, secrets, config } = services
  const own = (site: SiteFacts): string => addressOf(config, siteHost(site.slug, config.sitesDomain))
  return [
    handlers.page(DOOR, async ({ request, viewer, actor, params }) => {
      const site = await requireDrop(services, params.slug)
      const link = await reviewers.link(site.id, params.token)
      if (!link) throw errors.invalidLink()
      if (link.role === 'view') return seeOther(`${own(site)}${GUEST_PATH}/${params.token}`)
      const known = await reviewers.find(request, site, actor)
      if (known && (known.role === 'member' || known.id === link.id)) return seeOther(`/review/${site.slug}`)
      return namePage(viewer, site, `/review/${site.slug}/guest/${params.token}`)
    }),
    handlers.form(DOOR, { on: DOOR }, async ({ params, form }) => {
      const site = await requireDrop(services, params.slug)
      const name = (form.get('name') ?? '').trim()
      if (name === '') throw errors.invalidRequest('name: say who you are.')
      const cookie = await transaction(sql, (tx) => reviewers.enterByLink(tx, site, params.token, name))
      if (cookie === undefined) throw errors.invalidLink()
      return seeOther(`/review/${site.slug}`, { 'set-cookie': cookie })
    }),
    handlers.form(`${HOME}/code`, { on: HOME }, async ({ request, params, form }) => {
      const site = await requireDrop(services, params.slug)
      const email = (form.get('email') ?? '').trim()
      const about = { site_id: site.id, host: siteHost(site.slug, config.sitesDomain) }
      const answer = await visitDesk.answer({ kind: 'code', ...about, email, next: '/' }, request.ip, 'review')
      if (answer.kind === 'refused' && answer.reason === 'limited')
        throw errors.rateLimited(answer.retry_after ?? 60, 'Too many codes were asked for. Wait a while.')
      if (answer.kind !== 'sent') throw errors.invalidRequest('email: this is no e-mail address.')
      return seeOther(`/review/${site.slug}?email=${encodeURIComponent(email)}`)
    }),
    handlers.form(`${HOME}/enter`, { on: HOME, keeps: ['email'] }, async ({ request, params, form }) => {
      const site = await requireDrop(services, params.slug)
      const [email, code] = [(form.get('email') ?? '').trim().toLowerCase(), form.get('code') ?? '']
      const about = { site_id: site.id, host: siteHost(site.slug, config.sitesDomain) }
      const answer = await visitDesk.answer({ kind: 'try', ...about, email, code }, request.ip, 'review')
      const subject = answer.kind === 'admitted' ? openAdmission(secrets, answer.admission)?.subject : undefined
      if (subject === undefined) throw errors.invalidRequest('code: this code does not work. Ask for a new one.')
      const cookie = await reviewers.enterByMail(site, email, form.get('name') ?? '')
      if (cookie === undefined) throw errors.invalidRequest('email: sign in to review drops of your own organisation.')
      return seeOther(`/review/${site.slug}`, { 'set-cookie': cookie })
    }),
  ]
}

/** The button in the mail to a viewer who may comment: a name, and they are in. */
function invitationRoutes(services: Services, handlers: Handlers): Route[] {
  const { reviewers, visitDesk, config } = services
  return [
    handlers.page(INVITATION, async ({ request, viewer, actor, params: { slug, token } }) => {
      const site = await requireDrop(services, slug)
      const invited = await reviewers.invited(site.id, token)
      // Used, perhaps by this very browser: the page itself says how to come in.
      if (!invited || (await reviewers.find(request, site, actor))) return seeOther(`/review/${site.slug}`)
      if (invited.role === 'view')
        return seeOther(`${addressOf(config, siteHost(site.slug, config.sitesDomain))}${ENTER_PATH}/${token}`)
      return namePage(viewer, site, `/review/${site.slug}${INVITATION_PATH}/${token}`)
    }),
    handlers.form(INVITATION, { on: INVITATION }, async ({ request, params: { slug, token }, form }) => {
      const site = await requireDrop(services, slug)
      const name = (form.get('name') ?? '').trim()
      if (name === '') throw errors.invalidRequest('name: say who you are.')
      const invited = await reviewers.invited(site.id, token)
      const about = { site_id: site.id, host: siteHost(site.slug, config.sitesDomain) }
      const answer = await visitDesk.answer({ kind: 'enter', ...about, token }, request.ip, 'review')
      const cookie =
        invited && answer.kind === 'admitted' ? await reviewers.enterByMail(site, invited.email, name) : undefined
      if (cookie === undefined) throw errors.invalidLink()
      return seeOther(`/review/${site.slug}`, { 'set-cookie': cookie })
    }),
  ]
}

/** What people do, as forms. */
function deedRoutes(services: Services, handlers: Handlers): Route[] {
  const { review, threadImages } = services
  const back = (slug: string, request: Request, thread: string): string =>
    `/review/${slug}${keptOf(askedOf(request))}#${thread}`
  /** Those that a script has sent before, and those that came with the form. */
  const imagesOf = async (reviewer: Reviewer, { form, files }: FormRequest): Promise<string[]> => {
    const sent = form.getAll('images')
    if (sent.length + files.length > MAX_IMAGES_PER_MESSAGE)
      throw errors.invalidRequest(`images: at most ${MAX_IMAGES_PER_MESSAGE} in one comment.`)
    for (const bytes of files) sent.push((await threadImages.add(reviewer, bytes)).id)
    return sent
  }
  return [
    handlers.form(`${HOME}/notes`, WITH_IMAGES, async (asked) => {
      const { request, params, form } = asked
      const { reviewer } = await requireReviewer(services, asked, params.slug)
      const anchor = anchorIn(form)
      const wanted = parse(openThreadSchema, {
        page: form.get('page') ?? '/',
        body: form.get('body') ?? '',
        ...(anchor === undefined ? {} : { anchor }),
        images: await imagesOf(reviewer, asked),
        ...(form.get('label') ? { label: form.get('label') } : {}),
        ...(askedOf(request).preview === undefined ? {} : { preview: askedOf(request).preview }),
      })
      const { id } = await review.open(reviewer, wanted)
      return seeOther(back(params.slug, request, id))
    }),
    handlers.form(`${HOME}/threads/:thread/reply`, WITH_IMAGES, async (asked) => {
      const { request, params, form } = asked
      const { reviewer } = await requireReviewer(services, asked, params.slug)
      const images = await imagesOf(reviewer, asked)
      const said = parse(writeMessageSchema, { body: form.get('body') ?? '', images })
      await review.reply(reviewer, params.thread, said)
      return seeOther(back(params.slug, request, params.thread))
    }),
    handlers.form(`${HOME}/threads/:thread/state`, FORM, async (asked) => {
      const { request, params, form } = asked
      const { reviewer } = await requireReviewer(services, asked, params.slug)
      const state = form.get('state') === 'open' ? 'open' : 'resolved'
      await review.change(reviewer, params.thread, { state })
      return seeOther(back(params.slug, request, params.thread))
    }),
    handlers.form(`${HOME}/threads/:thread/label`, FORM, async (asked) => {
      const { request, params, form } = asked
      const { reviewer } = await requireReviewer(services, asked, params.slug)
      const label = THREAD_LABELS.find((each) => each === form.get('label')) ?? null
      await review.change(reviewer, params.thread, { label })
      return seeOther(back(params.slug, request, params.thread))
    }),
    handlers.form(`${HOME}/messages/:message/edit`, FORM, async (asked) => {
      const { request, params, form } = asked
      const { reviewer } = await requireReviewer(services, asked, params.slug)
      const { body } = parse(editMessageSchema, { body: form.get('body') ?? '' })
      await review.edit(reviewer, params.message, body)
      return seeOther(back(params.slug, request, params.message))
    }),
    handlers.form(`${HOME}/messages/:message/delete`, FORM, async (asked) => {
      const { request, params } = asked
      const { reviewer } = await requireReviewer(services, asked, params.slug)
      await review.remove(reviewer, params.message)
      return seeOther(back(params.slug, request, 'said-title'))
    }),
  ]
}

/** What a note is about, as its form says; undefined for the page as a whole. */
function anchorIn(form: URLSearchParams): Record<string, unknown> | undefined {
  const [exact, prefix, suffix, element, src, x, y] = ANCHOR_FIELDS.map((name) => form.get(name) ?? '')
  if (exact === '' && element === '') return undefined
  return {
    exact,
    prefix,
    suffix,
    ...(element === '' ? {} : { element }),
    ...(element === '' || exact !== '' ? {} : { src }),
    ...(x === '' || y === '' || element === '' ? {} : { point: { x: Number(x), y: Number(y) } }),
  }
}

/** Images in comments, for everyone who may read or write these: by cookie, by guest link or by token. */
function imageRoutes(services: Services): Route[] {
  const { reviewers, threadImages, config } = services
  return [
    {
      method: 'POST',
      path: `${HOME}/images`,
      handle: inJson(async (request) => {
        const site = await requireDrop(services, paramsOf(`${HOME}/images`, request).slug)
        const reviewer = await reviewers.require(request, site.id, 'publish')
        const image = await threadImages.add(reviewer, await request.bytes(MAX_IMAGE_BYTES))
        return json(201, showImage(image, reviewUrlOf(config.baseUrl, site.slug)))
      }),
    },
    {
      method: 'GET',
      path: `${HOME}/images/:image`,
      handle: inJson(async (request) => {
        const { slug, image: id } = paramsOf(`${HOME}/images/:image`, request)
        const site = await requireDrop(services, slug)
        const { image, bytes } = await threadImages.read(await reviewers.require(request, site.id, 'read'), id)
        return { status: 200, headers: { 'content-type': image.type, ...IMAGE_HEADERS }, body: bytes }
      }),
    },
  ]
}

/** Scripts and programs ask here: they are told in JSON what is refused, where people would read a page. */
function inJson(handle: Route['handle']): Route['handle'] {
  return async (request) => {
    try {
      return await handle(request)
    } catch (error) {
      if (!(error instanceof ApiError) || error.status >= 500) throw error
      return json(error.status, error.toBody(), error.headers)
    }
  }
}

/** An image and nothing else, in our own pages and nowhere else; not kept longer than it takes to read a thread. */
const IMAGE_HEADERS = {
  'cache-control': 'private, max-age=300',
  'content-disposition': 'inline',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
} as const

/** What the script of the page asks for. */
function scriptRoutes(services: Services, handlers: Handlers): Route[] {
  const { review, reviewFrames, reviewers, versions, previews, clock, config } = services
  const route = (
    method: 'GET' | 'POST',
    path: `${typeof HOME}/${string}`,
    answer: (asked: PageRequest, entered: Entered) => Promise<unknown>,
  ): Route => ({
    method,
    path,
    async handle(request) {
      if (method === 'POST' && isCrossOrigin(request, config.baseUrl))
        throw errors.forbidden('Only our own page asks this.')
      const asked = await handlers.read(request)
      const entered = await requireReviewer(services, asked, paramsOf(`${HOME}/x`, request).slug)
      requireMay(entered.reviewer, 'read')
      const result = await answer(asked, entered)
      const headers = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }
      return typeof result === 'string' ? htmlReply(200, result, headers) : json(200, result, headers)
    },
  })
  return [
    route('GET', `${HOME}/list`, async ({ request, viewer }, entered) => {
      const asked = askedOf(request)
      const threads = await review.list(entered.reviewer, asked)
      return threadList(threads, listedFor(viewer, entered, asked, clock.now())).text
    }),
    route('GET', `${HOME}/frame`, async ({ request }, { site, reviewer }) => {
      const { page, preview } = askedOf(request)
      const version = preview === undefined ? await versions.liveVersion(site) : await previews.named(site.id, preview)
      const { src, pass } = await reviewFrames.of(site, reviewer, { page, preview })
      return { src, pass, version: version?.number ?? null }
    }),
    route('GET', `${HOME}/changes`, async ({ request }, { reviewer }) => {
      const { page, preview } = askedOf(request)
      const version = Number(request.query.get('since'))
      if (!Number.isSafeInteger(version)) throw errors.invalidRequest('since: send the number of a version.')
      return { passages: await review.changesSince(reviewer, { page, preview, version }) }
    }),
    route('POST', `${HOME}/here`, async (_, { site, reviewer }) => ({
      people: await reviewFrames.here(site, reviewer),
      changed: await review.changed(reviewer),
    })),
    {
      // Asked by edges for who has no pass yet; no part of the documented API.
      method: 'GET',
      path: `${HOME}/pass`,
      async handle(request) {
        const site = await requireDrop(services, paramsOf(`${HOME}/pass`, request).slug)
        const reviewer = await reviewers.require(request, site.id, 'read')
        requireMay(reviewer, 'read')
        return json(200, { pass: (await reviewFrames.of(site, reviewer, { page: '/' })).pass })
      },
    },
  ]
}
