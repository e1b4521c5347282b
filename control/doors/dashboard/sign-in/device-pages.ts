/** `/device`: the page where a person lets in a machine that has no browser (RFC 8628 §3.3). */
import { errors } from '../../../../shared/contracts/errors.ts'
import { html } from '../../../../shared/pages/html.ts'
import { DEVICE_PAGE } from '../../oauth/device.ts'
import type { Route } from '../../../ground/http/route.ts'
import type { AccountRequest } from '../frame/callers.ts'
import type { AccountFormRequest, Handlers } from '../frame/handlers.ts'
import type { Answer } from '../frame/returned-forms.ts'
import type { DashboardServices } from '../frame/services.ts'
import { messagePage } from '../parts/message-page.ts'
import { deviceCodePage, deviceConsentPage } from './device-view.ts'
import { showVerifyFirst } from './waiting-decision.ts'

/** The organisation that the page showed: when another was chosen since, the page is shown again. */
const SHOWN_ORGANISATION = 'organisation'
const DEAD_CODE =
  'user_code: there is no such code, or it has expired. Look again at your device, or start again there.'

export function deviceRoutes({ oauth, organisations }: DashboardServices, handlers: Handlers): Route[] {
  async function ask(asked: AccountRequest, typed: string): Promise<Answer> {
    const { actor, viewer } = asked
    const waiting = await oauth.device.find(actor, typed)
    if (!waiting) throw errors.invalidRequest(DEAD_CODE)
    const organisation = (await organisations.list(actor)).find((candidate) => candidate.id === actor.orgId)
    return deviceConsentPage(viewer, DEVICE_PAGE, {
      ...waiting,
      organisation: organisation?.name ?? actor.orgId,
      email: actor.email,
      hidden: { user_code: waiting.userCode, [SHOWN_ORGANISATION]: actor.orgId },
    })
  }

  async function decide(asked: AccountFormRequest, typed: string): Promise<Answer> {
    const { actor, form } = asked
    if (form.get(SHOWN_ORGANISATION) !== actor.orgId) return ask(asked, typed)
    const decision = form.get('decision') === 'allow' ? 'allow' : 'deny'
    if (!(await oauth.device.decide(actor, typed, decision))) throw errors.invalidRequest(DEAD_CODE)
    return decision === 'allow'
      ? messagePage({
          title: 'Your device is signed in',
          lead: 'Go back to it: it goes on by itself within a few seconds. You can close this page.',
          actions: html`<a class="button" href="/account/apps">Connected apps</a>`,
        })
      : messagePage({ title: 'Denied', lead: 'The device hears it within a few seconds, and gets no access.' })
  }

  return [
    handlers.accountPage(DEVICE_PAGE, (asked) =>
      asked.actor.emailVerified
        ? deviceCodePage(asked.viewer, {
            action: DEVICE_PAGE,
            userCode: asked.request.query.get('user_code') ?? '',
          })
        : showVerifyFirst(handlers, asked, asked.actor.email),
    ),
    handlers.accountForm(DEVICE_PAGE, { on: DEVICE_PAGE, keeps: ['user_code'], verified: true }, (asked) => {
      const typed = asked.form.get('user_code') ?? ''
      return asked.form.has('decision') ? decide(asked, typed) : ask(asked, typed)
    }),
  ]
}
