/** `/device`: the page where a person lets in a machine that has no browser (RFC 8628 §3.3). */
import { html } from '../../../../shared/pages/html.ts'
import { DEVICE_PAGE } from '../../oauth/device.ts'
import type { Route } from '../../../ground/http/route.ts'
import {
  orShow,
  problemText,
  type AccountFormVisit,
  type AccountVisit,
  type Answer,
  type Handlers,
} from '../frame/handlers.ts'
import type { DashboardServices } from '../frame/services.ts'
import { messagePage } from '../parts/message-page.ts'
import { deviceCodePage, deviceConsentPage } from './device-view.ts'
import { showVerifyFirst } from './waiting-decision.ts'

/** The organisation that the page showed: when another was chosen since, the page is shown again. */
const SHOWN_ORGANISATION = 'organisation'
const DEAD_CODE = 'There is no such code, or it has expired. Look again at your device, or start again there.'

export function deviceRoutes({ oauth, organisations }: DashboardServices, handlers: Handlers): Route[] {
  async function ask(visit: AccountVisit, typed: string): Promise<Answer> {
    const { actor, viewer } = visit
    const asked = await oauth.device.find(actor, typed)
    if (!asked) return askForCode(visit, typed, DEAD_CODE, 400)
    const organisation = (await organisations.list(actor)).find((candidate) => candidate.id === actor.orgId)
    return deviceConsentPage(viewer, DEVICE_PAGE, {
      ...asked,
      organisation: organisation?.name ?? actor.orgId,
      email: actor.email,
      hidden: { user_code: asked.userCode, [SHOWN_ORGANISATION]: actor.orgId },
    })
  }

  async function decide(visit: AccountFormVisit, typed: string): Promise<Answer> {
    const { actor, form } = visit
    if (form.get(SHOWN_ORGANISATION) !== actor.orgId) return ask(visit, typed)
    const decision = form.get('decision') === 'allow' ? 'allow' : 'deny'
    if (!(await oauth.device.decide(actor, typed, decision))) return askForCode(visit, typed, DEAD_CODE, 400)
    return decision === 'allow'
      ? messagePage({
          title: 'Your device is signed in',
          lead: 'Go back to it: it goes on by itself within a few seconds. You can close this page.',
          actions: html`<a class="button" href="/account/apps">Connected apps</a>`,
        })
      : messagePage({ title: 'Denied', lead: 'The device hears it within a few seconds, and gets no access.' })
  }

  return [
    handlers.accountPage(DEVICE_PAGE, (visit) =>
      visit.actor.emailVerified
        ? deviceCodePage(visit.viewer, {
            action: DEVICE_PAGE,
            userCode: visit.request.query.get('user_code') ?? '',
          })
        : showVerifyFirst(handlers, visit, visit.actor.email),
    ),
    handlers.accountForm(DEVICE_PAGE, { verified: true }, (visit) => {
      const typed = visit.form.get('user_code') ?? ''
      return orShow(
        () => (visit.form.has('decision') ? decide(visit, typed) : ask(visit, typed)),
        (problem) => askForCode(visit, typed, problemText(problem), problem.status),
      )
    }),
  ]
}

function askForCode({ viewer }: AccountVisit, userCode: string, problem: string, status: number): Answer {
  return deviceCodePage(viewer, { action: DEVICE_PAGE, userCode, problem, status })
}
