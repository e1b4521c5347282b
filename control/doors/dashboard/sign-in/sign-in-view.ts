/** Sign-up, sign-in, password reset, verification, claiming. Plain forms: no script is needed for any of them. */
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import { safeNext } from '../../../../shared/http/safe-next.ts'
import { countryNames } from '../../../people/organisations/countries.ts'
import { MIN_PASSWORD_CHARS } from '../../../people/accounts/rules.ts'
import { showsSignUp, type SignUpPolicy } from '../../../ground/terms/sign-up.ts'
import type { ProviderSettings } from '../../../ground/terms/provider.ts'
import { PROVIDER_PATHS } from '../../../people/provider/provider-sign-in.ts'
import { plans, sellsPlans } from '../../../ground/terms/plans.ts'
import { closedInWords } from '../../../people/newcomers/rules.ts'
import type { Draft, Work } from '../frame/draft.ts'
import { TEXT_FIELD } from '../frame/typed-fields.ts'
import { csrfField, nextQuery, type Page, type Viewer } from '../frame/layout.ts'
import { formAt, type PageForm } from '../parts/form-fields.ts'
import { messagePage } from '../parts/message-page.ts'
import { carriedOn, carry } from './carried-draft.ts'
import { countInWords, shortAddress } from '../parts/words.ts'

/** Soon enough for a person who comes back from the mail, and nothing for us. */
const VERIFY_LOOK_SECONDS = 4

/** How people come in here. */
export interface Doors {
  readonly signUp: SignUpPolicy
  readonly passwordSignIn: boolean
  readonly provider: Pick<ProviderSettings, 'name'> | undefined
}

/** What goes along to the provider and back. */
interface WayOn {
  readonly next?: string | undefined
  readonly token?: string | undefined
  /** This page holds what someone has typed, so it stays open. */
  readonly isBeside?: boolean
}

/** A page to come back to, whose script has kept what was chosen and typed there. */
const KEPT_IN_BROWSER = /[?&]kept\b/

const inAnotherTab = (isSo: boolean): Content => isSo && html` target="_blank"`

/** The way in by the operator's provider; nothing where there is none. */
function providerButton({ provider, passwordSignIn }: Doors, { next, token, isBeside = false }: WayOn): Content {
  if (!provider) return undefined
  const query = new URLSearchParams({
    ...(next === undefined ? {} : { next }),
    ...(token === undefined ? {} : { token }),
  })
  return html`
    <p class="cluster">
      <a class="button${!passwordSignIn && ' primary'}" href="${PROVIDER_PATHS.begin}?${query.toString()}"
          ${inAnotherTab(isBeside)}>Continue with ${provider.name}</a>
    </p>
    ${passwordSignIn && html`<p class="or">or</p>`}
  `
}

/** Where passwords are switched off, there is one button and nothing to fill in. */
function providerOnlyPage(title: string, lead: Content, ways: Doors, to: WayOn & { readonly above?: Content }): Page {
  return {
    title,
    next: to.next,
    body: html`
      <div class="narrow section">
        <div class="stack">
          <h1>${title}</h1>
          <p class="soft">${lead}</p>
        </div>
        ${to.above}
        ${providerButton(ways, to)}
      </div>
    `,
  }
}

export interface AuthForm {
  /** Where to go afterwards: a path of ours. */
  readonly next?: string | undefined
  /** Known from where the person came, such as an invitation. */
  readonly email: string
  /** How many anonymous drops of this browser wait to be claimed. */
  readonly waiting?: number
}

function authPage(
  form: PageForm,
  title: string,
  view: {
    lead?: Content
    /** Stands before the form. */
    above?: Content
    fields: Content
    button: string
    below?: Content
    next?: string | undefined
    scripts?: readonly string[] | undefined
    /** Its answer opens in another tab. */
    isBeside?: boolean
  },
): Page {
  return {
    title,
    ...(view.scripts ? { scripts: view.scripts } : {}),
    next: view.next,
    body: html`
      <div class="narrow section">
        <div class="stack">
          <h1>${title}</h1>
          ${view.lead !== undefined && html`<p class="soft">${view.lead}</p>`}
        </div>
        ${view.above}
        <form class="form" method="post" action="${form.action}"${inAnotherTab(view.isBeside ?? false)}>
          ${form.start}
          ${view.fields}
          <button class="button primary">${view.button}</button>
        </form>
        ${view.below !== undefined && html`<div class="soft">${view.below}</div>`}
      </div>
    `,
  }
}

