/** Sign-up, sign-in, password reset, verification, claiming. Plain forms: no script is needed for any of them. */
import { html, type Content } from '../../../../shared/pages/html.ts'
import { COUNTRY_NAMES } from '../../../people/organisations/countries.ts'
import { MIN_PASSWORD_CHARS } from '../../../people/accounts/rules.ts'
import { csrfField, nextQuery, type Page, type Viewer } from '../frame/layout.ts'
import { problemNotice, selectField, textField } from '../parts/form-fields.ts'
import { countInWords, shortAddress } from '../parts/words.ts'

/** Soon enough for a person who comes back from the mail, and nothing for us. */
const VERIFY_LOOK_SECONDS = 4

export interface AuthForm {
  readonly email?: string
  readonly problem?: string | undefined
  /** Where to go afterwards: a path of ours. */
  readonly next?: string | undefined
  /** How many anonymous drops of this browser wait to be claimed. */
  readonly waiting?: number
}

function authPage(
  viewer: Viewer,
  title: string,
  form: {
    action: string
    lead?: Content
    problem?: string | undefined
    fields: Content
    button: string
    below?: Content
    status?: number
    next?: string | undefined
    scripts?: readonly string[] | undefined
  },
): Page {
  return {
    title,
    ...(form.scripts ? { scripts: form.scripts } : {}),
    status: form.status ?? 200,
    next: form.next,
    body: html`
      <div class="narrow section">
        <div class="stack">
          <h1>${title}</h1>
          ${form.lead !== undefined && html`<p class="soft">${form.lead}</p>`}
        </div>
        <form class="form" method="post" action="${form.action}">
          ${csrfField(viewer)}
          ${problemNotice(form.problem)}
          ${form.fields}
          <button class="button primary">${form.button}</button>
        </form>
        ${form.below !== undefined && html`<div class="soft">${form.below}</div>`}
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

export function signUpPage(viewer: Viewer, form: AuthForm & { country: CountryChoice }): Page {
  return authPage(viewer, 'Create your account', {
    action: '/signup',
    next: form.next,
    status: form.problem === undefined ? 200 : 400,
    problem: form.problem,
    lead: form.waiting
      ? html`${countInWords(form.waiting, 'drop')} of this browser will be yours, at the same address.
        <strong>${form.waiting === 1 ? 'It is' : 'They are'} hidden from visitors when you sign up</strong>,
        until you open the link in the mail that we send you; ${form.waiting === 1 ? 'it is' : 'they are'}
        back within a second.`
      : 'Free for three drops. No card, no trial that runs out.',
    fields: [
      nextField(form.next),
      textField({
        name: 'email',
        label: 'E-mail',
        type: 'email',
        value: form.email ?? '',
        required: true,
        autocomplete: 'email',
      }),
      textField({
        name: 'password',
        label: 'Password',
        type: 'password',
        required: true,
        minlength: MIN_PASSWORD_CHARS,
        autocomplete: 'new-password',
        hint: `At least ${MIN_PASSWORD_CHARS} characters.`,
      }),
      selectField({
        name: 'country',
        label: 'Country',
        value: form.country.value,
        options: COUNTRY_NAMES,
        autocomplete: 'country',
        disabled: form.country.isGiven,
        hint: form.country.isGiven
          ? 'From your connection. It sets the currency of paid plans.'
          : 'Sets the currency of paid plans. It stays as it is afterwards.',
      }),
    ],
    button: 'Sign up',
    below: html`Already here? <a href="/signin${nextQuery(form.next)}">Sign in</a>`,
  })
}

/** What the browser has to work out before the form may be sent. */
export interface Work {
  readonly challenge: string
  readonly bits: number
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

export function signInPage(viewer: Viewer, form: AuthForm & { status?: number; work?: Work | undefined }): Page {
  return authPage(viewer, 'Sign in', {
    scripts: form.work ? ['answer-challenge'] : undefined,
    action: '/signin',
    next: form.next,
    status: form.status ?? 200,
    problem: form.problem,
    fields: [
      nextField(form.next),
      textField({
        name: 'email',
        label: 'E-mail',
        type: 'email',
        value: form.email ?? '',
        required: true,
        autocomplete: 'username',
      }),
      textField({
        name: 'password',
        label: 'Password',
        type: 'password',
        required: true,
        autocomplete: 'current-password',
      }),
      form.work && workFields(form.work),
    ],
    button: 'Sign in',
    below: html`<a href="/reset">Forgot your password?</a> · New here? <a href="/signup${nextQuery(form.next)}">Sign
      up</a>`,
  })
}

export function resetRequestPage(viewer: Viewer, form: { problem?: string; status?: number } = {}): Page {
  return authPage(viewer, 'Reset your password', {
    action: '/reset',
    status: form.status ?? 200,
    problem: form.problem,
    lead: 'We will mail you a link that works for one hour.',
    fields: textField({ name: 'email', label: 'E-mail', type: 'email', required: true, autocomplete: 'username' }),
    button: 'Send the link',
    below: html`<a href="/signin">Back to sign in</a>`,
  })
}

export function resetPasswordPage(viewer: Viewer, form: { token: string; problem?: string; status?: number }): Page {
  return authPage(viewer, 'Choose a new password', {
    action: '/reset/password',
    status: form.status ?? 200,
    problem: form.problem,
    lead: 'Every session, API token and connected app of your account ends. Scripts and assistants need new access afterwards.',
    fields: [
      html`<input type="hidden" name="token" value="${form.token}">`,
      textField({
        name: 'password',
        label: 'New password',
        type: 'password',
        required: true,
        minlength: MIN_PASSWORD_CHARS,
        autocomplete: 'new-password',
        hint: `At least ${MIN_PASSWORD_CHARS} characters.`,
      }),
    ],
    button: 'Set password',
  })
}

/** Mail scanners open links: what a link does happens behind a button. */
export function confirmLinkPage(
  viewer: Viewer,
  link: { title: string; lead: Content; action: string; token: string; button: string },
): Page {
  return authPage(viewer, link.title, {
    action: link.action,
    lead: link.lead,
    fields: html`<input type="hidden" name="token" value="${link.token}">`,
    button: link.button,
  })
}

export function claimPage(
  viewer: Viewer,
  claim: {
    token: string
    drop: { url: string; title: string }
    organisation: string | undefined
    problem?: string | undefined
  },
): Page {
  const signedIn = viewer.signedIn !== undefined
  const here = `/claim?token=${claim.token}`
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
        ${problemNotice(claim.problem)}
        ${
          signedIn
            ? html`
              <form method="post" action="/claim" class="form">
                ${csrfField(viewer)}
                <input type="hidden" name="token" value="${claim.token}">
                <button class="button primary">Claim it for ${claim.organisation ?? 'my account'}</button>
              </form>
            `
            : html`
              <p class="cluster">
                <a class="button primary" href="/signup${nextQuery(here)}">Sign up and claim it</a>
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
