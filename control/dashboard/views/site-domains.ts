/** Custom domains of a drop: what state they are in, and the doctor's advice on what to do next. */
import { html, type Html } from '../../../shared/pages/html.ts'
import { plans, type PlanName } from '../../../shared/plans.ts'
import type { DomainView, SingleDomainView } from '../../domains/schemas.ts'
import type { SiteView } from '../../sites/schemas.ts'
import { csrfField, type Page, type Viewer } from '../layout.ts'
import { checkbox, problemNotice, textField } from './form-fields.ts'
import { sitePage } from './site-frame.ts'
import { dayInWords, shortAddress, timeAgo } from './words.ts'

export interface SiteDomains {
  readonly site: SiteView
  readonly domains: readonly DomainView[]
  readonly plan: PlanName
  readonly problem?: string
  readonly typed?: string
  readonly flash?: Page['flash']
  readonly now: number
}

const STATES: Readonly<Record<SingleDomainView['state'], { tone: string; word: string }>> = {
  awaiting_dns: { tone: 'warn', word: 'Waiting for DNS' },
  issuing: { tone: 'accent', word: 'Getting the certificate' },
  active: { tone: 'good', word: 'Active' },
  failing: { tone: 'bad', word: 'Needs attention' },
  blocked: { tone: 'bad', word: 'Blocked' },
}

export function siteDomainsPage(viewer: Viewer, view: SiteDomains): Page {
  const { site, domains, plan } = view
  const isSettled = domains.every(
    (domain) => domain.state === 'active' && (domain.pair === null || domain.pair.state === 'active'),
  )
  return sitePage(site, '/domains', {
    flash: view.flash,
    ...(isSettled ? {} : { scripts: ['domains'] }),
    body: html`<p class="soft">This drop is always at <a href="${site.url}">${shortAddress(site.url)}</a>. ${domains.length === 0 && plans[plan].customDomains > 0 && 'Add a domain of your own and visitors can use that, too.'}</p>
<div class="section" data-domains>${domains.map((domain) => domainCard(viewer, site, domain, view.now))}</div>
${plans[plan].customDomains > 0 ? addForm(viewer, view) : html`<section class="card"><h2>Your own domain</h2><p class="soft">Serve this drop from a domain of yours, with a certificate that renews itself. Part of Plus and Business.</p><div><a class="button" href="/account/plan">See the plans</a></div></section>`}`,
  })
}

function domainCard(viewer: Viewer, site: SiteView, domain: DomainView, now: number): Html {
  const hidden = html`${csrfField(viewer)}<input type="hidden" name="domain" value="${domain.domain}">`
  return html`<section class="card" aria-label="${domain.domain}">${half(domain, now)}${domain.pair && half(domain.pair, now)}
<div class="cluster"><form method="post" action="/sites/${site.id}/domains/check">${hidden}<button class="button">Check now<span class="visually-hidden"> ${domain.domain}</span></button></form>
<form method="post" action="/sites/${site.id}/domains/remove">${hidden}<button class="button danger">Remove<span class="visually-hidden"> ${domain.domain}</span></button></form></div></section>`
}

function half(domain: SingleDomainView, now: number): Html {
  const { tone, word } = STATES[domain.state]
  const isDone = domain.state === 'active'
  return html`<div class="stack"><div class="head"><div><h2>${isDone ? html`<a href="https://${domain.domain}">${domain.domain}</a>` : domain.domain}</h2>${domain.redirect_to !== null && html`<p class="small soft">leads to ${domain.redirect_to}</p>`}</div><span class="tag ${tone}">${word}</span></div>
${domain.detail !== '' && html`<p>${domain.detail}</p>`}
${!isDone && recordTable(domain)}
<p class="hint">${domain.checked_at === null ? 'Not checked yet.' : html`Checked ${timeAgo(domain.checked_at, now)}.`}${!isDone && domain.next_check_at !== null && html` Next check ${timeAgo(domain.next_check_at, now)}.`}${domain.certificate && ` Certificate until ${dayInWords(domain.certificate.not_after)}, renewed by itself.`}</p></div>`
}

function recordTable({ record, records }: SingleDomainView): Html {
  const others = records.filter((other) => other.type !== record.type || other.value !== record.value)
  const row = (entry: typeof record): Html =>
    html`<tr><td data-label="Type"><code>${entry.type}</code></td><td data-label="Name"><code>${entry.name}</code></td><td data-label="Value"><code>${entry.value}</code></td></tr>`
  const table = (rows: readonly Html[], caption: string): Html =>
    html`<table class="table stacked"><caption class="visually-hidden">${caption}</caption><thead><tr><th scope="col">Type</th><th scope="col">Name</th><th scope="col">Value</th></tr></thead><tbody>${rows}</tbody></table>`
  return html`<p class="small">Set this record at your DNS provider:</p>${table([row(record)], 'Record to set')}
${others.length > 0 && html`<details><summary class="small">Other records that help</summary>${table(others.map(row), 'Other records')}</details>`}`
}

function addForm(viewer: Viewer, { site, problem, typed }: SiteDomains): Html {
  return html`<form class="card" method="post" action="/sites/${site.id}/domains" aria-labelledby="add-domain">${csrfField(viewer)}<h2 id="add-domain">Add a domain</h2>${problemNotice(problem)}
${textField({ name: 'domain', label: 'Domain', value: typed ?? '', required: true, placeholder: 'www.example.com', autocomplete: 'off', maxlength: 253 })}
${checkbox({ name: 'pair', label: 'Bring its www (or bare) counterpart along', hint: 'It leads to the domain above.', checked: true })}
<div><button class="button primary">Add domain</button></div></form>`
}
