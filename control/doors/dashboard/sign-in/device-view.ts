/** Signing in a machine without a browser: type the code that it shows, see who asks, decide. */
import { html } from '../../../../shared/pages/html.ts'
import { csrfField, type Page, type Viewer } from '../frame/layout.ts'
import { scopeList } from './consent-view.ts'
import { problemNotice, textField } from '../parts/form-fields.ts'

export interface DeviceConsent {
  readonly userCode: string
  readonly clientName: string
  readonly scopes: readonly string[]
  readonly askedFrom: string
  readonly askedAt: Date
  readonly organisation: string
  readonly email: string
  readonly hidden: Readonly<Record<string, string>>
}

export function deviceCodePage(
  viewer: Viewer,
  form: { action: string; userCode?: string; problem?: string; status?: number },
): Page {
  return {
    title: 'Sign in a device',
    status: form.status ?? 200,
    body: html`<div class="narrow section">
<div class="stack"><h1>Sign in a device</h1>
<p class="soft">Type the code that your terminal or app shows.</p></div>
<form class="form" method="post" action="${form.action}">${csrfField(viewer)}${problemNotice(form.problem)}
${textField({
  name: 'user_code',
  label: 'Code',
  value: form.userCode ?? '',
  required: true,
  autocomplete: 'off',
  placeholder: 'BCDF-GHJK',
  maxlength: 20,
  autofocus: true,
  hint: 'Eight letters. Upper or lower case, with or without the hyphen.',
})}
<button class="button primary">Continue</button></form>
</div>`,
  }
}

export function deviceConsentPage(viewer: Viewer, action: string, asked: DeviceConsent): Page {
  return {
    title: 'Allow access',
    body: html`<div class="narrow section">
<div class="stack"><h1>Allow “${asked.clientName}” to use your drops?</h1>
<p class="soft">Allow it only if you have just started it yourself, and if it shows exactly this code. Somebody who sent you a code or a link would get into your account.</p></div>
<div class="card"><dl class="facts">
<dt>Code</dt><dd><code>${asked.userCode}</code></dd>
<dt>Asked from</dt><dd><code>${asked.askedFrom}</code> at <time datetime="${asked.askedAt.toISOString()}">${asked.askedAt.toISOString().slice(11, 16)} UTC</time></dd>
<dt>Account</dt><dd>${asked.email}</dd>
<dt>Organisation</dt><dd>${asked.organisation}</dd>
</dl>
${scopeList(asked.scopes)}</div>
<form class="form" method="post" action="${action}">${csrfField(viewer)}
${Object.entries(asked.hidden).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<div class="cluster"><button class="button primary" name="decision" value="allow">Allow</button><button class="button" name="decision" value="deny">Deny</button></div>
</form>
<p class="hint">You can take it back at any time under Account → Connected apps.</p>
</div>`,
  }
}
