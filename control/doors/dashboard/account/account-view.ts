/** The account: who you are, how you get in, what may act for you. */
import { DAY_MS } from '../../../../shared/running/clock.ts'
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import { deviceOf } from '../../../people/access/devices.ts'
import { MIN_PASSWORD_CHARS } from '../../../people/accounts/rules.ts'
import type { SessionEntry } from '../../../people/accounts/contract.ts'
import type { AuditPage } from '../../../people/audit/audit.ts'
import type { Bill } from '../../../ground/mail/letters/templates.ts'
import { sellsPlans } from '../../../ground/terms/plans.ts'
import type { OAuth } from '../../oauth/oauth.ts'
import { csrfField, type AccountViewer, type Page, type Viewer } from '../frame/layout.ts'
import { deedInWords, whoInWords, type DropNames } from './audit-words.ts'
import { confirmCard } from '../parts/confirm-card.ts'
import { formAt } from '../parts/form-fields.ts'
import { copyRow } from '../parts/publish-result.ts'
import { countInWords, dayInWords, spoken, timeAgo } from '../parts/words.ts'

const SECTIONS = {
  '': 'Profile',
  '/ways-in': 'Ways in',
  '/sessions': 'Sessions',
  '/tokens': 'API tokens',
  '/apps': 'Connected apps',
  '/webhooks': 'Webhooks',
  '/organisation': 'Organisation',
  '/plan': 'Plan and usage',
  '/log': 'Audit log',
  '/data': 'Export and delete',
} as const

export type AccountSection = keyof typeof SECTIONS

/** Where there is one plan for all, nobody looks for theirs. */
function labelOf(section: AccountSection): string {
  return section === '/plan' && !sellsPlans() ? 'Usage' : SECTIONS[section]
}

export function accountPage(
  section: AccountSection,
  body: Content,
  options: Pick<Page, 'flash' | 'scripts' | 'status'> = {},
): Page {
  const title = labelOf(section)
  return {
    title: `${title} · Account`,
    section: 'account',
    ...options,
    body: html`
      <div class="aside">
        <nav aria-label="Account">
          <ul class="side">
            ${(Object.keys(SECTIONS) as AccountSection[]).map(
              (path) => html`
                <li>
                  <a href="/account${path}"${path === section ? html` aria-current="page"` : ''}>${labelOf(path)}</a>
                </li>
              `,
            )}
          </ul>
        </nav>
        <div class="section">
          <h1>${title}</h1>
          ${body}
        </div>
      </div>
    `,
  }
}

export function profileBody(viewer: AccountViewer): Html {
  const user = viewer.signedIn
  const email = formAt(viewer, '/account/email')
  const password = formAt(viewer, '/account/password')
  return html`
    <section class="card" aria-labelledby="mail">
      <h2 id="mail">E-mail</h2>
      <p>
        ${user.email} ${
          user.emailVerified
            ? html`<span class="tag good">Verified</span>`
            : html`<span class="tag warn">Not verified</span>`
        }
      </p>
      <details${email.isRefused ? html` open` : ''}>
        <summary>Change it</summary>
        <form class="form" method="post" action="${email.action}">
          ${email.start}
          ${email.text({ name: 'email', label: 'New e-mail', type: 'email', required: true, autocomplete: 'email' })}
          ${email.text({
            name: 'password',
            id: 'email-password',
            label: 'Your password',
            type: 'password',
            required: true,
            autocomplete: 'current-password',
          })}
          <div><button class="button primary">Send a link to the new address</button></div>
        </form>
      </details>
    </section>
    <form class="card" method="post" action="${password.action}" aria-labelledby="password-title">
      <h2 id="password-title">Password</h2>
      ${password.start}
      <input class="visually-hidden" type="email" autocomplete="username" value="${user.email}" readonly
          tabindex="-1" aria-hidden="true">
      <div class="row">
        ${password.text({
          name: 'current',
          label: 'Current password',
          type: 'password',
          required: true,
          autocomplete: 'current-password',
        })}
        ${password.text({
          name: 'new',
          label: 'New password',
          type: 'password',
          required: true,
          minlength: MIN_PASSWORD_CHARS,
          autocomplete: 'new-password',
          hint: 'Other sessions end.',
        })}
      </div>
      ${password.check({
        name: 'end_all',
        label: 'End API tokens and connected apps too',
        hint: 'If someone else may know your password. Your scripts and assistants then need new access.',
        checked: false,
      })}
      <div><button class="button primary">Change password</button></div>
    </form>
    <form method="post" action="/signout">
      ${csrfField(viewer)}
      <button class="button">Sign out</button>
    </form>
  `
}

export function sessionsBody(viewer: Viewer, sessions: readonly SessionEntry[], now: number): Html {
  return html`
    <p class="soft">Browsers that are signed in to your account.</p>
    <ul class="plain section">
      ${sessions.map(
        (session) => html`
          <li class="card">
            <div class="head">
              <div>
                <h2>
                  ${deviceOf(session.userAgent)}
                  ${session.current && html`<span class="tag good">This browser</span>`}
                </h2>
                <p class="small soft">
                  ${session.ip} · signed in ${timeAgo(session.createdAt, now)} · seen
                  ${timeAgo(session.lastSeenAt, now)}
                </p>
              </div>
              ${
                !session.current &&
                html`
                  <form method="post" action="/account/sessions/revoke">
                    ${csrfField(viewer)}
                    <input type="hidden" name="id" value="${session.id}">
                    <button class="button small">Sign it out</button>
                  </form>
                `
              }
            </div>
          </li>
        `,
      )}
    </ul>
    <form method="post" action="/account/sessions/revoke-all">
      ${csrfField(viewer)}
      <button class="button danger">Sign out everywhere</button>
    </form>
  `
}

