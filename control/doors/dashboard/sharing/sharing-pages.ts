/** Sharing a drop, what others share, and the page behind "ask for access". */
import { z } from 'zod'
import { errors } from '../../../../shared/contracts/errors.ts'
import { parse } from '../../../ground/http/api.ts'
import { seeOther } from '../../../ground/http/reply.ts'
import type { Route } from '../../../ground/http/route.ts'
import { THREAD_MAILS, THREADS_VISIBLE } from '../../../drops/threads/rules.ts'
import { accessUntilSchema, viewersOfText } from '../../../drops/viewers/access.ts'
import { ACCESS_REQUEST_PATH } from '../../../drops/visiting/visit-desk.ts'
import type { AccountRequest } from '../frame/callers.ts'
import { flashOf } from '../frame/flash.ts'
import type { Handlers } from '../frame/handlers.ts'
import type { Page } from '../frame/layout.ts'
import type { DashboardServices } from '../frame/services.ts'
import { accessRequestPage, letInPage, openToAllPage, sharedPage, siteSharingPage } from './sharing-view.ts'

const HOME = '/sites/:id/sharing'
const FORM = { on: HOME, verified: true } as const
const commentSettings = z.object({ threads_visible: z.enum(THREADS_VISIBLE), thread_mails: z.enum(THREAD_MAILS) })

export function sharingRoutes(services: DashboardServices, handlers: Handlers): Route[] {
  return [...siteRoutes(services, handlers), ...listRoutes(services, handlers), ...requestRoutes(services, handlers)]
}

type OfSite = AccountRequest & { readonly params: { readonly id: string } }

function siteRoutes(services: DashboardServices, handlers: Handlers): Route[] {
  const { sites, viewerSharing, visitDesk, clock } = services
  const home = (id: string, done: string): string => `/sites/${id}/sharing?done=${done}`

  async function show({ viewer, actor, params, request }: OfSite, made?: string): Promise<Page> {
    return siteSharingPage(viewer, {
      site: await sites.get(actor, params.id),
      plan: actor.plan,
      viewers: await viewerSharing.viewers(actor, params.id),
      links: await viewerSharing.guestLinks(actor, params.id),
      made,
      now: clock.now(),
      ...flashOf(request),
    })
  }

  return [
    handlers.accountPage(HOME, (asked) => show(asked)),
    handlers.accountForm(`${HOME}/mode`, FORM, async ({ actor, params: { id } }) => {
      await sites.patch(actor, id, { access_mode: 'viewers' })
      return seeOther(home(id, 'private'))
    }),
    handlers.accountPage(`${HOME}/public`, async ({ viewer, actor, params }) =>
      openToAllPage(viewer, await sites.get(actor, params.id)),
    ),
    handlers.accountForm(
      `${HOME}/public`,
      { on: `${HOME}/public`, verified: true },
      async ({ actor, params: { id } }) => {
        await sites.patch(actor, id, { access_mode: 'public' })
        return seeOther(home(id, 'public'))
      },
    ),
    handlers.accountForm(`${HOME}/open`, FORM, async ({ actor, params }) =>
      seeOther(await visitDesk.memberLink(actor, await sites.get(actor, params.id))),
    ),
    handlers.accountForm(`${HOME}/link`, FORM, async (asked) => {
      const { url } = await viewerSharing.addLink(asked.actor, asked.params.id, {})
      return show(asked, url)
    }),
    handlers.accountForm(`${HOME}/review-link`, FORM, async (asked) => {
      const { url } = await viewerSharing.addLink(asked.actor, asked.params.id, { role: 'comment' })
      return show(asked, url)
    }),
    handlers.accountForm(`${HOME}/comments`, FORM, async ({ actor, params: { id }, form }) => {
      await sites.patch(actor, id, parse(commentSettings, Object.fromEntries(form)))
      return seeOther(home(id, 'saved-general'))
    }),
    handlers.accountForm(`${HOME}/rules`, FORM, async ({ actor, params: { id }, form }) => {
      const day = (form.get('access_until') ?? '').trim()
      await sites.patch(actor, id, {
        access_until: day === '' ? null : endOfDay(day),
        access_requests: form.has('access_requests'),
      })
      return seeOther(home(id, 'saved-general'))
    }),
    ...entryRoutes(services, handlers, home),
  ]
}

/** Routes that change the lists. */
function entryRoutes(
  { viewerSharing }: DashboardServices,
  handlers: Handlers,
  home: (id: string, done: string) => string,
): Route[] {
  return [
    handlers.accountForm(`${HOME}/invite`, FORM, async ({ actor, params: { id }, form }) => {
      const named = viewersOfText(form.get('viewers') ?? '')
      if (named.length === 0) throw errors.invalidRequest('viewers: enter an e-mail address.')
      const role = form.has('comment') ? ({ role: 'comment' } as const) : {}
      await viewerSharing.add(actor, id, { named, invite: true, ...role })
      return seeOther(home(id, 'invited'))
    }),
    handlers.accountForm(`${HOME}/remove`, FORM, async ({ actor, params: { id }, form }) => {
      await viewerSharing.remove(actor, id, form.get('id') ?? '')
      return seeOther(home(id, 'removed'))
    }),
    handlers.accountForm(`${HOME}/remind`, FORM, async ({ actor, params: { id }, form }) => {
      await viewerSharing.remind(actor, id, form.get('id') ?? '')
      return seeOther(home(id, 'invited'))
    }),
    handlers.accountForm(`${HOME}/end-with-comments`, FORM, async ({ actor, params: { id }, form }) => {
      await viewerSharing.removeLink(actor, id, form.get('id') ?? '', 'remove')
      return seeOther(home(id, 'removed'))
    }),
    handlers.accountForm(`${HOME}/end`, FORM, async ({ actor, params: { id }, form }) => {
      await viewerSharing.removeLink(actor, id, form.get('id') ?? '')
      return seeOther(home(id, 'removed'))
    }),
  ]
}

function endOfDay(day: string): string | null {
  const end = accessUntilSchema.safeParse(`${day}T23:59:59Z`)
  if (!end.success) throw errors.invalidRequest('access_until: enter a date such as 2026-12-24.')
  return end.data
}

function listRoutes({ sharedWithMe, clock }: DashboardServices, handlers: Handlers): Route[] {
  return [handlers.accountPage('/shared', async ({ actor }) => sharedPage(await sharedWithMe.list(actor), clock.now()))]
}

/** The link in the mail is the proof: the owner need not sign in. Looking at it decides nothing. */
function requestRoutes({ accessRequests }: DashboardServices, handlers: Handlers): Route[] {
  return [
    handlers.page(ACCESS_REQUEST_PATH, async ({ viewer, request }) => {
      const token = request.query.get('token') ?? ''
      return accessRequestPage(viewer, token, await accessRequests.peek(token))
    }),
    handlers.form(ACCESS_REQUEST_PATH, { on: ACCESS_REQUEST_PATH, keeps: ['token'] }, async ({ form, request }) =>
      letInPage(await accessRequests.letIn(form.get('token') ?? '', request.ip)),
    ),
  ]
}
