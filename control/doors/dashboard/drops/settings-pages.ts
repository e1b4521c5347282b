/** Settings of a drop, one small form each, and its end. */
import { z } from 'zod'
import { aiUses, previewAccesses } from '../../../drops/sites/rules.ts'
import { analyticsSchema, type Analytics } from '../../../../shared/contracts/analytics.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { parse } from '../../../ground/http/api.ts'
import { seeOther } from '../../../ground/http/reply.ts'
import type { Route } from '../../../ground/http/route.ts'
import type { SitePatch } from '../../../drops/sites/schemas.ts'
import { flashOf } from '../frame/flash.ts'
import type { Handlers } from '../frame/handlers.ts'
import type { DashboardServices } from '../frame/services.ts'
import { publisherFields } from '../../../drops/publishers/rules.ts'
import { siteSettingsPage } from './settings-view.ts'

interface Card {
  patch(form: URLSearchParams): SitePatch
  /** The word for what is said afterwards. */
  done(form: URLSearchParams): string
}

const isCleared = (form: URLSearchParams): boolean => form.get('do') === 'clear'

/** What each card of the page changes, and what is true afterwards. */
const CARDS: Readonly<Record<string, Card>> = {
  general: {
    patch: (form) => ({ name: (form.get('name') ?? '').trim(), slug: (form.get('slug') ?? '').trim() }),
    done: () => 'saved-general',
  },
  behaviour: {
    patch: (form) => ({
      spa_fallback: form.has('spa_fallback'),
      gallery: form.has('gallery'),
      llms_txt: form.has('llms_txt'),
      card: form.has('card'),
      ai: parse(z.enum(aiUses), form.get('ai')),
    }),
    done: () => 'saved',
  },
  password: {
    patch: (form) => ({ password: isCleared(form) ? null : requirePassword(form.get('password')) }),
    done: (form) => (isCleared(form) ? 'password-removed' : 'password-set'),
  },
  'old-files': {
    patch: (form) => ({
      keep_old_files_days: daysOf(form.get('keep_old_files_days')),
      previews: parse(z.enum(previewAccesses), form.get('previews')),
    }),
    done: () => 'saved',
  },
  analytics: { patch: (form) => ({ analytics: analyticsOf(form) }), done: () => 'saved' },
}

/** Where the fields of the analytics card differ from the setting's own names. */
const NAMES = {
  'google_analytics.measurement_id': 'google',
  'meta_pixel.pixel_id': 'meta',
  'posthog.project_key': 'posthog',
  'posthog.host': 'posthog_host',
  'plausible.domain': 'plausible',
}

export function siteSettingsRoutes(
  { sites, publishers, clock, config }: DashboardServices,
  handlers: Handlers,
): Route[] {
  return [
    handlers.accountPage('/sites/:id/settings', async ({ request, viewer, actor, params }) =>
      siteSettingsPage(viewer, {
        site: await sites.get(actor, params.id),
        plan: actor.plan,
        sitesDomain: config.sitesDomain,
        publishers: await publishers.list(actor, params.id),
        now: clock.now(),
        ...flashOf(request),
      }),
    ),
    handlers.accountForm(
      '/sites/:id/settings/:card',
      { on: '/sites/:id/settings', verified: true, names: NAMES },
      async ({ actor, params: { id, card }, form }) => {
        const changed = Object.hasOwn(CARDS, card) ? CARDS[card] : undefined
        if (!changed) throw errors.notFound('setting')
        await sites.patch(actor, id, changed.patch(form))
        return seeOther(`/sites/${id}/settings?done=${changed.done(form)}`)
      },
    ),
    handlers.accountForm(
      '/sites/:id/publishers',
      { on: '/sites/:id/settings', verified: true },
      async ({ actor, params, form }) => {
        await publishers.add(actor, params.id, {
          ...parse(workflowSchema, filledFields(form)),
          pull_requests: form.has('pull_requests'),
        })
        return seeOther(`/sites/${params.id}/settings?done=workflow-trusted`)
      },
    ),
    handlers.accountForm(
      '/sites/:id/publishers/remove',
      { on: '/sites/:id/settings', verified: true },
      async ({ actor, params, form }) => {
        await publishers.remove(actor, params.id, form.get('id') ?? '')
        return seeOther(`/sites/${params.id}/settings?done=workflow-removed`)
      },
    ),
    handlers.accountForm(
      '/sites/:id/delete',
      { on: '/sites/:id/settings', verified: false },
      async ({ actor, params, form }) => {
        const site = await sites.get(actor, params.id)
        if (form.get('confirm')?.trim() !== site.slug)
          throw errors.invalidRequest(`confirm: type “${site.slug}” exactly to delete this drop.`)
        await sites.delete(actor, site.id)
        return seeOther('/sites?done=deleted')
      },
    ),
  ]
}

/** Empty: as the service has it. */
function daysOf(text: string | null): number | null {
  const said = (text ?? '').trim()
  if (said === '') return null
  const days = /^\d{1,3}$/.test(said) ? Number(said) : Number.NaN
  if (!(days <= 365)) throw errors.invalidRequest('keep_old_files_days: enter a number from 0 to 365, or nothing.')
  return days
}

const WORKFLOW_FIELDS = ['provider', 'repository', 'workflow', 'branch', 'environment'] as const

const workflowSchema = z.strictObject({
  provider: publisherFields.provider,
  repository: publisherFields.repository,
  workflow: publisherFields.workflow,
  branch: publisherFields.branch,
  environment: publisherFields.environment,
})

/** An empty field of the form is one that was left out. */
function filledFields(form: URLSearchParams): Record<string, string> {
  const given = WORKFLOW_FIELDS.map((name) => [name, (form.get(name) ?? '').trim()] as const)
  return Object.fromEntries(given.filter(([, value]) => value !== ''))
}

function requirePassword(password: string | null): string {
  if (!password) throw errors.invalidRequest('password: enter a password.')
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
