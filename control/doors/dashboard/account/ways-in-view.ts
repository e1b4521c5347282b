/** Every way into an account on one page, and the pages of its second factor. */
import { MAX_NAME_CHARS } from '../../../../shared/contracts/limits.ts'
import { html, type Html } from '../../../../shared/pages/html.ts'
import { deviceOf } from '../../../people/access/devices.ts'
import type { TokenEntry } from '../../../people/access/tokens.ts'
import type { SessionEntry } from '../../../people/accounts/contract.ts'
import type { FactorState, NewGenerator } from '../../../people/factors/factors.ts'
import type { PasskeyEntry } from '../../../people/factors/passkeys.ts'
import { csrfField, type AccountViewer, type Viewer } from '../frame/layout.ts'
import { formAt } from '../parts/form-fields.ts'
import { qrCode } from '../parts/qr.ts'
import { countInWords, dayInWords, spoken, timeAgo } from '../parts/words.ts'
import type { AppEntry } from './account-view.ts'
import { lastUseInWords, reachInWords } from './tokens-view.ts'

/** How the person signs in, for sentences that send them there. */
export interface SignInWays {
  readonly hasPasswords: boolean
  /** What the operator's provider is called; undefined for who does not sign in with it. */
  readonly provider: string | undefined
}

function inWords({ hasPasswords, provider }: SignInWays): string {
  if (provider === undefined) return 'with your password'
  return hasPasswords ? `with your password or with ${provider}` : `with ${provider}`
}

export interface WaysIn {
  readonly factors: FactorState
  readonly signIn: SignInWays
  readonly passkeys: readonly PasskeyEntry[]
  readonly sessions: readonly SessionEntry[]
  readonly tokens: readonly TokenEntry[]
  readonly apps: readonly AppEntry[]
  readonly drops: readonly { readonly id: string; readonly name: string }[]
  readonly now: number
}

export function waysInBody(viewer: AccountViewer, view: WaysIn): Html {
  return html`
    <p class="soft">
      Everything that opens your account, when it was last used, and how to close it. What you do not recognise, end, and
      <a href="/account">change your password</a>.
    </p>
    ${factorCard(viewer, view)}
    ${passkeyCard(viewer, view)}
    ${sessionCard(viewer, view)}
    ${tokenCard(view)}
    ${appCard(view)}
  `
}

function factorCard(viewer: Viewer, { factors, passkeys, signIn }: WaysIn): Html {
  const hasPasskeys = passkeys.length > 0
  return html`
    <section class="card" aria-labelledby="factor-title">
      <div class="head">
        <h2 id="factor-title">Password and second factor</h2>
        ${
          factors.hasGenerator
            ? html`<span class="tag good">Second factor on</span>`
            : html`<span class="tag ${hasPasskeys ? '' : 'warn'}">${hasPasskeys ? 'Password or passkey' : 'Password only'}</span>`
        }
      </div>
      ${factors.recoveryDueAt && recoveryNotice(viewer, factors.recoveryDueAt, signIn)}
      ${
        factors.hasGenerator
          ? html`
            <p>
              Signing in asks for a code of your generator. ${countInWords(factors.recoveryCodesLeft, 'recovery code')}
              left.
            </p>
            <div class="cluster">
              ${button(viewer, '/account/totp/codes', 'New recovery codes')}
              ${button(viewer, '/account/totp/remove', 'Turn it off', 'danger')}
            </div>
          `
          : html`
            <p>
              A code from an app on your phone, besides the password: someone who learns the password still does not get
              in.
            </p>
            <p><a class="button primary" href="/account/totp">Turn on a second factor</a></p>
          `
      }
    </section>
  `
}

/** Whoever asked for it can sign in: the person reads it here too, beside the mail. */
function recoveryNotice(viewer: Viewer, dueAt: Date, signIn: SignInWays): Html {
  return html`
    <div class="notice warn stack" role="status">
      <p>
        Someone who can sign in to your account said that the second factor is lost. From ${dueAt.toUTCString()} on,
        signing in ${inWords(signIn)} takes it away, and passkeys are removed. Was that not you? Stop
        it${signIn.hasPasswords && html`, and <a href="/account">change your password</a>`}.
      </p>
      ${button(viewer, '/account/ways-in/recovery/stop', 'Keep my second factor')}
    </div>
  `
}

function button(viewer: Viewer, action: string, label: string, tone = ''): Html {
  return html`
    <form method="post" action="${action}">
      ${csrfField(viewer)}
      <button class="button small ${tone}">${label}</button>
    </form>
  `
}

