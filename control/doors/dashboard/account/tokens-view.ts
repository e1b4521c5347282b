/** API tokens: what each is good for and until when, and the form that makes one. */
import { MAX_NAME_CHARS } from '../../../../shared/contracts/limits.ts'
import { html, type Html } from '../../../../shared/pages/html.ts'
import { SCOPES, type Scope } from '../../../ground/actor.ts'
import type { TokenEntry } from '../../../people/access/tokens.ts'
import type { AccountViewer, Viewer } from '../frame/layout.ts'
import { confirmCard } from '../parts/confirm-card.ts'
import { formAt } from '../parts/form-fields.ts'
import { dayInWords, spoken, timeAgo } from '../parts/words.ts'

/** What the form proposes first is the least: one who needs more says so. */
export const PROPOSED_SCOPE: Scope = 'read'
export const PROPOSED_DAYS = '90'

const SCOPE_CHOICES: Readonly<Record<Scope, string>> = {
  read: 'Read: see everything, change nothing',
  publish: 'Publish: read, publish and go back to earlier versions',
  manage: 'Manage: everything but people and billing',
}

/** In days; empty for no end. */
const LIFETIMES: readonly (readonly [days: string, label: string])[] = [
  ['7', '7 days'],
  ['30', '30 days'],
  [PROPOSED_DAYS, '90 days'],
  ['365', 'A year'],
  ['', 'No end'],
]

export interface TokensView {
  readonly tokens: readonly TokenEntry[]
  readonly issued?: { name: string; token: string } | undefined
  /** The drops that a token can be bound to. */
  readonly drops: readonly { readonly id: string; readonly name: string }[]
  readonly now: number
}

export function tokensBody(viewer: AccountViewer, view: TokensView): Html {
  return html`
    <p class="soft">
      For scripts. A token is as good as you make it: give it the least that it needs, and an end.
      <a href="/docs">How to use it</a>
    </p>
    ${view.issued && issuedCard(view.issued)}
    ${
      viewer.signedIn.emailVerified
        ? tokenForm(viewer, view.drops)
        : html`<p class="notice warn">Verify your e-mail address first; then you can create tokens.</p>`
    }
    ${view.tokens.length > 0 && tokenTable(view)}
  `
}

function issuedCard(issued: { name: string; token: string }): Html {
  return html`
    <section class="card raised" aria-labelledby="new-token">
      <h2 id="new-token">“${issued.name}”: copy it now</h2>
      <p>It is shown this once and never again.</p>
      <div class="copy">
        <p class="secret" id="token">${issued.token}</p>
        <button class="button" type="button" data-copy="${issued.token}">Copy${spoken('the token')}</button>
      </div>
    </section>
  `
}

function tokenForm(viewer: AccountViewer, drops: TokensView['drops']): Html {
  const create = formAt(viewer, '/account/tokens')
  return html`
    <form class="card" method="post" action="${create.action}">
      <h2>New token</h2>
      ${create.start}
      ${create.text({
        name: 'name',
        label: 'Name',
        required: true,
        maxlength: MAX_NAME_CHARS,
        placeholder: 'Deploy from CI',
        autocomplete: 'off',
      })}
      ${create.select({
        name: 'scope',
        label: 'What it may do',
        value: PROPOSED_SCOPE,
        options: SCOPES.map((scope) => [scope, SCOPE_CHOICES[scope]]),
      })}
      <div class="row">
        ${create.select({
          name: 'site',
          label: 'On which drops',
          value: '',
          options: [['', 'All of them, and new ones'], ...drops.map(({ id, name }) => [id, name] as const)],
        })}
        ${create.select({
          name: 'days',
          label: 'Until',
          value: PROPOSED_DAYS,
          options: LIFETIMES,
          hint: 'A mail comes a week before the end.',
        })}
      </div>
      <div><button class="button primary">Create token</button></div>
    </form>
  `
}

function tokenTable({ tokens, drops, now }: TokensView): Html {
  return html`
    <table class="table stacked">
      <caption class="visually-hidden">Your tokens</caption>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">May</th>
          <th scope="col">Ends</th>
          <th scope="col">Last used</th>
          <th scope="col"><span class="visually-hidden">Actions</span></th>
        </tr>
      </thead>
      <tbody>
        ${tokens.map(
          (token) => html`
            <tr>
              <th scope="row">
                <strong>${token.name}</strong><br>
                <span class="small soft mono">dw_…${token.hint}</span>
              </th>
              <td data-label="May">${reachInWords(token, drops)}</td>
              <td data-label="Ends">${token.expiresAt === null ? 'never' : dayInWords(token.expiresAt)}</td>
              <td data-label="Last used">${lastUseInWords(token, now)}</td>
              <td class="right">
                <a class="button small danger"
                    href="/account/tokens/revoke?id=${token.id}">Revoke…${spoken(token.name)}</a>
              </td>
            </tr>
          `,
        )}
      </tbody>
    </table>
  `
}

export function reachInWords(
  { scopes, sites }: Pick<TokenEntry, 'scopes' | 'sites'>,
  drops: TokensView['drops'],
): string {
  const what = scopes === null ? 'everything' : scopes.join(', ')
  if (sites === null) return what
  const [first, ...others] = sites.map((id) => drops.find((drop) => drop.id === id)?.name ?? 'a deleted drop')
  return `${what}, on ${first}${others.length > 0 ? ` and ${others.length} more` : ''}`
}

export function lastUseInWords(token: Pick<TokenEntry, 'lastUsedAt' | 'lastUsedFamily'>, now: number): Html | string {
  if (token.lastUsedAt === null) return 'never'
  return html`${timeAgo(token.lastUsedAt, now)}${token.lastUsedFamily !== null && html`, over ${token.lastUsedFamily}`}`
}

export function revokeTokenBody(viewer: Viewer, token: TokenEntry, now: number): Html {
  return confirmCard(formAt(viewer, '/account/tokens/revoke', { id: token.id }), {
    title: `Revoke “${token.name}”?`,
    what: html`<p>
      Scripts and programs that use it are refused from the next request on, and it cannot be brought back. It was
      ${token.lastUsedAt === null ? 'never used' : html`last used ${timeAgo(token.lastUsedAt, now)}`}. Your drops stay
      as they are.
    </p>`,
    button: 'Revoke it',
    back: '/account/tokens',
    keep: 'Keep it',
  })
}
