/** Settings of a drop. Each card is a form of its own: saving one thing never touches another. */
import { MAX_NAME_CHARS, MAX_PASSWORD_CHARS, MAX_SLUG_CHARS, MIN_SLUG_CHARS } from '../../../../shared/limits.ts'
import { html, type Html } from '../../../../shared/pages/html.ts'
import { plans, type PlanName } from '../../../../shared/plans.ts'
import type { ApiSite } from '../../../drops/sites/schemas.ts'
import { csrfField, type Page, type Viewer } from '../frame/layout.ts'
import { checkbox, selectField, textField } from '../parts/form-fields.ts'
import { sitePage } from './drop-frame.ts'
import { spoken } from '../parts/words.ts'

export interface SiteSettings {
  readonly site: ApiSite
  readonly plan: PlanName
  readonly sitesDomain: string
  readonly flash?: Page['flash']
}

export function siteSettingsPage(viewer: Viewer, view: SiteSettings): Page {
  const { site, plan } = view
  const allowed = plans[plan]
  return sitePage(site, '/settings', {
    flash: view.flash,
    status: view.flash?.tone === 'bad' ? 400 : 200,
    body: html`${card(viewer, site, 'general', 'General', general(view))}
      ${card(viewer, site, 'behaviour', 'Behaviour', behaviour(site))}
      ${
        allowed.password || site.has_password
          ? passwordCard(viewer, site)
          : upgradeCard('Password', 'Ask visitors for a password before they see this drop.')
      }
      ${
        allowed.analytics
          ? card(viewer, site, 'analytics', 'Analytics', analytics(site))
          : upgradeCard(
              'Analytics',
              'Add Google Analytics, Meta Pixel, PostHog or Plausible to every page, without touching your files.',
            )
      }
      ${dangerCard(viewer, site)}`,
  })
}

function card(viewer: Viewer, site: ApiSite, name: string, title: string, fields: Html): Html {
  return html`
    <form class="card" method="post" action="/sites/${site.id}/settings/${name}"
        aria-labelledby="${name}-title">
      ${csrfField(viewer)}
      <h2 id="${name}-title">${title}</h2>
      ${fields}
      <div><button class="button primary">Save${spoken(title)}</button></div>
    </form>
  `
}

function upgradeCard(title: string, text: string): Html {
  return html`
    <section class="card">
      <h2>${title}</h2>
      <p class="soft">${text} Part of Plus and Business.</p>
      <div><a class="button" href="/account/plan">See the plans</a></div>
    </section>
  `
}

function general({ site, sitesDomain }: SiteSettings): Html {
  return html`
    <div class="row">
      ${textField({ name: 'name', label: 'Name', value: site.name, maxlength: MAX_NAME_CHARS, hint: 'Only you see it.' })}
      <div class="field">
        <label for="slug">Address</label>
        <div class="address">
          <input class="input" id="slug" name="slug" value="${site.slug}" required minlength="${MIN_SLUG_CHARS}"
              maxlength="${MAX_SLUG_CHARS}" autocomplete="off" autocapitalize="none" spellcheck="false"
              aria-describedby="slug-hint">
          <span>.${sitesDomain}</span>
        </div>
        <span class="hint" id="slug-hint">The old address leads to the new one for a while.</span>
      </div>
    </div>
  `
}

function behaviour(site: ApiSite): Html {
  return html`${checkbox({
    name: 'spa_fallback',
    label: 'Single-page app',
    hint: 'Unknown paths show index.html instead of “not found”.',
    checked: site.spa_fallback,
  })}
    ${checkbox({
      name: 'gallery',
      label: 'Show it in the public gallery',
      hint: 'Only while it is live and without a password.',
      checked: site.gallery,
    })}`
}

function passwordCard(viewer: Viewer, site: ApiSite): Html {
  return html`
    <form class="card" method="post" action="/sites/${site.id}/settings/password"
        aria-labelledby="password-title">
      ${csrfField(viewer)}
      <h2 id="password-title">Password</h2>
      <p class="soft">
        ${
          site.has_password
            ? 'Visitors need the password. Changing it locks everyone out at once.'
            : 'Anyone with the address can see this drop.'
        } It is access control, not encryption.
      </p>
      ${textField({
        name: 'password',
        label: site.has_password ? 'New password' : 'Password',
        type: 'password',
        maxlength: MAX_PASSWORD_CHARS,
        autocomplete: 'new-password',
      })}
      <div class="cluster">
        <button class="button primary" name="do" value="set">${site.has_password ? 'Change password' : 'Set password'}</button>
        ${
          site.has_password &&
          html`<button class="button" name="do" value="clear" formnovalidate>Remove password</button>`
        }
      </div>
    </form>
  `
}

function analytics(site: ApiSite): Html {
  const value = site.analytics ?? {}
  return html`
    <p class="soft">Added to every page when it is served; your files stay as they are.</p>
    <div class="row">
      ${textField({
        name: 'google',
        label: 'Google Analytics',
        value: value.google_analytics?.measurement_id ?? '',
        placeholder: 'G-XXXXXXXXXX',
        hint: 'Measurement ID',
      })}
      ${textField({
        name: 'meta',
        label: 'Meta Pixel',
        value: value.meta_pixel?.pixel_id ?? '',
        placeholder: '1234567890',
        hint: 'Pixel ID',
      })}
      ${textField({
        name: 'posthog',
        label: 'PostHog',
        value: value.posthog?.project_key ?? '',
        placeholder: 'phc_…',
        hint: 'Project key',
      })}
      ${textField({
        name: 'posthog_host',
        label: 'PostHog host',
        value: value.posthog?.host ?? '',
        placeholder: 'https://ph.example.com',
        hint: 'Only when you host it yourself',
      })}
      ${textField({
        name: 'plausible',
        label: 'Plausible',
        value: value.plausible?.domain ?? '',
        placeholder: 'example.com',
        hint: 'Domain as configured there',
      })}
      ${selectField({
        name: 'consent_banner',
        label: 'Consent banner',
        value: value.consent_banner ?? 'auto',
        options: [
          ['auto', 'When a provider sets cookies'],
          ['on', 'Always'],
          ['off', 'Never'],
        ],
        hint: 'Asks before cookies are set, in the visitor’s language.',
      })}
    </div>
  `
}

function dangerCard(viewer: Viewer, site: ApiSite): Html {
  return html`
    <form class="card danger" method="post" action="/sites/${site.id}/delete" aria-labelledby="delete-title">
      ${csrfField(viewer)}
      <h2 id="delete-title">Delete this drop</h2>
      <p>All versions are removed at once and for good. The address says that it is gone.</p>
      ${textField({
        name: 'confirm',
        label: `Type “${site.slug}” to confirm`,
        required: true,
        autocomplete: 'off',
        pattern: site.slug,
      })}
      <div><button class="button danger">Delete for good</button></div>
    </form>
  `
}
