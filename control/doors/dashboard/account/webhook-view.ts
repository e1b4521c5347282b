/** Webhooks of an organisation, and one of them with its last messages. */
import { MAX_NAME_CHARS } from '../../../../shared/contracts/limits.ts'
import { html, type Html } from '../../../../shared/pages/html.ts'
import { WEBHOOK_EVENTS } from '../../../ground/routing/webhook-outbox.ts'
import { MAX_URL_CHARS } from '../../../drops/webhooks/rules.ts'
import type { ApiDelivery, ApiWebhook } from '../../../drops/webhooks/schemas.ts'
import { csrfField, type AccountViewer, type Viewer } from '../frame/layout.ts'
import { formAt, type PageForm } from '../parts/form-fields.ts'
import { spoken, timeAgo } from '../parts/words.ts'

export interface IssuedSecret {
  readonly secret: string
  readonly isNew: boolean
}

export function webhooksBody(viewer: AccountViewer, view: { webhooks: readonly ApiWebhook[]; now: number }): Html {
  const create = formAt(viewer, '/account/webhooks')
  return html`
    <p class="soft">
      Your own server is told what happens to the drops of this organisation: a signed message for each event, in
      order, until it was taken. <a href="/docs/api/webhooks">How to read them</a>
    </p>
    ${view.webhooks.length > 0 && list(view.webhooks, view.now)}
    ${
      viewer.signedIn.emailVerified
        ? newForm(create)
        : html`<p class="notice warn">Verify your e-mail address first; then you can add webhooks.</p>`
    }
  `
}

function list(webhooks: readonly ApiWebhook[], now: number): Html {
  return html`
    <table class="table stacked">
      <caption class="visually-hidden">Webhooks</caption>
      <thead>
        <tr>
          <th scope="col">Address</th>
          <th scope="col">Events</th>
          <th scope="col">State</th>
        </tr>
      </thead>
      <tbody>
        ${webhooks.map(
          (webhook) => html`
            <tr>
              <th scope="row">
                <a href="/account/webhooks/${webhook.id}"><strong>${webhook.url}</strong></a>${
                  webhook.description !== '' && html`<br><span class="small soft">${webhook.description}</span>`
                }
              </th>
              <td data-label="Events"><span class="small">${webhook.events.join(', ')}</span></td>
              <td data-label="State">${stateInWords(webhook, now)}</td>
            </tr>
          `,
        )}
      </tbody>
    </table>
  `
}

function stateInWords({ disabled_at, failing_since }: ApiWebhook, now: number): Html {
  if (disabled_at !== null) return html`<span class="tag bad">Switched off</span> ${timeAgo(disabled_at, now)}`
  if (failing_since !== null) return html`<span class="tag warn">Failing</span> since ${timeAgo(failing_since, now)}`
  return html`<span class="tag good">On</span>`
}

function newForm(create: PageForm): Html {
  return html`
    <form class="card" method="post" action="${create.action}" aria-labelledby="new-webhook">
      <h2 id="new-webhook">New webhook</h2>
      ${create.start}
      ${create.text({
        name: 'url',
        label: 'Address',
        type: 'url',
        required: true,
        maxlength: MAX_URL_CHARS,
        placeholder: 'https://example.com/hooks/dropway',
        hint: 'Over HTTPS, on the public internet.',
      })}
      ${create.text({ name: 'description', label: 'Description', maxlength: MAX_NAME_CHARS, hint: 'Only you see it.' })}
      <fieldset class="stack">
        <legend>Events</legend>
        ${WEBHOOK_EVENTS.map(
          (event) => html`
            <label class="check">
              <input type="checkbox" name="events" value="${event}" ${create.isTicked('events', event, event === 'drop.published') && 'checked'}>
              <span class="mono">${event}</span>
            </label>
          `,
        )}
      </fieldset>
      <div><button class="button primary">Add webhook</button></div>
    </form>
  `
}

export interface OneWebhook {
  readonly webhook: ApiWebhook
  readonly deliveries: readonly ApiDelivery[]
  readonly issued: IssuedSecret | undefined
  readonly now: number
}

export function webhookBody(viewer: Viewer, { webhook, deliveries, issued, now }: OneWebhook): Html {
  return html`
    ${issued && secretCard(issued)}
    <section class="card" aria-labelledby="webhook">
      <h2 id="webhook">${webhook.url}</h2>
      <p>${stateInWords(webhook, now)}</p>
      ${webhook.description !== '' && html`<p class="soft">${webhook.description}</p>`}
      <p class="small soft">${webhook.events.join(', ')}</p>
      <div class="cluster">
        ${deed(viewer, webhook, 'test', 'Send a test')}
        ${deed(viewer, webhook, 'rotate', 'Replace the secret')}
        ${deed(viewer, webhook, 'delete', 'Delete', 'danger')}
        <a class="button quiet" href="/account/webhooks">Back</a>
      </div>
    </section>
    <section class="stack" aria-labelledby="messages">
      <h2 id="messages">Last messages</h2>
      ${
        deliveries.length === 0
          ? html`<p class="soft">None yet. Send a test, or publish something.</p>`
          : deliveries.map((delivery) => deliveryCard(viewer, webhook, delivery, now))
      }
    </section>
  `
}

function secretCard({ secret, isNew }: IssuedSecret): Html {
  return html`
    <section class="card raised" aria-labelledby="secret">
      <h2 id="secret">Its ${isNew ? 'secret' : 'new secret'}: copy it now</h2>
      <p>
        It is shown this once and never again.
        ${!isNew && 'For a day, messages are signed with the one before, too.'}
      </p>
      <div class="copy">
        <p class="secret">${secret}</p>
        <button class="button" type="button" data-copy="${secret}">Copy${spoken('the secret')}</button>
      </div>
    </section>
  `
}

function deed(viewer: Viewer, { id }: ApiWebhook, what: 'test' | 'rotate' | 'delete', words: string, tone = ''): Html {
  return html`
    <form method="post" action="/account/webhooks/${id}/${what}">
      ${csrfField(viewer)}
      <button class="button small ${tone}">${words}</button>
    </form>
  `
}

const STATES = {
  delivered: html`<span class="tag good">Delivered</span>`,
  waiting: html`<span class="tag warn">Waiting</span>`,
  failed: html`<span class="tag bad">Failed</span>`,
} as const

function deliveryCard(viewer: Viewer, webhook: ApiWebhook, delivery: ApiDelivery, now: number): Html {
  const attempts = delivery.attempts === 1 ? 'one attempt' : `${delivery.attempts} attempts`
  return html`
    <details class="card">
      <summary>
        ${STATES[delivery.state]} <strong>${delivery.type}</strong> ${timeAgo(delivery.created_at, now)},
        ${attempts}${delivery.status !== null && `, answered ${delivery.status}`}
      </summary>
      <div class="stack">
        ${delivery.error !== null && html`<p class="notice warn">${delivery.error}</p>`}
        <h3>Request</h3>
        <p class="small soft mono">webhook-id: ${delivery.id}</p>
        <pre tabindex="0"><code>${delivery.request}</code></pre>
        ${delivery.answer !== null && html`<h3>Answer</h3><pre tabindex="0"><code>${delivery.answer}</code></pre>`}
        <form method="post" action="/account/webhooks/${webhook.id}/redeliver">
          ${csrfField(viewer)}
          <input type="hidden" name="delivery" value="${delivery.id}">
          <button class="button small">Send again${spoken(delivery.type)}</button>
        </form>
      </div>
    </details>
  `
}
