/** Settings of a drop, one small form each, and its end. */
import { analyticsSchema, type Analytics } from '../../../../shared/analytics.ts'
import { errors } from '../../../../shared/errors.ts'
import { parse } from '../../../ground/http/api.ts'
import { seeOther } from '../../../ground/http/reply.ts'
import type { Route } from '../../../ground/http/route.ts'
import type { SitePatch } from '../../../drops/sites/schemas.ts'
import { flashOf } from '../frame/flash.ts'
import { orShow, problemText, type AccountRequest, type Answer, type Handlers } from '../frame/handlers.ts'
import type { Page } from '../frame/layout.ts'
import type { DashboardServices } from '../frame/services.ts'
import { siteSettingsPage } from './settings-view.ts'

/** What each card of the page changes. */
const CARDS: Readonly<Record<string, (form: URLSearchParams) => SitePatch>> = {
  general: (form) => ({ name: (form.get('name') ?? '').trim(), slug: (form.get('slug') ?? '').trim() }),
  behaviour: (form) => ({ spa_fallback: form.has('spa_fallback'), gallery: form.has('gallery') }),
  password: (form) => ({ password: form.get('do') === 'clear' ? null : requirePassword(form.get('password')) }),
  analytics: (form) => ({ analytics: analyticsOf(form) }),
}

export function siteSettingsRoutes({ sites, config }: DashboardServices, handlers: Handlers): Route[] {
  async function show(
    { request, viewer, actor, params }: AccountRequest & { params: { id: string } },
    flash?: Page['flash'],
  ): Promise<Answer> {
    const site = await sites.get(actor, params.id)
    return siteSettingsPage(viewer, {
      site,
      plan: actor.plan,
      sitesDomain: config.sitesDomain,
      flash: flash ?? flashOf(request).flash,
    })
  }

  return [
    handlers.accountPage('/sites/:id/settings', (asked) => show(asked)),
    handlers.accountForm('/sites/:id/settings/:card', { verified: true }, (asked) =>
      orShow(
        async () => {
          const { id, card } = asked.params
          const patchOf = Object.hasOwn(CARDS, card) ? CARDS[card] : undefined
          if (!patchOf) throw errors.notFound('setting')
          await sites.patch(asked.actor, id, patchOf(asked.form))
          return seeOther(`/sites/${id}/settings?done=saved`)
        },
        (problem) => show(asked, { tone: 'bad', text: problemText(problem) }),
      ),
    ),
    handlers.accountForm('/sites/:id/delete', { verified: false }, (asked) =>
      orShow(
        async () => {
          const site = await sites.get(asked.actor, asked.params.id)
          if (asked.form.get('confirm')?.trim() !== site.slug)
            throw errors.invalidRequest(`Type “${site.slug}” exactly to delete this drop.`)
          await sites.delete(asked.actor, site.id)
          return seeOther('/sites?done=deleted')
        },
        (problem) => {
          if (problem.status === 404) throw problem
          return show(asked, { tone: 'bad', text: problemText(problem) })
        },
      ),
    ),
  ]
}

function requirePassword(password: string | null): string {
  if (!password) throw errors.invalidRequest('Enter a password.')
  return password
}

/** Empty fields are providers that are not used; all empty means no analytics at all. */
function analyticsOf(form: URLSearchParams): Analytics | null {
  const text = (name: string): string => (form.get(name) ?? '').trim()
  const providers = {
    ...(text('google') === '' ? {} : { google_analytics: { measurement_id: text('google') } }),
    ...(text('meta') === '' ? {} : { meta_pixel: { pixel_id: text('meta') } }),
    ...(text('posthog') === ''
      ? {}
      : {
          posthog: {
            project_key: text('posthog'),
            ...(text('posthog_host') === '' ? {} : { host: text('posthog_host') }),
          },
        }),
    ...(text('plausible') === '' ? {} : { plausible: { domain: text('plausible') } }),
  }
  const banner = text('consent_banner') || 'auto'
  if (Object.keys(providers).length === 0 && banner === 'auto') return null
  return parse(analyticsSchema, { ...providers, consent_banner: banner })
}
