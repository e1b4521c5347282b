/** `/account`: profile, sessions, tokens, connected apps, organisation, plan, log, export and delete. */
import { may, requireProved, SCOPES, type Actor } from '../../../ground/actor.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { html, type Html } from '../../../../shared/pages/html.ts'
import { DAY_MS, SECOND_MS } from '../../../../shared/running/clock.ts'
import { MAX_TOKEN_LIFETIME_SECONDS, type TokenWish } from '../../../people/access/tokens.ts'
import { readAuditLog } from '../../../people/audit/audit.ts'
import { seeOther } from '../../../ground/http/reply.ts'
import type { Route } from '../../../ground/http/route.ts'
import { flashOf } from '../frame/flash.ts'
import type { AccountRequest } from '../frame/callers.ts'
import type { Handlers } from '../frame/handlers.ts'
import type { DashboardServices } from '../frame/services.ts'
import {
  accountPage,
  appOf,
  appsBody,
  dataBody,
  logBody,
  profileBody,
  revokeAppBody,
  sessionsBody,
  type AppEntry,
} from './account-view.ts'
import { revokeTokenBody, tokensBody } from './tokens-view.ts'
import { messagePage } from '../parts/message-page.ts'
import { nameOf } from '../parts/words.ts'
import { organisationRoutes } from './organisation-pages.ts'
import { planRoutes } from './plan-pages.ts'
import { waysInRoutes } from './ways-in-pages.ts'
import { webhookPageRoutes } from './webhook-pages.ts'

const DAY_SECONDS = DAY_MS / SECOND_MS

/** These ask first, on a page of their own. */
const REVOKE_TOKEN = { on: '/account/tokens/revoke', keeps: ['id'], verified: true } as const
const REVOKE_APP = { on: '/account/apps/revoke', keeps: ['id'], verified: false } as const

export function accountRoutes(services: DashboardServices, handlers: Handlers): Route[] {
  return [
    ...profileRoutes(services, handlers),
    ...waysInRoutes(services, handlers),
    ...sessionRoutes(services, handlers),
    ...tokenRoutes(services, handlers),
    ...appRoutes(services, handlers),
    ...webhookPageRoutes(services, handlers),
    ...organisationRoutes(services, handlers),
    ...planRoutes(services, handlers),
    ...logRoutes(services, handlers),
  ]
}

function profileRoutes(
  { accounts, organisations, billing, config, providerSignIn }: DashboardServices,
  { accountPage: page, accountForm: form, page: goodbye }: Handlers,
): Route[] {
  /** Who has no password here shows the provider again who they are. */
  const provingProvider = config.passwordSignIn ? undefined : providerSignIn
  const showData = async ({ viewer, actor }: AccountRequest): Promise<Html> => {
    const owned = (await organisations.list(actor)).filter(({ role }) => role === 'owner')
    return dataBody(viewer, {
      ending: await billing.subscriptionsOf(owned.map(({ id }) => id)),
      keptMs: config.personalDataKeptMs,
      provider: provingProvider?.name,
    })
  }

  return [
    page('/account', ({ request, viewer }) => accountPage('', profileBody(viewer), flashOf(request))),
    form('/account/email', { on: '/account', verified: false }, async ({ actor, form: sent }) => {
      await accounts.requestEmailChange(actor, {
        newEmail: sent.get('email') ?? '',
        password: sent.get('password') ?? '',
      })
      return seeOther('/account?done=mailed')
    }),
    form(
      '/account/password',
      { on: '/account', verified: false, names: { password: 'new', wrong_credentials: 'current' } },
      async ({ request, actor, form: sent }) => {
        const endTokensAndApps = sent.get('end_all') === 'on'
        const change = {
          currentPassword: sent.get('current') ?? '',
          newPassword: sent.get('new') ?? '',
          endTokensAndApps,
        }
        const { setCookie } = await accounts.changePassword(actor, change, accounts.circumstancesOf(request))
        return seeOther(`/account?done=${endTokensAndApps ? 'password-all' : 'password'}`, { 'set-cookie': setCookie })
      },
    ),
    page('/account/data', async (asked) => accountPage('/data', await showData(asked), flashOf(asked.request))),
    form('/account/delete', { on: '/account/data', verified: false }, async ({ actor, form: sent }) => {
      if (sent.get('confirm')?.trim() !== actor.email)
        throw errors.invalidRequest('confirm: type your e-mail address exactly to delete the account.')
      if (provingProvider) {
        requireProved(actor)
        const { location, setCookie } = await provingProvider.begin({ kind: 'closing', userId: actor.userId })
        return seeOther(location, { 'set-cookie': setCookie })
      }
      const { setCookie } = await accounts.deleteAccount(actor, { password: sent.get('password') ?? '' })
      return seeOther('/goodbye', { 'set-cookie': setCookie })
    }),
    goodbye('/goodbye', () =>
      messagePage({
        title: 'Your account is deleted',
        lead: 'Everything it published is gone. Thank you for having been here.',
      }),
    ),
  ]
}

