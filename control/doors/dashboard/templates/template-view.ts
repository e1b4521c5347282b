/** Templates: choose one, fill the form beside a live preview, publish; come back and edit the same fields. */
import { durationInWords } from '../../../ground/terms/durations.ts'
import { html, type Html } from '../../../../shared/pages/html.ts'
import type { ApiSite } from '../../../drops/sites/schemas.ts'
import type { Page, Viewer } from '../frame/layout.ts'
import { COLOURS, MAX_FIELD_CHARS, type Template, type TemplateField, type TemplateValues } from './designs/template.ts'
import { formAt, type PageForm } from '../parts/form-fields.ts'
import { nameOf, shortAddress } from '../parts/words.ts'

export function templatesPage(templates: readonly Template[]): Page {
  return {
    title: 'Templates',
    description: 'Fill in a form, get a good-looking page: a CV, an invitation, a portfolio, a page of links.',
    canonical: '/templates',
    section: 'templates',
    body: html`
      <div class="head">
        <div>
          <h1>Templates</h1>
          <p class="lead">Fill in a form, get a good-looking page. Afterwards it is a drop like any other.</p>
        </div>
      </div>
      <ul class="grid wide-grid plain">${templates.map(card)}</ul>
    `,
  }
}

function card(template: Template): Html {
  return html`
    <li>
      <a class="card" href="/templates/${template.name}">
        <div class="thumb">
          <iframe class="thumb-page" src="/templates/${template.name}/sample" title="${template.title} sample"
              tabindex="-1" sandbox="" loading="lazy"></iframe>
        </div>
        <div>
          <h2>${template.title}</h2>
          <p class="soft">${template.summary}</p>
        </div>
      </a>
    </li>
  `
}

export interface TemplateForm {
  readonly template: Template
  readonly values: TemplateValues
  /** The drop that is edited; undefined for a new one. */
  readonly site: ApiSite | undefined
  readonly anonymousLifetimeMs: number
}

export function templatePage(viewer: Viewer, view: TemplateForm): Page {
  const { template, values, site } = view
  const form = formAt(viewer, `/templates/${template.name}`)
  return {
    title: template.title,
    ...(site ? {} : { description: template.summary, canonical: `/templates/${template.name}` }),
    section: 'templates',
    scripts: ['template'],
    body: html`
      <div class="head">
        <div>
          <p class="small">
            ${site ? html`<a href="/sites/${site.id}">${nameOf(site)}</a>` : html`<a href="/templates">Templates</a>`}
          </p>
          <h1>${template.title}</h1>
          <p class="soft">
            ${site ? html`Editing <a href="${site.url}">${shortAddress(site.url)}</a>` : template.summary}
          </p>
        </div>
      </div>
      <div class="two">
        <form class="form" method="post" action="${form.action}" data-template
            data-preview-action="${form.action}/preview">
          ${form.start}
          ${site && html`<input type="hidden" name="site" value="${site.id}">`}
          ${template.fields.map((field) => fieldOf(form, field, values[field.name] ?? ''))}
          <div class="cluster">
            ${submitButton(viewer, view)}
            <button class="button" formaction="/templates/${template.name}/preview" formtarget="preview"
                formnovalidate>Preview</button>
          </div>
        </form>
        <div class="preview-frame tall toc" data-preview>
          <iframe class="preview" name="preview" title="Preview" sandbox="allow-scripts"
              src="/templates/${template.name}/sample"></iframe>
        </div>
      </div>
    `,
  }
}

function submitButton(viewer: Viewer, { site, anonymousLifetimeMs }: TemplateForm): Html {
  if (!viewer.signedIn)
    return html`<button class="button primary">Publish for ${durationInWords(anonymousLifetimeMs)}</button>`
  return html`<button class="button primary">${site ? 'Publish the changes' : 'Publish'}</button>`
}

const TYPES = { text: 'text', url: 'url', email: 'email', date: 'date', time: 'time' } as const

function fieldOf(form: PageForm, field: TemplateField, value: string): Html {
  const hint = field.hint === undefined ? {} : { hint: field.hint }
  const common = {
    name: field.name,
    label: field.label,
    value,
    required: field.required ?? false,
    maxlength: MAX_FIELD_CHARS,
    ...hint,
  }
  switch (field.kind) {
    case 'colour':
      return form.select({
        name: field.name,
        label: field.label,
        value,
        options: [...COLOURS].map(([name, colour]) => [name, colour.label] as const),
      })
    case 'long':
      return form.text({ ...common, rows: 4 })
    case 'lines':
      return form.text({ ...common, rows: 6 })
    default:
      return form.text({ ...common, type: TYPES[field.kind] })
  }
}