const nextField = (next: string | undefined): Content =>
  next !== undefined && html`<input type="hidden" name="next" value="${next}">`

export interface CountryChoice {
  readonly value: string
  /** Known from where the visitor is: shown, not asked for. */
  readonly isGiven: boolean
}

/** For a stranger whom nobody has let in. */
export function signUpClosedPage({ signUp }: Doors, next: string | undefined): Page {
  return {
    ...messagePage({
      title: signUp.kind === 'invited' ? 'By invitation' : 'Sign-up is closed',
      lead: closedInWords(signUp),
      actions: html`<a class="button primary" href="/signin${nextQuery(next)}">Sign in</a>`,
      status: 403,
    }),
    next,
  }
}

/** What stands above the form: what is promised, or whom it is for. */
function signUpLead({ signUp }: Doors, { token }: { token: string | undefined }): Content {
  if (token !== undefined) return 'You are invited. Choose a password, and you are in.'
  if (signUp.kind === 'domains') return closedInWords(signUp)
  return sellsPlans() && `Free for ${countInWords(plans.free.activeDrops, 'drop')}. No card, no trial that runs out.`
}

interface SignUpForm extends AuthForm {
  readonly country: CountryChoice
  readonly ways: Doors
  /** The secret of an invitation that works. */
  readonly token: string | undefined
}

export function signUpPage(viewer: Viewer, view: SignUpForm): Page {
  if (!view.ways.passwordSignIn)
    return providerOnlyPage('Create your account', 'Your organisation says who you are.', view.ways, view)
  const form = formAt(viewer, '/signup', view.token === undefined ? {} : { token: view.token })
  return authPage(form, 'Create your account', {
    above: providerButton(view.ways, view),
    next: view.next,
    lead: view.waiting
      ? html`${countInWords(view.waiting, 'drop')} of this browser will be yours, at the same address.
        <strong>${view.waiting === 1 ? 'It is' : 'They are'} hidden from visitors when you sign up</strong>,
        until you open the link in the mail that we send you; ${view.waiting === 1 ? 'it is' : 'they are'}
        back within a second.`
      : signUpLead(view.ways, view),
    fields: [
      nextField(view.next),
      form.text({
        name: 'email',
        label: 'E-mail',
        type: 'email',
        value: view.email,
        required: true,
        autocomplete: 'email',
      }),
      form.text({
        name: 'password',
        label: 'Password',
        type: 'password',
        required: true,
        minlength: MIN_PASSWORD_CHARS,
        autocomplete: 'new-password',
        hint: `At least ${MIN_PASSWORD_CHARS} characters.`,
      }),
      form.select({
        name: 'country',
        label: 'Country',
        value: view.country.value,
        options: countryNames(),
        autocomplete: 'country',
        disabled: view.country.isGiven,
        hint: view.country.isGiven
          ? `From your connection.${sellsPlans() ? ' It sets the currency of paid plans.' : ''}`
          : `${sellsPlans() ? 'Sets the currency of paid plans. ' : ''}It stays as it is afterwards.`,
      }),
    ],
    button: 'Sign up',
    below: html`Already here? <a href="/signin${nextQuery(view.next)}">Sign in</a>`,
  })
}

/** Without JavaScript there is still a way in: the mailbox. */
const workFields = (work: Work): Content => html`<input type="hidden" name="proof" value="">
  <p class="notice" data-challenge="${work.challenge}" data-bits="${work.bits}" role="status">
    Your browser calculates for a moment. Type your password meanwhile.
  </p>
  <noscript>
    <p class="notice warn">
      The calculation needs JavaScript. Without it, <a href="/reset">choose a new password by mail</a>, which
      always works.
    </p>
  </noscript>`

/** What cannot travel with the sign-in form waits here until its writer has signed in beside it. */
function leftBehind(viewer: Viewer, draft: Draft): Html {
  draft.isShown = true
  const text = draft.values.get(TEXT_FIELD)
  const others = [...draft.values].filter(([name]) => name !== TEXT_FIELD)
  return html`
    <div class="notice warn stack" role="alert">
      <p>
        Your session has ended. What you entered stays in this tab: signing in opens another one. Come back
        afterwards and send it from here.
      </p>
      <form class="stack" method="post" action="${draft.action}" data-left
          ${text !== null && html`enctype="multipart/form-data"`} aria-label="What you entered">
        ${csrfField(viewer)}
        ${others.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
        ${
          text !== null &&
          html`
            <div class="field">
              <label for="left-text">What you entered</label>
              <textarea class="input" id="left-text" name="${TEXT_FIELD}" rows="6" spellcheck="false">
${text}</textarea>
            </div>
          `
        }
        <div><button class="button">Send it, signed in</button></div>
      </form>
    </div>
  `
}

