/** `/account`: profile, sessions, tokens, connected apps, organisation, plan, log, export and delete. */
import { may } from '../../../ground/actor.ts'
import { errors } from '../../../../shared/errors.ts'
import { html, type Html } from '../../../../shared/pages/html.ts'
import { readAuditLog } from '../../../people/audit/audit.ts'
import { seeOther } from '../../../ground/http/reply.ts'
import type { Route } from '../../../ground/http/route.ts'
import { flashOf } from '../frame/flash.ts'
import {
  orShow,
  problemText,
  type AccountFormRequest,
  type AccountRequest,
  type Answer,
  type Handlers,
} from '../frame/handlers.ts'
import type { DashboardServices } from '../frame/services.ts'
import {
  accountPage,
  appsBody,
  dataBody,
  logBody,
  profileBody,
  sessionsBody,
  tokensBody,
  type AccountSection,
  type AppEntry,
} from './account-view.ts'
import { messagePage } from '../parts/message-page.ts'
import { organisationRoutes } from './organisation-pages.ts'
import { planRoutes } from './plan-pages.ts'

export function accountRoutes(services: DashboardServices, handlers: Handlers): Route[] {
  return [
    ...profileRoutes(services, handlers),
    ...sessionRoutes(services, handlers),
    ...tokenRoutes(services, handlers),
    ...appRoutes(services, handlers),
    ...organisationRoutes(services, handlers),
    ...planRoutes(services, handlers),
    ...logRoutes(services, handlers),
  ]
}

function profileRoutes(
  { accounts, organisations, billing, config }: DashboardServices,
  { accountPage: page, accountForm: form, page: goodbye }: Handlers,
): Route[] {
  /** Shows a refusal on the card's own page. */
  const refused =
    (section: AccountSection, body: (asked: AccountRequest) => Html | Promise<Html>) =>
    (asked: AccountFormRequest, act: () => Promise<Answer>): Promise<Answer> =>
      orShow(act, async (problem) =>
        accountPage(section, await body(asked), {
          flash: { tone: 'bad', text: problemText(problem) },
          status: problem.status,
        }),
      )
  const onProfile = refused('', ({ viewer }) => profileBody(viewer))
  const showData = async ({ viewer, actor }: AccountRequest): Promise<Html> => {
    const owned = (await organisations.list(actor)).filter(({ role }) => role === 'owner')
    return dataBody(viewer, {
      ending: await billing.subscriptionsOf(owned.map(({ id }) => id)),
      keptMs: config.personalDataKeptMs,
    })
  }
  const onData = refused('/data', showData)

  return [
    page('/account', ({ request, viewer }) => accountPage('', profileBody(viewer), flashOf(request))),
    form('/account/email', { verified: false }, (asked) =>
      onProfile(asked, async () => {
        await accounts.requestEmailChange(asked.actor, {
          newEmail: asked.form.get('email') ?? '',
          password: asked.form.get('password') ?? '',
        })
        return seeOther('/account?done=mailed')
      }),
    ),
    form('/account/password', { verified: false }, (asked) =>
      onProfile(asked, async () => {
        const endTokensAndApps = asked.form.get('end_all') === 'on'
        const change = {
          currentPassword: asked.form.get('current') ?? '',
          newPassword: asked.form.get('new') ?? '',
          endTokensAndApps,
        }
        const { setCookie } = await accounts.changePassword(
          asked.actor,
          change,
          accounts.circumstancesOf(asked.request),
        )
        return seeOther(`/account?done=${endTokensAndApps ? 'password-all' : 'password'}`, { 'set-cookie': setCookie })
      }),
    ),
    page('/account/data', async (asked) => accountPage('/data', await showData(asked), flashOf(asked.request))),
    form('/account/delete', { verified: false }, (asked) =>
      onData(asked, async () => {
        if (asked.form.get('confirm')?.trim() !== asked.actor.email)
          throw errors.invalidRequest('Type your e-mail address exactly to delete the account.')
        const { setCookie } = await accounts.deleteAccount(asked.actor, { password: asked.form.get('password') ?? '' })
        return seeOther('/goodbye', { 'set-cookie': setCookie })
      }),
    ),
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
    form('/account/sessions/revoke', { verified: false }, async ({ actor, form }) => {
      await accounts.revokeSession(actor, form.get('id') ?? '')
      return seeOther('/account/sessions?done=revoked')
    }),
    form('/account/sessions/revoke-all', { verified: false }, async ({ actor }) => {
      const { setCookie } = await accounts.signOutEverywhere(actor)
      return seeOther('/signin', { 'set-cookie': setCookie })
    }),
  ]
}

