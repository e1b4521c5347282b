/** "Do you want to let this program in?": who asks, where the answer goes, what it may do. */
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import type { ReturnPlace } from '../../oauth/rules.ts'
import { csrfField, type Page, type Viewer } from '../frame/layout.ts'

export interface ConsentRequest {
  readonly clientName: string
  /** The host whose own document describes the program; undefined when it only named itself. */
  readonly verifiedHost: string | undefined
  /** Where the browser is sent back to, whole: a scheme before a familiar name is not that name. */
  readonly redirectUri: string
  readonly returnsTo: ReturnPlace
  /** Scheme for the form-action of the page, e.g. `https:` or `cursor:`. */
  readonly redirectSource: string
  readonly organisation: string
  readonly email: string
  readonly scopes: readonly string[]
  /** Where the form goes, with whatever the server needs to find the request again. */
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
}

const SCOPES: ReadonlyMap<string, string> = new Map([
  ['mcp', 'Publish, read, change and delete your drops, their settings and domains, as an assistant (MCP)'],
  ['cli', 'Do everything your account can do, from the command line'],
])

function placeInWords(place: ReturnPlace): Content {
  switch (place.kind) {
    case 'site':
      return html`the site <strong>${place.host}</strong>`
    case 'own-machine':
      return 'a program on your own computer'
    case 'app':
      return html`the app on your device that answers to <strong>${place.scheme}</strong> (not a site)`
    default:
      return place satisfies never
  }
}

export function scopeList(scopes: readonly string[]): Html {
  return html`<div><h2 class="small soft">It will be able to</h2><ul class="steps">${scopes.map((scope) => html`<li>${SCOPES.get(scope) ?? scope} <code>${scope}</code></li>`)}</ul></div>`
}

export function consentPage(viewer: Viewer, request: ConsentRequest): Page {
  return {
    title: 'Allow access',
    formTargets: [request.redirectSource],
    body: html`<div class="narrow section">
<div class="stack"><h1>Allow “${request.clientName}” to use your drops?</h1>
<p class="soft">${
      request.verifiedHost === undefined
        ? 'It named itself; we do not know who made it.'
        : html`It is described by <strong>${request.verifiedHost}</strong>, which we checked; the name is its own choice.`
    } Allow it only if you have just started it yourself.</p></div>
<div class="card"><dl class="facts">
<dt>Account</dt><dd>${request.email}</dd>
<dt>Organisation</dt><dd>${request.organisation}</dd>
<dt>Made by</dt><dd>${request.verifiedHost === undefined ? 'unknown' : html`<strong>${request.verifiedHost}</strong> (verified)`}</dd>
<dt>Returns to</dt><dd>${placeInWords(request.returnsTo)}<br><code class="whole">${request.redirectUri}</code></dd>
</dl>
${scopeList(request.scopes)}</div>
<form class="form" method="post" action="${request.action}">${csrfField(viewer)}
${Object.entries(request.hidden).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<div class="cluster"><button class="button primary" name="decision" value="allow">Allow</button><button class="button" name="decision" value="deny">Deny</button></div>
</form>
<p class="hint">You can take it back at any time under Account → Connected apps.</p>
</div>`,
  }
}
