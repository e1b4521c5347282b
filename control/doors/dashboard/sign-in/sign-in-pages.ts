/** Sign-up, sign-in, sign-out, verification, password reset, change of address, invitations. */
import { ApiError, errors } from '../../../../shared/contracts/errors.ts'
import { RECOVERY_PATH } from '../../../people/factors/factors.ts'
import { ACCOUNT_PATHS } from '../../../ground/mail/links.ts'
import type { Actor } from '../../../ground/actor.ts'
import { isCountry, resolveCountry } from '../../../people/organisations/countries.ts'
import { showsSignUp } from '../../../ground/terms/sign-up.ts'
import { html } from '../../../../shared/pages/html.ts'
import { seeOther } from '../../../ground/http/reply.ts'
import type { Reply, Request, Route } from '../../../ground/http/route.ts'
import { safeNext } from '../../../../shared/http/safe-next.ts'
import { orShow, type Handlers } from '../frame/handlers.ts'
import type { Page } from '../frame/layout.ts'
import type { DashboardServices } from '../frame/services.ts'
import { messagePage } from '../parts/message-page.ts'
import * as views from './sign-in-view.ts'
import { carriedIn } from './carried-draft.ts'
import { providerRoutes } from './provider-pages.ts'
import { showVerifyFirst, waitingDecision } from './waiting-decision.ts'

export function authRoutes(services: DashboardServices, handlers: Handlers): Route[] {
  return [
    ...signingRoutes(services, handlers),
    ...codeRoutes(services, handlers),
    ...providerRoutes(services, handlers),
    ...linkRoutes(services, handlers),
    ...invitationRoutes(services, handlers),
  ]
}

function signingRoutes(services: DashboardServices, handlers: Handlers): Route[] {
  const { accounts, anonymous, browserCookie, newcomers, organisations, config: ways } = services
  const { page, form } = handlers

  /** Undefined when the link does not make an account here. */
  async function invitationOf(token: string): Promise<{ readonly email?: string | undefined } | undefined> {
    if (token === '') return undefined
    const ofOrganisation = ways.signUp.kind === 'invited' ? await organisations.peekInvitation(token) : undefined
    return (await newcomers.peek(token)) ?? ofOrganisation
  }

  async function waitingDrops(request: Request): Promise<number> {
    const id = browserCookie.read(request)
    return id === undefined ? 0 : (await anonymous.list(id)).filter((drop) => drop.claimable).length
  }

  function countryOf(request: Request): views.CountryChoice {
    const { geoCountry, acceptLanguage } = accounts.circumstancesOf(request)
    return {
      value: resolveCountry({ geo: geoCountry, form: undefined, acceptLanguage }),
      isGiven: isCountry(geoCountry),
    }
  }

  return [
    page('/signup', async ({ request, viewer, actor }) => {
      const next = request.query.get('next') ?? undefined
      if (actor) return seeOther(safeNext(next, '/sites'))
      const token = request.query.get('token') ?? ''
      const invitation = await invitationOf(token)
      if (!invitation && !showsSignUp(ways.signUp)) return views.signUpClosedPage(ways, next)
      return views.signUpPage(viewer, {
        next,
        email: invitation?.email ?? request.query.get('email') ?? '',
        waiting: await waitingDrops(request),
        country: countryOf(request),
        token: invitation ? token : undefined,
        ways,
      })
    }),
    form('/signup', { on: '/signup', keeps: ['next', 'email', 'token'] }, async ({ request, form: sent }) => {
      const input = {
        email: sent.get('email') ?? '',
        password: sent.get('password') ?? '',
        country: sent.get('country') ?? '',
        token: sent.get('token') ?? undefined,
      }
      const signedIn = await accounts.signUp(input, accounts.circumstancesOf(request))
      const hidden = signedIn.claimed > 0 ? '/sites?done=claimed-hidden' : '/sites?done=welcome'
      const home = signedIn.emailVerified ? '/sites?done=account-made' : hidden
      return seeOther(safeNext(sent.get('next'), home), { 'set-cookie': signedIn.setCookie })
    }),
    page('/signin', ({ request, viewer, actor }) => {
      const next = request.query.get('next') ?? undefined
      return actor
        ? seeOther(safeNext(next, '/sites'))
        : views.signInPage(viewer, { next, email: request.query.get('email') ?? '', ways })
    }),
    form(
      '/signin',
      { on: '/signin', keeps: ['next', 'email'], carriesText: true },
      async ({ request, viewer, form: sent }) => {
        const proof = sent.get('proof') ?? undefined
        const code = sent.get('code') ?? undefined
        const input = { email: sent.get('email') ?? '', password: sent.get('password') ?? '', proof, code }
        const signedIn = await accounts.signIn(input, accounts.circumstancesOf(request)).catch(pendingIn)
        if ('pending' in signedIn)
          return views.secondFactorPage(viewer, {
            pending: signedIn.pending,
            next: sent.get('next') ?? undefined,
            sent,
          })
        const resumed = await resumeCarried(handlers, request, signedIn.setCookie, sent)
        if (resumed) return resumed
        const home = signedIn.claimed > 0 ? '/sites?done=claimed' : '/sites'
        return seeOther(safeNext(sent.get('next'), home), { 'set-cookie': signedIn.setCookie })
      },
    ),
    // Signing out is a form like any other: a link to it could be put anywhere.
    page('/signout', ({ viewer, actor }) =>
      actor
        ? views.confirmLinkPage(viewer, {
            title: 'Sign out',
            lead: 'See you soon.',
            action: '/signout',
            token: '',
            button: 'Sign out',
          })
        : seeOther('/'),
    ),
    form('/signout', { on: '/signout' }, async ({ request, form: sent }) => {
      const { setCookie } = await accounts.signOut(accounts.circumstancesOf(request).sessionSecret)
      return seeOther(safeNext(sent.get('next'), '/'), { 'set-cookie': setCookie })
    }),
  ]
}