/** Making one needs a script; what is there is listed and removed without. */
function passkeyCard(viewer: Viewer, { passkeys, now }: WaysIn): Html {
  return html`
    <section class="card" aria-labelledby="passkeys-title">
      <h2 id="passkeys-title">Passkeys</h2>
      <p class="soft">
        Sign in with your phone, your laptop or a key, without a password. It counts as a second factor where an
        organisation asks for one.
      </p>
      ${
        passkeys.length > 0 &&
        html`
          <ul class="plain stack">
            ${passkeys.map(
              (passkey) => html`
                <li class="head">
                  <div>
                    <strong>${passkey.name}</strong>
                    <p class="small soft">
                      added ${timeAgo(passkey.createdAt, now)} ·
                      ${passkey.lastUsedAt === null ? 'not used yet' : html`used ${timeAgo(passkey.lastUsedAt, now)}`}
                    </p>
                  </div>
                  <form method="post" action="/account/ways-in/passkeys/remove">
                    ${csrfField(viewer)}
                    <input type="hidden" name="id" value="${passkey.id}">
                    <button class="button small danger">Remove${spoken(passkey.name)}</button>
                  </form>
                </li>
              `,
            )}
          </ul>
        `
      }
      <form class="form" data-passkey="add">
        <div class="field">
          <label for="passkey-name">Name</label>
          <input class="input" id="passkey-name" name="name" maxlength="${MAX_NAME_CHARS}" placeholder="Phone"
              autocomplete="off">
        </div>
        <p role="status" class="small"></p>
        <div><button class="button primary" disabled>Add a passkey</button></div>
      </form>
      <noscript><p class="notice">Adding a passkey needs JavaScript.</p></noscript>
    </section>
  `
}

function sessionCard(viewer: Viewer, { sessions, now }: WaysIn): Html {
  return html`
    <section class="card" aria-labelledby="sessions-title">
      <div class="head">
        <h2 id="sessions-title">Browsers</h2>
        <form method="post" action="/account/sessions/revoke-all">
          ${csrfField(viewer)}
          <button class="button small danger">Sign out everywhere</button>
        </form>
      </div>
      <ul class="plain stack">
        ${sessions.map((session) => {
          const device = deviceOf(session.userAgent)
          return html`
            <li class="head">
              <div>
                <strong>${device}</strong> ${session.current && html`<span class="tag good">This browser</span>`}
                <p class="small soft">
                  ${session.ip} · signed in ${timeAgo(session.createdAt, now)} · seen ${timeAgo(session.lastSeenAt, now)}
                </p>
              </div>
              ${
                !session.current &&
                html`
                  <form method="post" action="/account/ways-in/sessions/end">
                    ${csrfField(viewer)}
                    <input type="hidden" name="id" value="${session.id}">
                    <button class="button small">Sign it out${spoken(device)}</button>
                  </form>
                `
              }
            </li>
          `
        })}
      </ul>
    </section>
  `
}

function tokenCard({ tokens, drops, now }: WaysIn): Html {
  return html`
    <section class="card" aria-labelledby="tokens-title">
      <div class="head">
        <h2 id="tokens-title">API tokens</h2>
        <a class="button small" href="/account/tokens">New token</a>
      </div>
      ${
        tokens.length === 0
          ? html`<p class="soft">None.</p>`
          : html`
            <ul class="plain stack">
              ${tokens.map(
                (token) => html`
                  <li class="head">
                    <div>
                      <strong>${token.name}</strong> <span class="small soft mono">dw_…${token.hint}</span>
                      <p class="small soft">
                        ${reachInWords(token, drops)} ·
                        ${token.expiresAt === null ? 'no end' : html`until ${dayInWords(token.expiresAt)}`} · used:
                        ${lastUseInWords(token, now)}
                      </p>
                    </div>
                    <a class="button small danger"
                        href="/account/tokens/revoke?id=${token.id}">Revoke…${spoken(token.name)}</a>
                  </li>
                `,
              )}
            </ul>
          `
      }
    </section>
  `
}

function appCard({ apps, now }: WaysIn): Html {
  return html`
    <section class="card" aria-labelledby="apps-title">
      <h2 id="apps-title">Connected apps</h2>
      ${
        apps.length === 0
          ? html`<p class="soft">None.</p>`
          : html`
            <ul class="plain stack">
              ${apps.map(
                (app) => html`
                  <li class="head">
                    <div>
                      <strong>${app.name}</strong>
                      <p class="small soft">
                        ${app.organisation} · ${app.scopes.join(', ')} ·
                        ${app.lastUsedAt === null ? 'not used yet' : html`used ${timeAgo(app.lastUsedAt, now)}`}
                      </p>
                    </div>
                    <a class="button small danger"
                        href="/account/apps/revoke?id=${app.id}">Revoke…${spoken(app.name)}</a>
                  </li>
                `,
              )}
            </ul>
          `
      }
    </section>
  `
}

/** Before there is a secret: nothing is made by opening a page. */
export function enrolBody(viewer: Viewer): Html {
  const form = formAt(viewer, '/account/totp/begin')
  return html`
    <form class="card" method="post" action="${form.action}">
      <h2>A code from your phone</h2>
      ${form.start}
      <p>
        You need an app that makes one-time codes, such as the one in your password manager. Next you scan a code with it
        and type what it shows.
      </p>
      <div><button class="button primary">Begin</button></div>
    </form>
  `
}

