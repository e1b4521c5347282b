/** The front door: publish right here, then read what this is. */
import { html, type Html } from '../../../../shared/pages/html.ts'
import type { Look } from '../../../../shared/pages/look.ts'
import { showsSignUp, type SignUpPolicy } from '../../../ground/terms/sign-up.ts'
import { plans, sellsPlans } from '../../../ground/terms/plans.ts'
import { csrfField, uploadAddress, type Page, type Viewer } from '../frame/layout.ts'
import { icon } from '../parts/charts.ts'
import { formAt } from '../parts/form-fields.ts'
import { planTable, type Lifetimes } from '../parts/plan-table.ts'
import { dropZone, pasteField, publishProgress, publishTerms } from '../parts/drop-zone.ts'
import { bytesInWords } from '../../../../shared/values/sizes.ts'
import { countInWords, shortAddress, timeAgo } from '../parts/words.ts'

export interface DropForm {
  /** The moment the form was made, signed: a form that comes back too fast was not filled by a person. */
  readonly stamp: string
}

export interface RememberedDrop {
  readonly id: string
  readonly url: string
  readonly title: string
  readonly expires_at: string
  readonly views: number
  readonly state: keyof typeof STANDINGS
  readonly claimable: boolean
}

export interface Landing extends DropForm {
  /** What this browser has published without an account. */
  readonly drops: readonly RememberedDrop[]
  readonly now: number
  readonly lifetimes: Lifetimes
  readonly currency: string
  readonly house: House
}

/** Whose service it is, and who may do what here without an account. */
interface House {
  readonly look: Pick<Look, 'name'>
  readonly signUp: SignUpPolicy
  readonly allowsAnonymous: boolean
}

export function landingPage(viewer: Viewer, form: Landing): Page {
  const isForMembers = !viewer.signedIn && !form.house.allowsAnonymous
  return {
    title: isForMembers ? 'Welcome' : 'Publish a page in ten seconds',
    description:
      'Drop an HTML or Markdown file, get a live HTTPS address. Folders, versions, custom domains and passwords when you need them.',
    ...(isForMembers ? {} : { scripts: ['publish'] }),
    body: html`
      ${isForMembers ? welcome(form.house) : publishHero(viewer, form)}
      ${form.drops.length > 0 && rememberedDrops(viewer, form.drops, form)}
      ${features()}
      ${sellsPlans() && plansSection(form)}
    `,
  }
}

function plansSection(form: Landing): Html {
  return html`
      <section class="section" aria-labelledby="plans">
        <h2 id="plans">Plans</h2>
        ${planTable(form)}
        <p class="soft small">
          Yearly plans are paid up front. VAT is added where it applies. You can export everything at any
          time.
        </p>
      </section>
  `
}

function publishHero(viewer: Viewer, form: Landing): Html {
  return html`
    <div class="hero">
      <div class="stack">
        <h1 class="big">Drop it here. It’s on the web.</h1>
        <p class="lead">
          ${
            viewer.signedIn
              ? 'A file, a folder or a zip becomes a drop of yours at its own HTTPS address, in seconds.'
              : 'One HTML or Markdown file becomes a page at its own HTTPS address, in seconds and without an account. Sign up when you want to keep it.'
          }
        </p>
      </div>
      <div id="publish">${dropForm(viewer, form)}</div>
    </div>
  `
}

/** Where strangers may not publish there is nothing for them to fill in: this is the way to their account. */
function welcome({ look, signUp }: House): Html {
  return html`
    <div class="section">
      <div class="stack">
        <h1 class="big">${look.name}</h1>
        <p class="lead">Pages, folders and whole sites at their own HTTPS address, with every version kept.</p>
      </div>
      <p class="cluster">
        <a class="button primary" href="/signin">Sign in</a>
        ${showsSignUp(signUp) && html`<a class="button" href="/signup">Sign up</a>`}
      </p>
    </div>
  `
}

