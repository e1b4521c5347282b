/** Signing in a machine without a browser: type the code that it shows, see who asks, decide. */
import { html } from '../../../../shared/pages/html.ts'
import type { Page, Viewer } from '../frame/layout.ts'
import { decisionPage, type Decision } from './decision-view.ts'
import { formAt } from '../parts/form-fields.ts'

export interface DeviceConsent extends Pick<Decision, 'clientName' | 'scopes' | 'hidden'> {
  readonly userCode: string
  readonly askedFrom: string
  readonly askedAt: Date
  readonly organisation: string
  readonly email: string
}

export function deviceCodePage(viewer: Viewer, { action, userCode }: { action: string; userCode: string }): Page {
  const form = formAt(viewer, action)
  return {
    title: 'Sign in a device',
    body: html`
      <div class="narrow section">
        <div class="stack">
          <h1>Sign in a device</h1>
          <p class="soft">Type the code that your terminal or app shows.</p>
        </div>
        <form class="form" method="post" action="${form.action}">
          ${form.start}
          ${form.text({
            name: 'user_code',
            label: 'Code',
            value: userCode,
            required: true,
            autocomplete: 'off',
            placeholder: 'BCDF-GHJK',
            maxlength: 20,
            autofocus: true,
            hint: 'Eight letters. Upper or lower case, with or without the hyphen.',
          })}
          <button class="button primary">Continue</button>
        </form>
      </div>
    `,
  }
}

export function deviceConsentPage(viewer: Viewer, action: string, asked: DeviceConsent): Page {
  const askedAt = asked.askedAt.toISOString()
  return decisionPage(viewer, {
    ...asked,
    action,
    advice:
      'Allow it only if you have just started it yourself, and if it shows exactly this code. ' +
      'A person who sent you a code or a link would get into your account.',
    facts: [
      ['Code', html`<code>${asked.userCode}</code>`],
      [
        'Asked from',
        html`<code>${asked.askedFrom}</code> at <time datetime="${askedAt}">${askedAt.slice(11, 16)} UTC</time>`,
      ],
      ['Account', asked.email],
      ['Organisation', asked.organisation],
    ],
  })
}
