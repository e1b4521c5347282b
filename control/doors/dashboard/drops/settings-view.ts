/** Settings of a drop. Each card is a form of its own: saving one thing never touches another. */
import {
  MAX_NAME_CHARS,
  MAX_PASSWORD_CHARS,
  MAX_SLUG_CHARS,
  MIN_SLUG_CHARS,
} from '../../../../shared/contracts/limits.ts'
import { html, type Html } from '../../../../shared/pages/html.ts'
import { plans, soldPlans, type Plan, type PlanName } from '../../../ground/terms/plans.ts'
import type { ApiSite } from '../../../drops/sites/schemas.ts'
import type { Publishers } from '../../../drops/publishers/publishers.ts'
import { csrfField, type Page, type Viewer } from '../frame/layout.ts'
import { formAt, type PageForm } from '../parts/form-fields.ts'
import { sitePage } from './drop-frame.ts'
import { spoken, timeAgo } from '../parts/words.ts'

export interface SiteSettings {
  readonly site: ApiSite
  readonly plan: PlanName
  readonly sitesDomain: string
  readonly flash?: Page['flash']
  /** The workflows that may publish. */
  readonly publishers: readonly Publisher[]
  readonly now: number
}

export function siteSettingsPage(viewer: Viewer, view: SiteSettings): Page {
  const { site, plan } = view
  const allowed = plans[plan]
  const formOf = (name: string): PageForm => formAt(viewer, `/sites/${site.id}/settings/${name}`)
  return sitePage(site, '/settings', {
    flash: view.flash,
    scripts: ['address'],
    body: html`${card(formOf('general'), 'General', (form) => general(form, view))}
      ${card(formOf('behaviour'), 'Behaviour', (form) => behaviour(form, site))}
      ${card(formOf('old-files'), 'Former versions', (form) => formerVersions(form, site))}
      ${
        allowed.password || site.has_password
          ? passwordCard(formOf('password'), site)
          : upgradeCard(
              'Password',
              'Ask visitors for a password before they see this drop.',
              ({ password }) => password,
            )
      }
      ${
        allowed.analytics
          ? card(formOf('analytics'), 'Analytics', (form) => analytics(form, site))
          : upgradeCard(
              'Analytics',
              'Add Google Analytics, Meta Pixel, PostHog or Plausible to every page, without touching your files.',
              ({ analytics: isPart }) => isPart,
            )
      }
      ${workflowsCard(viewer, site.id, view)}
      ${dangerCard(formAt(viewer, `/sites/${site.id}/delete`), site)}`,
  })
}

function card(form: PageForm, title: string, fields: (form: PageForm) => Html): Html {
  const id = `${title.toLowerCase().replaceAll(' ', '-')}-title`
  return html`
    <form class="card" method="post" action="${form.action}" aria-labelledby="${id}">
      <h2 id="${id}">${title}</h2>
      ${form.start}
      ${fields(form)}
      <div><button class="button primary">Save${spoken(title)}</button></div>
    </form>
  `
}

function upgradeCard(title: string, text: string, has: (plan: Plan) => boolean): Html | undefined {
  const labels = soldPlans()
    .filter(has)
    .map(({ label }) => label)
  if (labels.length === 0) return undefined
  return html`
    <section class="card">
      <h2>${title}</h2>
      <p class="soft">${text} Part of ${labels.join(' and ')}.</p>
      <div><a class="button" href="/account/plan">See the plans</a></div>
    </section>
  `
}

function general(form: PageForm, { site, sitesDomain }: SiteSettings): Html {
  return html`
    <div class="row">
      ${form.text({ name: 'name', label: 'Name', value: site.name, maxlength: MAX_NAME_CHARS, hint: 'Only you see it.' })}
      ${form.text({
        name: 'slug',
        label: 'Address',
        value: site.slug,
        required: true,
        minlength: MIN_SLUG_CHARS,
        maxlength: MAX_SLUG_CHARS,
        verbatim: true,
        suffix: `.${sitesDomain}`,
        hint: 'The old address leads to the new one for a while.',
      })}
    </div>
  `
}

function behaviour(form: PageForm, site: ApiSite): Html {
  return html`${form.check({
    name: 'spa_fallback',
    label: 'Single-page app',
    hint: 'Unknown paths show index.html instead of “not found”.',
    checked: site.spa_fallback,
  })}
    ${form.check({
      name: 'gallery',
      label: 'Show it in the public gallery',
      hint: 'Only while it is live and without a password.',
      checked: site.gallery,
    })}
    ${form.check({
      name: 'card',
      label: 'Draw a picture for shared links',
      hint: 'With its title, in Latin, Greek or Cyrillic letters, for pages without an og:image of their own. Only while everyone may see it.',
      checked: site.card,
    })}
    ${form.check({
      name: 'llms_txt',
      label: 'List its pages for machines',
      hint: 'At /llms.txt, unless you publish a file of that name.',
      checked: site.llms_txt,
    })}
    ${form.select({
      name: 'ai',
      label: 'What AI may do with it',
      value: site.ai,
      options: [
        ['allow', 'Read it and learn from it'],
        ['no-training', 'Read it, but not learn from it'],
        ['none', 'Neither'],
      ],
      hint: 'A wish that well-behaved machines follow, said in /robots.txt unless you publish one.',
    })}`
}