export interface AppEntry {
  readonly id: string
  readonly name: string
  readonly organisation: string
  readonly scopes: readonly string[]
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
}

export function appOf(grant: Awaited<ReturnType<OAuth['listGrants']>>[number]): AppEntry {
  return {
    id: grant.id,
    name: grant.client_name,
    organisation: grant.organisation,
    scopes: grant.scopes,
    createdAt: grant.created_at,
    lastUsedAt: grant.last_used_at,
  }
}

export function revokeAppBody(viewer: Viewer, app: AppEntry): Html {
  return confirmCard(formAt(viewer, '/account/apps/revoke', { id: app.id }), {
    title: `Revoke “${app.name}”?`,
    what: html`<p>
      It cannot reach the drops of ${app.organisation} any more, from its next request on. To let it in again, connect
      it again. Your drops stay as they are.
    </p>`,
    button: 'Revoke it',
    back: '/account/apps',
    keep: 'Keep it',
  })
}

export function appsBody(apps: readonly AppEntry[], options: { baseUrl: string; now: number }): Html {
  const { baseUrl, now } = options
  return html`
    <p class="soft">Assistants and tools that you let in. Connect one by giving it this address:</p>
    ${copyRow(`${baseUrl}/mcp`, 'MCP address')}
    ${
      apps.length === 0
        ? html`<p class="soft">Nothing is connected.</p>`
        : html`
          <ul class="plain section">
            ${apps.map(
              (app) => html`
                <li class="card">
                  <div class="head">
                    <div>
                      <h2>${app.name}</h2>
                      <p class="small soft">
                        ${app.organisation} · ${app.scopes.join(', ')} · allowed
                        ${timeAgo(app.createdAt, now)}
                        · ${app.lastUsedAt === null ? 'not used yet' : html`used ${timeAgo(app.lastUsedAt, now)}`}
                      </p>
                    </div>
                    <a class="button small danger"
                        href="/account/apps/revoke?id=${app.id}">Revoke…${spoken(app.name)}</a>
                  </div>
                </li>
              `,
            )}
          </ul>
        `
    }
  `
}

export function logBody(page: AuditPage, drops: DropNames, now: number): Html {
  return html`
    <p class="soft">Who did what in this organisation, newest first.</p>
    ${
      page.entries.length === 0
        ? html`<p>Nothing has happened yet.</p>`
        : html`
          <table class="table stacked">
            <caption class="visually-hidden">Audit log</caption>
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col">Who</th>
                <th scope="col">What</th>
                <th scope="col">From</th>
              </tr>
            </thead>
            <tbody>
              ${page.entries.map(
                (entry) => html`
                  <tr>
                    <th scope="row" class="nowrap">${timeAgo(entry.at, now)}</th>
                    <td>${whoInWords(entry.actor)}</td>
                    <td>${deedInWords(entry, drops)}</td>
                    <td class="small soft"${entry.ip !== null && html` data-label="From"`}>${entry.ip}</td>
                  </tr>
                `,
              )}
            </tbody>
          </table>
        `
    }
    ${
      page.next !== undefined &&
      html`<p><a class="button" href="/account/log?before=${page.next}">Older entries</a></p>`
    }
  `
}

export interface DataView {
  /** What is paid for and ends with the account. */
  readonly ending: readonly Bill[]
  /** How long logs still name the person. */
  readonly keptMs: number
  /** Who proves that it is them, where there are no passwords. */
  readonly provider: string | undefined
}

export function dataBody(viewer: AccountViewer, { ending, keptMs, provider }: DataView): Html {
  const form = formAt(viewer, '/account/delete')
  return html`
    <section class="card" aria-labelledby="export">
      <h2 id="export">Export</h2>
      <p>Every drop with its live version, a folder each, and a file that describes it.</p>
      <div>
        <a class="button primary" href="/api/v1/sites/export" download>Download a zip of everything</a>
      </div>
    </section>
    <form class="card danger" method="post" action="${form.action}" aria-labelledby="delete-account">
      <h2 id="delete-account">Delete the account</h2>
      ${form.start}
      <p>
        Your drops are gone at once and for good, together with your tokens, sessions and the organisations
        you own.
      </p>
      ${endingSubscriptions(ending)}
      <p>
        Your e-mail address and the network addresses you came from stay in audit logs and mail records for
        ${countInWords(Math.ceil(keptMs / DAY_MS), 'day')}, in case of abuse. Then they are erased.
      </p>
      ${form.text({
        name: 'confirm',
        label: `Type “${viewer.signedIn.email}” to confirm`,
        required: true,
        autocomplete: 'off',
      })}
      ${
        provider === undefined
          ? form.text({
              name: 'password',
              label: 'Your password',
              type: 'password',
              required: true,
              autocomplete: 'current-password',
            })
          : html`<p>${provider} then asks you to sign in once more. After that the account is gone.</p>`
      }
      <div><button class="button danger">Delete my account</button></div>
    </form>
  `
}

/** Said before an owner deletes what is paid for. */
export function endingSubscriptions(ending: readonly Bill[]): Html {
  return html`${ending.map(
    ({ plan, until }) =>
      html`
        <p>
          The <strong>${plan}</strong> subscription${until && ` (paid until ${dayInWords(until)})`} ends at
          once. It is not charged again, and what is already paid is not refunded.
        </p>
      `,
  )}`
}
