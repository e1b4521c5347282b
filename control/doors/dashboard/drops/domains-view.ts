/** Custom domains of a drop: what state they are in, and the doctor's advice on what to do next. */
import { MAX_HOST_CHARS } from '../../../../shared/contracts/limits.ts'
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import { plans, soldPlans, type PlanName } from '../../../ground/terms/plans.ts'
import { isWildcard } from '../../../drops/domains/dns/names.ts'
import type { RecordLine } from '../../../drops/domains/doctor/diagnose.ts'
import type { ApiDomain, ApiSingleDomain } from '../../../drops/domains/schemas.ts'
import type { ApiSite } from '../../../drops/sites/schemas.ts'
import { csrfField, type Page, type Viewer } from '../frame/layout.ts'
import { confirmCard } from '../parts/confirm-card.ts'
import { formAt } from '../parts/form-fields.ts'
import { sitePage } from './drop-frame.ts'
import { countInWords, dayInWords, shortAddress, spoken, timeAgo } from '../parts/words.ts'

export interface SiteDomains {
  readonly site: ApiSite
  readonly domains: readonly ApiDomain[]
  /** How many domains all drops of the organisation have. */
  readonly used: number
  readonly plan: PlanName
  /** Whether the service can prove wildcards; the plan has to allow them too. */
  readonly offersWildcards: boolean
  readonly flash?: Page['flash']
  readonly now: number
}

const STATES: Readonly<Record<ApiSingleDomain['state'], { tone: string; word: string }>> = {
  awaiting_dns: { tone: 'warn', word: 'Waiting for DNS' },
  issuing: { tone: 'accent', word: 'Getting the certificate' },
  active: { tone: 'good', word: 'Active' },
  failing: { tone: 'bad', word: 'Needs attention' },
  blocked: { tone: 'bad', word: 'Blocked' },
}

export function siteDomainsPage(viewer: Viewer, view: SiteDomains): Page {
  const { site, domains, plan } = view
  const halves = domains.flatMap((domain) => (domain.pair === null ? [domain] : [domain, domain.pair]))
  const withDomains = soldPlans()
    .filter(({ customDomains }) => customDomains > 0)
    .map(({ label }) => label)
  const isSettled = halves.every(({ state }) => state === 'active')
  return sitePage(site, '/domains', {
    flash: view.flash,
    // The script of a page that waits copies, too.
    scripts: isSettled ? ['copy'] : ['domains'],
    body: html`
      <p class="soft">
        This drop is always at <a href="${site.url}">${shortAddress(site.url)}</a>. ${
          domains.length === 0 &&
          plans[plan].customDomains > 0 &&
          'Add a domain of your own and visitors can use that, too.'
        }
      </p>
      <div class="section" data-domains>
        ${domains.map((domain) => domainCard(viewer, site, domain, view.now))}
      </div>
      ${
        plans[plan].customDomains > 0
          ? addForm(viewer, view)
          : withDomains.length > 0 &&
            html`
            <section class="card">
              <h2>Your own domain</h2>
              <p class="soft">
                Serve this drop from a domain of yours, with a certificate that renews itself. Part of
                ${withDomains.join(' and ')}.
              </p>
              <div><a class="button" href="/account/plan">See the plans</a></div>
            </section>
          `
      }
    `,
  })
}

function domainCard(viewer: Viewer, site: ApiSite, domain: ApiDomain, now: number): Html {
  const form = (action: string, name: string, label: string): Html =>
    html`
      <form method="post" action="/sites/${site.id}/domains/${action}">
        ${csrfField(viewer)}
        <input type="hidden" name="domain" value="${name}">
        <button class="button">${label}${spoken(name)}</button>
      </form>
    `
  return html`
    <section class="card" aria-label="${domain.domain}">
      ${half(domain, undefined, now)}
      ${domain.pair && half(domain.pair, domain, now)}
      <div class="cluster">
        ${form('check', domain.domain, 'Check now')}
        ${domain.pair && form('main', domain.pair.domain, `Make ${domain.pair.domain} the main name`)}
        <a class="button danger"
            href="/sites/${site.id}/domains/remove?domain=${domain.domain}">Remove…${spoken(domain.domain)}</a>
      </div>
    </section>
  `
}

/** `main`: the name that this one leads to, once that is served. */
function half(domain: ApiSingleDomain, main: ApiSingleDomain | undefined, now: number): Html {
  const { tone, word } = STATES[domain.state]
  const isDone = domain.state === 'active'
  return html`
    <div class="stack${main && ' half'}">
      <div class="head">
        <div>
          <h2>
            ${
              isDone && !isWildcard(domain.domain)
                ? html`<a href="https://${domain.domain}">${domain.unicode ?? domain.domain}</a>`
                : (domain.unicode ?? domain.domain)
            }
          </h2>
          ${domain.unicode !== null && html`<p class="small soft mono">${domain.domain}</p>`}${
            main &&
            html`
              <p class="small soft">
                ${
                  isServed(main)
                    ? `leads to ${main.unicode ?? main.domain}`
                    : `shows the drop itself until ${main.unicode ?? main.domain} is ready, and leads there then`
                }
              </p>
            `
          }
        </div>
        <span class="tag ${tone}">${word}</span>
      </div>
      ${domain.detail !== '' && html`<p>${domain.detail}</p>`}
      ${domain.records.length > 0 && recordTable(domain.records)}
      ${
        domain.alternative &&
        html`
          <p class="small soft">
            Where your DNS provider offers ALIAS (or ANAME, or CNAME flattening), one record does for A and
            AAAA: host <code>${domain.alternative.host}</code>, type <code>${domain.alternative.type}</code>,
            value <code>${domain.alternative.value}</code>.
          </p>
        `
      }
      ${domain.warnings.map((warning) => html`<p class="small"><strong>Warning:</strong> ${warning}</p>`)}
      <p class="hint">
        ${domain.checked_at === null ? 'Not checked yet.' : html`Checked ${timeAgo(domain.checked_at, now)}.`}${
          !isDone && domain.next_check_at !== null && html` Next check ${timeAgo(domain.next_check_at, now)}.`
        }${
          domain.next_try_at !== null &&
          html` The certificate authority is asked again ${timeAgo(domain.next_try_at, now)}.`
        }${domain.certificate && ` Certificate until ${dayInWords(domain.certificate.not_after)}, renewed by itself.`}
      </p>
    </div>
  `
}

