/** "Do you want to let this program in?": the page that every grant is decided on. */
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import { accessScopesOf } from '../../oauth/rules.ts'
import { csrfField, type Page, type Viewer } from '../frame/layout.ts'

export interface Decision {
  readonly clientName: string
  /** What to know before allowing it. */
  readonly advice: Content
  /** Who asks, and what the person compares. */
  readonly facts: readonly (readonly [term: string, value: Content])[]
  readonly scopes: readonly string[]
  /** Where the form goes, with whatever the server needs to find the request again. */
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
}

export function decisionPage(viewer: Viewer, decision: Decision): Page {
  return {
    title: 'Allow access',
    body: html`
      <div class="narrow section">
        <div class="stack">
          <h1>Allow “${decision.clientName}” to use your drops?</h1>
          <p class="soft">${decision.advice}</p>
        </div>
        <div class="card">
          <dl class="facts">
            ${decision.facts.map(([term, value]) => html`<dt>${term}</dt><dd>${value}</dd>\n`)}
          </dl>
          ${scopeList(decision.scopes)}
        </div>
        <form class="form" method="post" action="${decision.action}">
          ${csrfField(viewer)}
          ${Object.entries(decision.hidden).map(
            ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
          )}
          <div class="cluster">
            <button class="button primary" name="decision" value="allow">Allow</button>
            <button class="button" name="decision" value="deny">Deny</button>
          </div>
        </form>
        <p class="hint">You can take it back at any time under Account → Connected apps.</p>
      </div>
    `,
  }
}

const SCOPE_WORDS: ReadonlyMap<string, string> = new Map([
  ['read', 'See your drops, their files, versions, settings and views, and change nothing'],
  ['publish', 'Publish new versions and new drops, and go back to earlier versions'],
  ['manage', 'Change and delete your drops, their settings and domains; not people or billing'],
  ['mcp', 'Publish, read, change and delete your drops, their settings and domains, as an assistant (MCP)'],
  ['cli', 'Do everything your account can do, from the command line'],
])

/** Where a grant is narrowed, only that is told: the resource as a whole is then not what is given. */
function scopeList(granted: readonly string[]): Html {
  const scopes = accessScopesOf(granted) ?? granted
  return html`
    <div>
      <h2 class="small soft">It will be able to</h2>
      <ul class="steps">
        ${scopes.map((scope) => html`<li>${SCOPE_WORDS.get(scope) ?? scope} <code>${scope}</code></li>`)}
      </ul>
    </div>
  `
}