/** The second step, where a code is asked for too. */
function codeRoutes({ accounts }: DashboardServices, handlers: Handlers): Route[] {
  const { page, form } = handlers
  return [
    page('/signin/code', ({ request, viewer }) => {
      const pending = request.query.get('pending')
      if (!pending) return seeOther('/signin')
      const next = request.query.get('next') ?? undefined
      return views.secondFactorPage(viewer, { pending, next, sent: viewer.draft?.values })
    }),
    form(
      '/signin/code',
      { on: '/signin/code', keeps: ['pending', 'next'], names: { wrong_code: 'code' }, carriesText: true },
      async ({ request, form: sent }) => {
        const input = { pending: sent.get('pending') ?? '', code: sent.get('code') ?? '' }
        const signedIn = await accounts.continueSignIn(input, accounts.circumstancesOf(request))
        const resumed = await resumeCarried(handlers, request, signedIn.setCookie, sent)
        if (resumed) return resumed
        return seeOther(safeNext(sent.get('next'), '/sites'), { 'set-cookie': signedIn.setCookie })
      },
    ),
    form('/signin/recover', { on: '/signin/code', keeps: ['pending'] }, async ({ form: sent }) => {
      const { dueAt } = await accounts.requestRecovery(sent.get('pending') ?? '')
      return messagePage({
        title: 'In 24 hours',
        lead: html`From ${dueAt.toUTCString()} on, sign in with your password alone. We have sent a mail that says so,
          and can stop it.`,
      })
    }),
  ]
}

/** What the person was about to send before; undefined where nothing came with the sign-in. */
async function resumeCarried(
  handlers: Handlers,
  request: Request,
  setCookie: string,
  sent: URLSearchParams,
): Promise<Reply | undefined> {
  const waiting = carriedIn(sent)
  return waiting && handlers.resume(request, setCookie, waiting)
}