/** Signed-in people publish to their account; nothing of theirs disappears after a week. */
function dropForm(viewer: Viewer, { stamp }: DropForm): Html {
  const plan = viewer.signedIn?.plan
  const form = formAt(viewer, plan === undefined ? '/drop' : '/sites/new')
  return html`
    <form class="card raised" method="post" action="${uploadAddress(viewer, form.action)}" enctype="multipart/form-data"
        ${publishTerms(plan)}>
      ${form.start}
      <input type="hidden" name="stamp" value="${stamp}">
      <div class="trap" aria-hidden="true">
        <label>Leave this empty <input name="website" tabindex="-1" autocomplete="off"></label>
      </div>
      ${
        plan === undefined
          ? dropZone({
              name: 'file',
              title: 'Drop an HTML or Markdown file',
              hint: `anywhere on this page, or choose one · up to ${bytesInWords(plans.anonymous.uploadBytes)}`,
            })
          : dropZone({
              name: 'files',
              title: 'Drop a folder, a zip or files',
              hint: `anywhere on this page, or choose files · up to ${bytesInWords(plans[plan].uploadBytes)}`,
              multiple: true,
            })
      }
      ${publishProgress()}
      <p class="or">or paste</p>
      ${pasteField({
        text: form.typed('text') ?? '',
        format: form.typed('format') ?? '',
        placeholder: '# Hello\n\nSome **Markdown**, or a whole HTML page.',
      })}
      <button class="button primary">Publish</button>
    </form>
  `
}

const STANDINGS = { live: 'disappears', expired: 'expired', removed: 'removed' } as const

function rememberedDrops(viewer: Viewer, drops: readonly RememberedDrop[], { now, house }: Landing): Html {
  return html`
    <section class="section" aria-labelledby="yours">
      <div class="head">
        <h2 id="yours">Published from this browser</h2>
        ${
          drops.some((drop) => drop.claimable) &&
          showsSignUp(house.signUp) &&
          html`<a class="button small" href="/signup">Keep them: sign up and verify</a>`
        }
      </div>
      <ul class="grid plain">
        ${drops.slice(0, 6).map(
          (drop) => html`
            <li class="card">
              <a href="${drop.url}" target="_blank" rel="noopener">
                <strong>${drop.title || shortAddress(drop.url)}</strong>
              </a>
              <p class="small soft">
                ${countInWords(drop.views, 'view')}, ${STANDINGS[drop.state]}
                ${drop.state === 'removed' ? '' : timeAgo(drop.expires_at, now)}
              </p>
              ${deleteDrop(viewer, drop)}
            </li>
          `,
        )}
      </ul>
    </section>
  `
}

/** Only this browser can: nobody else has its cookie. */
export function deleteDrop(viewer: Viewer, drop: Pick<RememberedDrop, 'id' | 'url'>): Html {
  return html`
    <details>
      <summary class="small">Delete</summary>
      <form class="stack" method="post" action="/drop/delete">
        ${csrfField(viewer)}
        <input type="hidden" name="id" value="${drop.id}">
        <p class="hint">At once and for good: ${shortAddress(drop.url)} will say that it is gone.</p>
        <p class="cluster"><button class="button small danger">Delete for good</button></p>
      </form>
    </details>
  `
}

const FEATURES: readonly (readonly [icon: Parameters<typeof icon>[0], title: string, text: string])[] = [
  [
    'layers',
    'Every upload is a version',
    'Publish as often as you like at one address. See what changed, preview any version, go back in one click.',
  ],
  ['globe', 'Your own domain', 'Point a CNAME at your drop. We check it, get the certificate and renew it.'],
  [
    'lock',
    'Private when it should be',
    'Put a password in front of a drop. It stays out of search engines and of the gallery.',
  ],
  [
    'terminal',
    'Made for scripts and agents',
    'A small REST API, a command line, and an MCP server that publishes what your assistant writes.',
  ],
]

function features(): Html {
  return html`
    <section class="section" aria-labelledby="what">
      <h2 id="what" class="visually-hidden">What it is</h2>
      <div class="features">
        ${FEATURES.map(
          ([name, title, text]) => html`
            <div>
              ${icon(name)}
              <h3>${title}</h3>
              <p class="soft">${text}</p>
            </div>
          `,
        )}
      </div>
    </section>
  `
}