function tokenRoutes(
  { tokens, clock }: DashboardServices,
  { accountPage: page, accountForm: form }: Handlers,
): Route[] {
  async function show(
    { request, viewer, actor }: AccountRequest,
    issued?: { name: string; token: string },
  ): Promise<ReturnType<typeof accountPage>> {
    const listed = await tokens.list(actor)
    return accountPage('/tokens', tokensBody(viewer, { tokens: listed, issued, now: clock.now() }), {
      scripts: ['copy'],
      ...(request.method === 'GET' ? flashOf(request) : {}),
    })
  }

  return [
    page('/account/tokens', (asked) => show(asked)),
    form('/account/tokens', { verified: true }, (asked) =>
      orShow(
        async () => {
          const issued = await tokens.create(asked.actor, asked.form.get('name') ?? '')
          // Not redirected: the token is shown in this one answer and kept nowhere.
          return { ...(await show(asked, issued)), status: 201 }
        },
        async (problem) => ({
          ...(await show(asked)),
          flash: { tone: 'bad', text: problemText(problem) },
          status: problem.status,
        }),
      ),
    ),
    form('/account/tokens/revoke', { verified: true }, async ({ actor, form }) => {
      await tokens.revoke(actor, form.get('id') ?? '')
      return seeOther('/account/tokens?done=revoked')
    }),
  ]
}

function appRoutes(
  { oauth, clock, config }: DashboardServices,
  { accountPage: page, accountForm: form }: Handlers,
): Route[] {
  return [
    page('/account/apps', async ({ request, viewer, actor }) => {
      const grants = oauth ? (await oauth.listGrants(actor)).map(appOf) : []
      return accountPage('/apps', appsBody(viewer, grants, { baseUrl: config.baseUrl, now: clock.now() }), {
        scripts: ['copy'],
        ...flashOf(request),
      })
    }),
    form('/account/apps/revoke', { verified: false }, async ({ actor, form }) => {
      if (!oauth) throw errors.notFound('connected app')
      await oauth.revokeGrant(actor, form.get('id') ?? '')
      return seeOther('/account/apps?done=revoked')
    }),
  ]
}

function logRoutes({ sql, clock }: DashboardServices, { accountPage: page }: Handlers): Route[] {
  return [
    page('/account/log', async ({ request, actor }) => {
      if (!may(actor.role, 'read_audit_log'))
        return accountPage('/log', html`<p class="notice">Owners and admins of the organisation can read its log.</p>`)
      const before = Number(request.query.get('before'))
      const entries = await readAuditLog(sql, actor.orgId, {
        limit: 50,
        ...(Number.isInteger(before) && before > 0 ? { before } : {}),
      })
      return accountPage('/log', logBody(entries, clock.now()))
    }),
  ]
}

function appOf(grant: Awaited<ReturnType<NonNullable<DashboardServices['oauth']>['listGrants']>>[number]): AppEntry {
  return {
    id: grant.id,
    name: grant.client_name,
    organisation: grant.organisation,
    scopes: grant.scopes,
    createdAt: grant.created_at,
    lastUsedAt: grant.last_used_at,
  }
}