export function signInPage(viewer: Viewer, { next, email, ways }: AuthForm & { readonly ways: Doors }): Page {
  const { draft } = viewer
  const action = '/signin'
  const { fields: carried, left } = carry(action, draft, { leavesPage: ways.provider !== undefined })
  const waits = left && leftBehind(viewer, left)
  const isBeside = left !== undefined
  if (!ways.passwordSignIn)
    return providerOnlyPage('Sign in', 'Your organisation says who you are.', ways, { next, isBeside, above: waits })
  const form = formAt(viewer, action, carried)
  const work = form.isRefused ? draft?.work : undefined
  // What someone has typed is in this page, or waits where it leads: links that lead elsewhere open beside it.
  const aside = inAnotherTab(isBeside || Object.keys(carried).length > 0 || KEPT_IN_BROWSER.test(next ?? ''))
  return authPage(form, 'Sign in', {
    above: [waits, providerButton(ways, { next, isBeside })],
    isBeside,
    scripts: work ? ['answer-challenge', 'passkeys'] : ['passkeys'],
    next,
    fields: [
      nextField(next),
      form.text({
        name: 'email',
        label: 'E-mail',
        type: 'email',
        value: email,
        required: true,
        autocomplete: 'username',
      }),
      form.text({
        name: 'password',
        label: 'Password',
        type: 'password',
        required: true,
        autocomplete: 'current-password',
      }),
      work && workFields(work),
    ],
    button: 'Sign in',
    below: html`<form class="form" data-passkey="sign-in" data-next="${safeNext(next, '/sites')}">
        <div><button class="button" disabled>Use a passkey</button></div>
        <p role="status" class="small"></p>
      </form>
      <a href="/reset"${aside}>Forgot your password?</a>${
        showsSignUp(ways.signUp) && html` · New here? <a href="/signup${nextQuery(next)}"${aside}>Sign up</a>`
      }`,
  })
}

/** The password was right; `pending` stands for it. */
export function secondFactorPage(
  viewer: Viewer,
  { pending, next, sent }: { pending: string; next?: string | undefined; sent: URLSearchParams | undefined },
): Page {
  const form = formAt(viewer, '/signin/code', { pending, ...carriedOn(sent) })
  return authPage(form, 'Enter your code', {
    next,
    fields: [
      nextField(next),
      form.text({
        name: 'code',
        label: 'Code',
        required: true,
        autofocus: true,
        autocomplete: 'one-time-code',
        verbatim: true,
        maxlength: 40,
        hint: 'Six digits of your generator, or a recovery code.',
      }),
    ],
    button: 'Sign in',
    below: html`
      <details>
        <summary>Everything is lost</summary>
        <form class="form" method="post" action="/signin/recover">
          ${csrfField(viewer)}
          <input type="hidden" name="pending" value="${pending}">
          <p>
            Without your generator and the recovery codes, your password alone opens the account after 24 hours. A mail
            tells you at once, and can stop it.
          </p>
          <button class="button">Begin the 24 hours</button>
        </form>
      </details>
    `,
  })
}

export function resetRequestPage(viewer: Viewer): Page {
  const form = formAt(viewer, '/reset')
  return authPage(form, 'Reset your password', {
    lead: 'We will mail you a link that works for one hour.',
    fields: form.text({ name: 'email', label: 'E-mail', type: 'email', required: true, autocomplete: 'username' }),
    button: 'Send the link',
    below: html`<a href="/signin">Back to sign in</a>`,
  })
}

export function resetPasswordPage(
  viewer: Viewer,
  { token, asksForCode }: { token: string; asksForCode: boolean },
): Page {
  const form = formAt(viewer, '/reset/password', { token })
  return authPage(form, 'Choose a new password', {
    lead: 'Every session, API token and connected app of your account ends. Scripts and assistants need new access afterwards.',
    fields: [
      form.text({
        name: 'password',
        label: 'New password',
        type: 'password',
        required: true,
        minlength: MIN_PASSWORD_CHARS,
        autocomplete: 'new-password',
        hint: `At least ${MIN_PASSWORD_CHARS} characters.`,
      }),
      asksForCode &&
        form.text({
          name: 'code',
          label: 'Code',
          required: true,
          autocomplete: 'one-time-code',
          verbatim: true,
          maxlength: 40,
          hint: 'Six digits of your generator, or a recovery code.',
        }),
    ],
    button: 'Set password',
  })
}