/** What stands for a right password, where a code is asked for too. */
function pendingIn(error: unknown): { readonly pending: string } {
  const pending = error instanceof ApiError && error.code === 'second_factor_required' && error.fields['pending']
  if (typeof pending !== 'string') throw error
  return { pending }
}

function linkRoutes({ accounts, factors, config }: DashboardServices, handlers: Handlers): Route[] {
  const { page, form, accountForm, accountPage } = handlers
  const tokenOf = (request: Request): string => request.query.get('token') ?? ''
  return [
    page(ACCOUNT_PATHS.verify, async ({ request, viewer, actor }) => {
      const token = tokenOf(request)
      const link = await accounts.peekVerification(token)
      if (!link) return deadVerification(400, actor)
      if (link.isVerified) return verifiedPage(request, link.email, actor)
      return views.confirmLinkPage(viewer, {
        title: 'Confirm your address',
        lead: html`Is <strong>${link.email}</strong> yours? Then your drops become visible.`,
        action: ACCOUNT_PATHS.verify,
        token,
        button: 'Confirm my address',
      })
    }),
    form(ACCOUNT_PATHS.verify, { on: ACCOUNT_PATHS.verify, keeps: ['token'] }, ({ request, form, actor }) =>
      orShow(
        async () => {
          const { email } = await accounts.verifyEmail(form.get('token') ?? '')
          // A person who came unverified is so no longer, which the frame around the message must know.
          const { viewer } = await handlers.read(request)
          return handlers.reply(viewer, verifiedPage(request, email, actor))
        },
        (problem) => deadVerification(problem.status, actor),
      ),
    ),
    accountForm('/verify/send', { on: '/verify/send', verified: false }, async ({ actor, form: sent }) => {
      await accounts.resendVerification(actor)
      return seeOther(safeNext(sent.get('next'), '/sites?done=mailed'))
    }),
    // From the page that visitors meet meanwhile: the owner may be signed in here, or have to.
    accountPage('/verify/send', ({ request, viewer, actor }) =>
      actor.emailVerified ? seeOther('/sites') : showVerifyFirst(handlers, { request, viewer, actor }, actor.email),
    ),
    page(ACCOUNT_PATHS.reset, async ({ request, viewer }) => {
      if (!config.passwordSignIn) throw errors.passwordSignInOff()
      const token = tokenOf(request)
      if (token === '') return views.resetRequestPage(viewer)
      const isValid = await accounts.isLinkValid('reset', token)
      return isValid
        ? views.resetPasswordPage(viewer, { token, asksForCode: await accounts.asksForCode('reset', token) })
        : deadLink(400, html`<a class="button primary" href="/reset">Ask for a new one</a>`)
    }),
    form(ACCOUNT_PATHS.reset, { on: ACCOUNT_PATHS.reset }, async ({ request, form: sent }) => {
      await accounts.requestReset(sent.get('email') ?? '', accounts.circumstancesOf(request))
      return messagePage({
        title: 'Look into your mailbox',
        lead: 'If there is an account with this address, a link to choose a new password is on its way.',
      })
    }),
    form(
      '/reset/password',
      { on: ACCOUNT_PATHS.reset, keeps: ['token'], names: { wrong_code: 'code' } },
      async ({ request, form: sent }) => {
        const signedIn = await accounts.resetPassword(
          { token: sent.get('token') ?? '', password: sent.get('password') ?? '', code: sent.get('code') ?? undefined },
          accounts.circumstancesOf(request),
        )
        return seeOther('/sites?done=reset', { 'set-cookie': signedIn.setCookie })
      },
    ),
    page(RECOVERY_PATH, ({ request, viewer }) =>
      views.confirmLinkPage(viewer, {
        title: 'Stop it',
        lead: 'Nobody gets in without your second factor.',
        action: RECOVERY_PATH,
        token: tokenOf(request),
        button: 'Stop it',
      }),
    ),
    form(RECOVERY_PATH, { on: RECOVERY_PATH, keeps: ['token'] }, ({ form: sent }) =>
      orShow(
        async () => {
          await factors.cancelRecovery(sent.get('token') ?? '')
          return messagePage({
            title: 'Stopped',
            lead: 'Your second factor stays. Someone can sign in to your account: sign out everywhere, and choose a new password if you have one.',
            actions: html`<a class="button primary" href="/reset">Choose a new password</a>`,
          })
        },
        (problem) => deadLink(problem.status),
      ),
    ),
    page(ACCOUNT_PATHS.emailChange, async ({ request, viewer }) => {
      const token = tokenOf(request)
      if (!(await accounts.isLinkValid('email_change', token))) return deadLink(400)
      return views.confirmLinkPage(viewer, {
        title: 'Use this address',
        lead: 'Your account uses this e-mail address from now on.',
        action: ACCOUNT_PATHS.emailChange,
        token,
        button: 'Use it',
      })
    }),
    form(ACCOUNT_PATHS.emailChange, { on: ACCOUNT_PATHS.emailChange, keeps: ['token'] }, ({ form }) =>
      orShow(
        async () => {
          const { email } = await accounts.confirmEmailChange(form.get('token') ?? '')
          return messagePage({
            title: 'Your address is changed',
            lead: html`Sign in with <strong>${email}</strong> from now on.`,
            actions: html`<a class="button primary" href="/account">To my account</a>`,
          })
        },
        (problem) => deadLink(problem.status),
      ),
    ),
  ]
}