function sessionRoutes(
  { accounts, clock }: DashboardServices,
  { accountPage: page, accountForm: form }: Handlers,
): Route[] {
  return [
    page('/account/sessions', async ({ request, viewer, actor }) =>
      accountPage('/sessions', sessionsBody(viewer, await accounts.listSessions(actor), clock.now()), flashOf(request)),
    ),
    form('/account/sessions/revoke', { on: '/account/sessions', verified: false }, async ({ actor, form }) => {
      await accounts.revokeSession(actor, form.get('id') ?? '')
      return seeOther('/account/sessions?done=revoked')
    }),
    form('/account/sessions/revoke-all', { on: '/account/sessions', verified: false }, async ({ actor }) => {
      const { setCookie } = await accounts.signOutEverywhere(actor)
      return seeOther('/signin', { 'set-cookie': setCookie })
    }),
  ]
}

/** Fields that the page's own form always sends; a form without them asks for what the API gives without them. */
function wishOf(form: URLSearchParams): TokenWish {
  const scope = SCOPES.find((candidate) => candidate === form.get('scope'))
  if (form.has('scope') && scope === undefined) throw errors.invalidRequest('scope: choose what the token may do.')
  const days = form.get('days') ?? ''
  if (!/^\d{0,4}$/.test(days) || Number(days) * DAY_SECONDS > MAX_TOKEN_LIFETIME_SECONDS || /^0+$/.test(days))
    throw errors.invalidRequest('days: choose when the token ends.')
  const site = form.get('site') ?? ''
  return {
    name: form.get('name') ?? '',
    scopes: scope === undefined ? undefined : [scope],
    sites: site === '' ? undefined : [site],
    expiresInSeconds: days === '' ? undefined : Number(days) * DAY_SECONDS,
  }
}

function tokenRoutes(
  { tokens, sites, clock }: DashboardServices,
  { accountPage: page, accountForm: form }: Handlers,
): Route[] {
  async function show(
    { request, viewer, actor }: AccountRequest,
    issued?: { name: string; token: string },
  ): Promise<ReturnType<typeof accountPage>> {
    const listed = await tokens.list(actor)
    const drops = (await sites.list(actor)).map((site) => ({ id: site.id, name: nameOf(site) }))
    return accountPage('/tokens', tokensBody(viewer, { tokens: listed, issued, drops, now: clock.now() }), {
      scripts: ['copy'],
      ...(request.method === 'GET' ? flashOf(request) : {}),
    })
  }

  return [
    page('/account/tokens', (asked) => show(asked)),
    // Not redirected: the token is shown in this one answer and kept nowhere.
    form('/account/tokens', { on: '/account/tokens', verified: true }, async (asked) => ({
      ...(await show(asked, await tokens.create(asked.actor, wishOf(asked.form)))),
      status: 201,
    })),
    page(REVOKE_TOKEN.on, async ({ request, viewer, actor }) => {
      const token = (await tokens.list(actor)).find(({ id }) => id === request.query.get('id'))
      if (!token) return seeOther('/account/tokens')
      return accountPage('/tokens', revokeTokenBody(viewer, token, clock.now()))
    }),
    form(REVOKE_TOKEN.on, REVOKE_TOKEN, async ({ actor, form }) => {
      await tokens.revoke(actor, form.get('id') ?? '')
      return seeOther('/account/tokens?done=revoked')
    }),
  ]
}

function appRoutes(
  { oauth, clock, config }: DashboardServices,
  { accountPage: page, accountForm: form }: Handlers,
): Route[] {
  const listApps = async (actor: Actor): Promise<AppEntry[]> => (await oauth.listGrants(actor)).map(appOf)

  return [
    page('/account/apps', async ({ request, actor }) => {
      return accountPage('/apps', appsBody(await listApps(actor), { baseUrl: config.baseUrl, now: clock.now() }), {
        scripts: ['copy'],
        ...flashOf(request),
      })
    }),
    page(REVOKE_APP.on, async ({ request, viewer, actor }) => {
      const app = (await listApps(actor)).find(({ id }) => id === request.query.get('id'))
      return app ? accountPage('/apps', revokeAppBody(viewer, app)) : seeOther('/account/apps')
    }),
    form(REVOKE_APP.on, REVOKE_APP, async ({ actor, form }) => {
      await oauth.revokeGrant(actor, form.get('id') ?? '')
      return seeOther('/account/apps?done=revoked')
    }),
  ]
}

function logRoutes({ sql, sites, clock }: DashboardServices, { accountPage: page }: Handlers): Route[] {
  return [
    page('/account/log', async ({ request, actor }) => {
      if (!may(actor.role, 'read_audit_log'))
        return accountPage('/log', html`<p class="notice">Owners and admins of the organisation can read its log.</p>`)
      const before = Number(request.query.get('before'))
      const entries = await readAuditLog(sql, actor.orgId, {
        limit: 50,
        ...(Number.isInteger(before) && before > 0 ? { before } : {}),
      })
      const drops = new Map((await sites.list(actor)).map((site) => [site.id, nameOf(site)]))
      return accountPage('/log', logBody(entries, drops, clock.now()))
    }),
  ]
}
