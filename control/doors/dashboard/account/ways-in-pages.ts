/** `/account/ways-in`: sessions, tokens, apps and the second factor on one page, each with its end. */
import { safeNext } from '../../../../shared/http/safe-next.ts'
import { seeOther } from '../../../ground/http/reply.ts'
import type { Route } from '../../../ground/http/route.ts'
import type { FactorState } from '../../../people/factors/factors.ts'
import { flashOf } from '../frame/flash.ts'
import type { Handlers } from '../frame/handlers.ts'
import type { DashboardServices } from '../frame/services.ts'
import { nameOf } from '../parts/words.ts'
import { accountPage, appOf } from './account-view.ts'
import {
  enrolBody,
  generatorBody,
  proveBody,
  recoveryBegunBody,
  recoveryCodesBody,
  waysInBody,
  type SignInWays,
} from './ways-in-view.ts'

const HOME = '/account/ways-in'
const TOTP = '/account/totp'
const PROVE = '/account/prove'
/** Where it is said that a code is wrong. */
const CODE = { wrong_code: 'code' }

export function waysInRoutes(services: DashboardServices, handlers: Handlers): Route[] {
  const { accounts, tokens, oauth, sites, factors, passkeys, clock } = services
  const { accountPage: page, accountForm: form } = handlers
  return [
    page(HOME, async ({ request, viewer, actor }) => {
      const state = await factors.stateOf(actor.userId)
      const view = {
        factors: state,
        signIn: signInWays(services, state),
        passkeys: await passkeys.list(actor.userId),
        sessions: await accounts.listSessions(actor),
        tokens: await tokens.list(actor),
        apps: (await oauth.listGrants(actor)).map(appOf),
        drops: (await sites.list(actor)).map((site) => ({ id: site.id, name: nameOf(site) })),
        now: clock.now(),
      }
      return accountPage('/ways-in', waysInBody(viewer, view), { scripts: ['passkeys'], ...flashOf(request) })
    }),
    form(`${HOME}/sessions/end`, { on: HOME, verified: false }, async ({ actor, form: sent }) => {
      await accounts.revokeSession(actor, sent.get('id') ?? '')
      return seeOther(`${HOME}?done=revoked`)
    }),
    form(`${HOME}/passkeys/remove`, { on: HOME, verified: false }, async ({ actor, form: sent }) => {
      await passkeys.remove(actor, sent.get('id') ?? '')
      return seeOther(`${HOME}?done=revoked`)
    }),
    ...generatorRoutes(services, handlers),
    ...proofRoutes(services, handlers),
  ]
}

function signInWays(
  { config, providerSignIn }: Pick<DashboardServices, 'config' | 'providerSignIn'>,
  { isOfProvider }: Pick<FactorState, 'isOfProvider'>,
): SignInWays {
  const hasPasswords = config.passwordSignIn
  return { hasPasswords, provider: isOfProvider || !hasPasswords ? providerSignIn?.name : undefined }
}

function proofRoutes(services: DashboardServices, { accountPage: page, accountForm: form }: Handlers): Route[] {
  const { factors, passkeys } = services
  return [
    page(PROVE, async ({ request, viewer, actor }) => {
      const state = await factors.stateOf(actor.userId)
      const hasPasskeys = (await passkeys.list(actor.userId)).length > 0
      const next = safeNext(request.query.get('next') ?? undefined, HOME)
      const { hasGenerator } = state
      const body = proveBody(viewer, { next, hasGenerator, hasPasskeys, signIn: signInWays(services, state) })
      return accountPage('/ways-in', body, { scripts: ['passkeys'] })
    }),
    form(PROVE, { on: PROVE, keeps: ['next'], verified: false, names: CODE }, async ({ actor, form: sent }) => {
      await factors.prove(actor, sent.get('code') ?? '')
      return seeOther(safeNext(sent.get('next'), HOME))
    }),
    form(`${PROVE}/lost`, { on: PROVE, verified: false }, async ({ actor }) => {
      const { dueAt } = await factors.requestRecovery(actor, 'session')
      const state = await factors.stateOf(actor.userId)
      const { hasGenerator } = state
      return accountPage('/ways-in', recoveryBegunBody(dueAt, { hasGenerator, signIn: signInWays(services, state) }))
    }),
    form(`${HOME}/recovery/stop`, { on: HOME, verified: false }, async ({ actor }) => {
      await factors.stopRecovery(actor)
      return seeOther(`${HOME}?done=factor-kept`)
    }),
  ]
}

function generatorRoutes({ factors }: DashboardServices, { accountPage: page, accountForm: form }: Handlers): Route[] {
  return [
    page(TOTP, async ({ viewer, actor }) => {
      const { hasGenerator } = await factors.stateOf(actor.userId)
      if (hasGenerator) return seeOther(HOME)
      const begun = await factors.begun(actor)
      return accountPage('/ways-in', begun ? generatorBody(viewer, begun) : enrolBody(viewer))
    }),
    // Not redirected: the secret is shown in this one answer.
    form(`${TOTP}/begin`, { on: TOTP, verified: true }, async ({ viewer, actor }) =>
      accountPage('/ways-in', generatorBody(viewer, await factors.begin(actor))),
    ),
    form(TOTP, { on: TOTP, verified: true, names: CODE }, async ({ actor, form: sent }) => {
      const codes = await factors.confirm(actor, sent.get('code') ?? '')
      return { ...accountPage('/ways-in', recoveryCodesBody(codes)), status: 201 }
    }),
    form(`${TOTP}/codes`, { on: HOME, verified: false }, async ({ actor }) => ({
      ...accountPage('/ways-in', recoveryCodesBody(await factors.renewRecoveryCodes(actor))),
      status: 201,
    })),
    form(`${TOTP}/remove`, { on: HOME, verified: false }, async ({ actor }) => {
      await factors.remove(actor)
      return seeOther(`${HOME}?done=factor-off`)
    }),
  ]
}