interface Invitation {
  readonly organisation: string
  readonly role: string
  readonly email: string
}

/** For a person who is not signed in: both ways in know the address that was invited. */
export function invitationPage(
  invitation: Invitation,
  { here, token, ways }: { here: string; token: string; ways: Doors },
): Page {
  const query = `${nextQuery(here)}&email=${encodeURIComponent(invitation.email)}`
  return messagePage({
    title: `Join ${invitation.organisation}`,
    lead: html`You are invited as ${invitation.role}. Continue with the address <strong>${invitation.email}</strong>.`,
    actions: html`${
      ways.signUp.kind !== 'closed' &&
      html`<a class="button primary" href="/signup${query}&amp;token=${token}">Sign up</a>`
    }<a class="button" href="/signin${query}">Sign in</a>`,
  })
}

/** Signed in with another address than the one that was invited. */
export function wrongAccountPage(
  viewer: Viewer,
  { invitation, email, here }: { invitation: Invitation; email: string; here: string },
): Page {
  const form = formAt(viewer, '/signout', { next: here })
  return authPage(form, `Join ${invitation.organisation}`, {
    lead: html`This invitation is for <strong>${invitation.email}</strong>, and you are signed in as
      <strong>${email}</strong>. Sign out here to go on with the other address, or ask for an invitation to this one.`,
    fields: '',
    button: `Go on as ${invitation.email}`,
    below: html`<a href="/sites">Stay signed in as ${email}</a>`,
  })
}

/** Mail scanners open links: what a link does happens behind a button. */
export function confirmLinkPage(
  viewer: Viewer,
  link: { title: string; lead: Content; action: string; token: string; button: string },
): Page {
  const form = formAt(viewer, link.action, { token: link.token })
  return authPage(form, link.title, { lead: link.lead, fields: '', button: link.button })
}

export function claimPage(
  viewer: Viewer,
  claim: {
    token: string
    drop: { url: string; title: string }
    organisation: string | undefined
    ways: Doors
  },
): Page {
  const signedIn = viewer.signedIn !== undefined
  const here = `/claim?token=${claim.token}`
  const form = formAt(viewer, '/claim', { token: claim.token })
  return {
    title: 'Claim a drop',
    next: here,
    body: html`
      <div class="narrow section">
        <div class="stack">
          <h1>Claim this drop</h1>
          <p class="soft">
            It becomes part of your account, with its address and its content.${
              viewer.signedIn?.emailVerified !== true &&
              ' While your e-mail address is not verified, visitors see a notice instead of it.'
            }
          </p>
        </div>
        <div class="card">
          <strong>${claim.drop.title || shortAddress(claim.drop.url)}</strong>
          <a href="${claim.drop.url}">${shortAddress(claim.drop.url)}</a>
        </div>
        ${
          signedIn
            ? html`
              <form method="post" action="${form.action}" class="form">
                ${form.start}
                <button class="button primary">Claim it for ${claim.organisation ?? 'my account'}</button>
              </form>
            `
            : html`
              <p class="cluster">
                ${
                  showsSignUp(claim.ways.signUp) &&
                  html`<a class="button primary" href="/signup${nextQuery(here)}">Sign up and claim it</a>`
                }
                <a class="button" href="/signin${nextQuery(here)}">Sign in</a>
              </p>
            `
        }
      </div>
    `,
  }
}

/**
 * A person signed up on the way to a decision that needs a verified address. The page looks again by itself, so that
 * opening the link in the mail, in whatever browser, leads on from here.
 */
export function verifyFirstPage(viewer: Viewer, { email, here }: { email: string; here: string }): Page {
  return {
    title: 'Open the mail that we sent you',
    status: 403,
    headers: { refresh: `${VERIFY_LOOK_SECONDS}` },
    body: html`
      <div class="narrow section">
        <div class="stack">
          <h1>One step first: open the mail that we sent you</h1>
          <p class="lead">
            The link in the mail to <strong>${email}</strong> verifies your address. This page goes on by
            itself afterwards.
          </p>
        </div>
        <form class="cluster" method="post" action="/verify/send">
          ${csrfField(viewer)}
          <input type="hidden" name="next" value="${here}">
          <a class="button primary" href="${here}">I have opened it</a>
          <button class="button">Send the mail again</button>
        </form>
      </div>
    `,
  }
}