export function generatorBody(viewer: Viewer, generator: NewGenerator): Html {
  const form = formAt(viewer, '/account/totp')
  return html`
    <form class="card" method="post" action="${form.action}">
      <h2>Scan it, then type the code</h2>
      ${form.start}
      <div class="result">
        <div class="stack">
          <p>Scan this with your app, or type the secret into it:</p>
          <p class="secret" id="totp-secret">${generator.secret}</p>
          <p class="small"><a href="${generator.uri}" id="totp-uri">Open it in an app on this device</a></p>
          <p class="small soft whole">${generator.uri}</p>
        </div>
        ${qrCode(generator.uri)}
      </div>
      ${codeField(form)}
      <div><button class="button primary">Turn it on</button></div>
    </form>
  `
}

function codeField(form: ReturnType<typeof formAt>): Html {
  return form.text({
    name: 'code',
    label: 'Code',
    required: true,
    autocomplete: 'one-time-code',
    verbatim: true,
    maxlength: 40,
    hint: 'Six digits of your generator; a recovery code where the generator is lost.',
  })
}

export function recoveryCodesBody(codes: readonly string[]): Html {
  return html`
    <section class="card raised" aria-labelledby="codes-title">
      <h2 id="codes-title">Your recovery codes: keep them now</h2>
      <p>
        Each is good once, instead of a code of your generator. They are shown this once: print them, or keep them where
        you find them without your phone.
      </p>
      <ul class="plain mono" id="recovery-codes">
        ${codes.map((code) => html`<li>${code}</li>`)}
      </ul>
      <p><a class="button primary" href="/account/ways-in">I have kept them</a></p>
    </section>
  `
}

/** Before what cannot be undone: `next` is where the person was. */
export function proveBody(
  viewer: Viewer,
  { next, hasGenerator, hasPasskeys, signIn }: LostFactor & { next: string; hasPasskeys: boolean },
): Html {
  // Who signs in with a password says that everything is lost where a code is asked for; the provider asks for none.
  const mayBeLost = hasGenerator ? signIn.provider !== undefined : hasPasskeys
  return html`
    <section class="card" aria-labelledby="prove-title">
      <h2 id="prove-title">Prove that it is you</h2>
      <p>What you are about to do reaches far. Show your second factor: that is enough for the next ten minutes.</p>
      ${hasPasskeys && passkeyProof(next, hasGenerator)}
      ${(hasGenerator || !hasPasskeys) && codeProof(viewer, next)}
      ${mayBeLost && lostForm(viewer, { hasGenerator, signIn })}
    </section>
  `
}

function passkeyProof(next: string, hasGenerator: boolean): Html {
  return html`
    <form class="form" data-passkey="prove" data-next="${next}">
      <div><button class="button primary" disabled>Use a passkey</button></div>
      <p role="status" class="small"></p>
    </form>
    ${!hasGenerator && html`<noscript><p class="notice">Showing a passkey needs JavaScript.</p></noscript>`}
  `
}

/** What is lost: the generator with everything else, or passkeys alone. */
interface LostFactor {
  readonly hasGenerator: boolean
  readonly signIn: SignInWays
}

function lostForm(viewer: Viewer, { hasGenerator, signIn }: LostFactor): Html {
  const what = hasGenerator ? 'second factor' : 'passkeys'
  return html`
    <details>
      <summary>${hasGenerator ? 'Everything is lost?' : 'All passkeys are lost?'}</summary>
      <p>
        Ask for the removal of your ${what}. We write to your mailbox, where it can be stopped; a day from now, sign in
        ${inWords(signIn)} again, and ${hasGenerator ? 'codes and passkeys are' : 'they are'} gone.
      </p>
      ${button(viewer, '/account/prove/lost', `Remove my ${what} in a day`, 'danger')}
    </details>
  `
}

function codeProof(viewer: Viewer, next: string): Html {
  const form = formAt(viewer, '/account/prove')
  return html`
    <form class="form" method="post" action="${form.action}">
      ${form.start}
      <input type="hidden" name="next" value="${next}">
      ${codeField(form)}
      <div><button class="button primary">Go on</button></div>
    </form>
  `
}

export function recoveryBegunBody(dueAt: Date, { hasGenerator, signIn }: LostFactor): Html {
  return html`
    <section class="card" aria-labelledby="lost-title">
      <h2 id="lost-title">Your ${hasGenerator ? 'second factor goes' : 'passkeys go'} in a day</h2>
      <p>
        From ${dueAt.toUTCString()} on, sign in ${inWords(signIn)} alone. The mail that we sent stops it, and so does
        ${hasGenerator ? 'a code or a passkey' : 'a passkey'}.
      </p>
      <p><a class="button" href="/account/ways-in">Back</a></p>
    </section>
  `
}