function invitationRoutes({ organisations, config: ways }: DashboardServices, handlers: Handlers): Route[] {
  return [
    handlers.page(ACCOUNT_PATHS.invitation, async ({ request, viewer, actor }) => {
      const token = request.query.get('token') ?? ''
      const invitation = await organisations.peekInvitation(token)
      if (!invitation) return deadLink(404)
      const here = `${ACCOUNT_PATHS.invitation}?token=${token}`
      if (!actor) return views.invitationPage(invitation, { here, token, ways })
      if (actor.email !== invitation.email)
        return views.wrongAccountPage(viewer, { invitation, email: actor.email, here })
      if (!actor.emailVerified) return showVerifyFirst(handlers, { request, viewer, actor }, actor.email)
      return views.confirmLinkPage(viewer, {
        title: `Join ${invitation.organisation}`,
        lead: `You are invited as ${invitation.role}.`,
        action: ACCOUNT_PATHS.invitation,
        token,
        button: 'Accept the invitation',
      })
    }),
    handlers.accountForm(
      ACCOUNT_PATHS.invitation,
      { on: ACCOUNT_PATHS.invitation, keeps: ['token'], verified: true },
      async ({ actor, form }) => {
        const organisation = await organisations.accept(actor, form.get('token') ?? '')
        await organisations.switchTo(actor, organisation.id)
        return seeOther('/sites?done=joined')
      },
    ),
  ]
}

/** What the person was about to decide comes first. */
function verifiedPage(request: Request, email: string, actor: Actor | undefined): Page {
  const waiting = waitingDecision(request)
  return messagePage({
    title: 'Your address is verified',
    lead: html`Thank you. Drops of <strong>${email}</strong> are visible now.`,
    actions:
      waiting === undefined
        ? html`<a class="button primary" href="${actor ? '/sites' : '/signin'}">${actor ? 'To my drops' : 'Sign in'}</a>`
        : html`<a class="button primary" href="${waiting}">Go on with what you were doing</a>`,
  })
}

function deadVerification(status: number, actor: Actor | undefined): Page {
  return deadLink(status, actor ? html`<a class="button" href="/sites">Ask for a new one there</a>` : undefined)
}

function deadLink(status: number, actions?: Page['body']): Page {
  return messagePage({
    title: 'This link does not work any more',
    lead: 'It was used already, or it is too old.',
    status,
    ...(actions === undefined ? {} : { actions }),
  })
}