function formerVersions(form: PageForm, site: ApiSite): Html {
  return html`
    <p class="soft">
      A tab that was opened before you publish goes on asking for the files of its version. Scripts, styles, images
      and everything else that is no page stay reachable for a while, unless the new version has something at their
      address.
    </p>
    ${form.text({
      name: 'keep_old_files_days',
      label: 'Days that old files stay reachable',
      value: site.keep_old_files_days === null ? '' : String(site.keep_old_files_days),
      hint: '0 to 365; 0 ends it at once. Empty: as usual here.',
    })}
    ${form.select({
      name: 'previews',
      label: 'Who may see previews',
      value: site.previews,
      options: [
        ['link', 'Whoever has the address'],
        ['members', 'Members of this organisation'],
        ['off', 'No one'],
      ],
      hint: 'Former versions and named previews have addresses of their own. A password protects them too.',
    })}
  `
}

function passwordCard(form: PageForm, site: ApiSite): Html {
  return html`
    <form class="card" method="post" action="${form.action}" aria-labelledby="password-title">
      <h2 id="password-title">Password</h2>
      ${form.start}
      <p class="soft">
        ${
          site.has_password
            ? 'Visitors need the password. Changing it locks everyone out at once.'
            : 'Anyone with the address can see this drop.'
        } It is access control, not encryption.
      </p>
      ${form.text({
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

function analytics(form: PageForm, site: ApiSite): Html {
  const value = site.analytics ?? {}
  return html`
    <p class="soft">Added to every page when it is served; your files stay as they are.</p>
    <div class="row">
      ${form.text({
        name: 'google',
        label: 'Google Analytics',
        value: value.google_analytics?.measurement_id ?? '',
        placeholder: 'G-XXXXXXXXXX',
        hint: 'Measurement ID',
      })}
      ${form.text({
        name: 'meta',
        label: 'Meta Pixel',
        value: value.meta_pixel?.pixel_id ?? '',
        placeholder: '1234567890',
        hint: 'Pixel ID',
      })}
      ${form.text({
        name: 'posthog',
        label: 'PostHog',
        value: value.posthog?.project_key ?? '',
        placeholder: 'phc_…',
        hint: 'Project key',
      })}
      ${form.text({
        name: 'posthog_host',
        label: 'PostHog host',
        value: value.posthog?.host ?? '',
        placeholder: 'https://ph.example.com',
        hint: 'Only when you host it yourself',
      })}
      ${form.text({
        name: 'plausible',
        label: 'Plausible',
        value: value.plausible?.domain ?? '',
        placeholder: 'example.com',
        hint: 'Domain as configured there',
      })}
      ${form.select({
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

function dangerCard(form: PageForm, site: ApiSite): Html {
  return html`
    <form class="card danger" method="post" action="${form.action}" aria-labelledby="delete-title">
      <h2 id="delete-title">Delete this drop</h2>
      ${form.start}
      <p>All versions are removed at once and for good. The address says that it is gone.</p>
      ${form.text({
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

type Publisher = Awaited<ReturnType<Publishers['list']>>[number]

const FORGES = [
  ['github', 'GitHub Actions'],
  ['gitlab', 'GitLab CI'],
  ['forgejo', 'Forgejo Actions (Codeberg)'],
] as const

function workflowsCard(viewer: Viewer, siteId: string, { publishers, now }: SiteSettings): Html {
  const form = formAt(viewer, `/sites/${siteId}/publishers`)
  return html`
    <section class="card" aria-labelledby="workflows-title">
      <h2 id="workflows-title">Publish from CI without a secret</h2>
      <p class="soft">
        A workflow that this drop trusts publishes with the token of its own forge: there is nothing to store, to leak or
        to renew. <a href="/docs/continuous-integration">How to set it up</a>
      </p>
      ${publishers.length > 0 && publisherList(viewer, siteId, publishers, now)}
      <details${form.isRefused || publishers.length === 0 ? html` open` : ''}>
        <summary>Trust a workflow</summary>
        <form class="form" method="post" action="${form.action}">
          ${form.start}
          <div class="row">
            ${form.select({ name: 'provider', label: 'Forge', value: 'github', options: FORGES })}
            ${form.text({ name: 'repository', label: 'Repository', required: true, placeholder: 'owner/name', verbatim: true })}
          </div>
          <div class="row">
            ${form.text({ name: 'workflow', label: 'Workflow file', placeholder: 'deploy.yml', verbatim: true, hint: 'Any, when empty.' })}
            ${form.text({ name: 'branch', label: 'Branch', placeholder: 'main', verbatim: true, hint: 'Any, when empty.' })}
            ${form.text({ name: 'environment', label: 'Environment', verbatim: true, hint: 'Any, when empty.' })}
          </div>
          ${form.check({
            name: 'pull_requests',
            checked: false,
            label: 'Pull requests may publish to previews',
            hint: 'Each, also from a fork, to a preview of its own such as pr-12, and to nothing else. Anyone can propose a change.',
          })}
          <div><button class="button primary">Trust this workflow</button></div>
        </form>
      </details>
    </section>
  `
}

function publisherList(viewer: Viewer, siteId: string, publishers: readonly Publisher[], now: number): Html {
  return html`
    <ul class="plain stack">
      ${publishers.map(
        (publisher) => html`
          <li class="head">
            <div>
              <strong>${publisher.repository}</strong>
              <p class="small soft">
                ${publisher.provider}${[publisher.workflow, publisher.branch, publisher.environment]
                  .filter((part) => part !== null)
                  .map((part) => ` · ${part}`)}${publisher.pullRequests && ' · pull requests to previews'} ·
                ${publisher.lastUsedAt === null ? 'not used yet' : html`used ${timeAgo(publisher.lastUsedAt, now)}`}
              </p>
            </div>
            <form method="post" action="/sites/${siteId}/publishers/remove">
              ${csrfField(viewer)}
              <input type="hidden" name="id" value="${publisher.id}">
              <button class="button small danger">Remove${spoken(publisher.repository)}</button>
            </form>
          </li>
        `,
      )}
    </ul>
  `
}