function isServed({ state }: ApiSingleDomain): boolean {
  return state === 'active' || state === 'failing'
}

const ACTIONS: Readonly<Record<RecordLine['action'], string>> = { add: 'Add', replace: 'Change', remove: 'Remove' }

/** Exactly what is missing or wrong; hosts are relative to the zone, as DNS providers want them typed. */
function recordTable(records: readonly RecordLine[]): Html {
  const nothing = html`<span class="soft">nothing</span>`
  const codes = (values: readonly string[]): Content =>
    values.length === 0 ? nothing : values.map((value, index) => html`${index > 0 && html`<br>`}<code>${value}</code>`)
  const copied = (value: string): Html =>
    html`<code>${value}</code>
      <button class="button small" type="button" data-copy="${value}">Copy${spoken(value)}</button>`
  const row = ({ action, host, type, value, found }: RecordLine): Html =>
    html`
      <tr>
        <th scope="row" data-label="Do">${ACTIONS[action]}</th>
        <td data-label="Host">${action === 'remove' ? html`<code>${host}</code>` : copied(host)}</td>
        <td data-label="Type"><code>${type}</code></td>
        <td data-label="Wanted">${action === 'remove' ? nothing : copied(value)}</td>
        <td data-label="Found now">${codes(action === 'remove' ? [value] : found)}</td>
      </tr>
    `
  const heading = ['Do', 'Host', 'Type', 'Wanted', 'Found now'].map((name) => html`<th scope="col">${name}</th>`)
  const zone = records[0]?.zone
  return html`
    <p class="small">Set this in the zone <strong>${zone}</strong> at your DNS provider:</p>
    <div class="scroll">
      <table class="table stacked">
        <caption class="visually-hidden">Records of the zone ${zone}</caption>
        <thead><tr>${heading}</tr></thead>
        <tbody>${records.map(row)}</tbody>
      </table>
    </div>
  `
}

/** Asks before a domain is removed. */
export function removeDomainPage(viewer: Viewer, site: ApiSite, domain: ApiDomain): Page {
  const names = [domain, ...(domain.pair === null ? [] : [domain.pair])]
  const base = `/sites/${site.id}/domains`
  return sitePage(site, '/domains', {
    body: confirmCard(formAt(viewer, `${base}/remove`, { domain: domain.domain }), {
      title: `Remove ${domain.unicode ?? domain.domain}?`,
      what: html`
        <p>
          Visitors of ${names.map(
            ({ domain: name }, index) => html`${index > 0 && ' and '}<strong>${name}</strong>`,
          )} see an error at once, and ${
            names.length === 1 ? 'its certificate is' : 'their certificates are'
          } given up. The drop stays at ${shortAddress(site.url)}.
        </p>
        <p class="soft">To add it again, it is proven by DNS again.</p>
      `,
      button: 'Remove it',
      back: base,
      keep: 'Keep it',
    }),
  })
}

/** A form that could only be refused is no help: at the cap it says what makes room. */
function fullCard({ plan, used, domains }: SiteDomains): Html {
  const { customDomains, label } = plans[plan]
  const isLargest = !soldPlans().some((other) => other.customDomains > customDomains)
  return html`
    <section class="card" aria-labelledby="full">
      <h2 id="full">No room for another domain</h2>
      <p class="soft">
        ${label} has room for ${countInWords(customDomains, 'custom domain')}, and ${used === 1 ? 'it is' : `${used} are`}
        in use${domains.length === 0 && ' by other drops'}. Remove one${!isLargest && ', or upgrade'}, to add another. A
        domain and its www counterpart count as one.
      </p>
      ${!isLargest && html`<div><a class="button" href="/account/plan">See the plans</a></div>`}
    </section>
  `
}

function addForm(viewer: Viewer, view: SiteDomains): Html {
  const { site, used, plan } = view
  const form = formAt(viewer, `/sites/${site.id}/domains`)
  if (used >= plans[plan].customDomains && !form.isRefused) return fullCard(view)
  return html`
    <form class="card" method="post" action="${form.action}" aria-labelledby="add-domain">
      <h2 id="add-domain">Add a domain</h2>
      ${form.start}
      ${form.text({
        name: 'domain',
        label: 'Domain',
        verbatim: true,
        required: true,
        placeholder: 'www.example.com',
        hint:
          view.offersWildcards && plans[plan].wildcardDomains
            ? '*.docs.example.com brings every name directly below docs.example.com.'
            : undefined,
        maxlength: MAX_HOST_CHARS,
      })}
      ${form.check({
        name: 'pair',
        label: 'Bring its www (or bare) counterpart along',
        hint: 'It leads to the domain above.',
        checked: true,
      })}
      <div><button class="button primary">Add domain</button></div>
    </form>
  `
}
