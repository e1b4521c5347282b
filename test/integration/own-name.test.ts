/** An instance with a name, a logo, a colour and links of its own: every route of the control plane, to strangers and to members. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { allRoutes } from '../../control/composition/routes.ts'
import { createDashboard } from '../../control/doors/dashboard/dashboard.ts'
import type { Actor } from '../../control/ground/actor.ts'
import type { Route } from '../../control/ground/http/route.ts'
import { installTerms, termsOf } from '../../control/ground/terms/plans.ts'
import { PASSWORD } from '../support/accounts.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'
import { startServer } from '../support/http-server.ts'

const ORIGIN = 'https://pages.acme.test'
const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-own-name-'))
const logo = path.join(folder, 'logo.svg')
writeFileSync(logo, '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0h9v9"/></svg>')

let instance: ComposedServices
let owner: Actor
let routes: readonly Route[]

beforeAll(async () => {
  instance = await composeServices({
    SERVICE_NAME: 'Acme Pages',
    SERVICE_LOGO: logo,
    SERVICE_ACCENT: '#7a1fa2',
    SERVICE_LINKS: 'Company rules=https://acme.test/rules',
    BASE_URL: ORIGIN,
    SITES_DOMAIN: 'sites.acme.test',
    MAIL_TO_FILES: '1',
    CONTACT_EMAIL: 'it@acme.test',
  })
  owner = await instance.newActor('business')
  await instance.sql`update users set is_staff = true where id = ${owner.userId}`
  routes = allRoutes(instance.services, createDashboard(instance.services))
})
afterAll(async () => {
  await instance?.close()
  rmSync(folder, { recursive: true })
})

interface Seen {
  readonly what: string
  readonly status: number
  readonly type: string
  readonly text: string
}

/** Signs in as people do; returns what the browser sends from then on. */
async function signIn(url: string): Promise<string> {
  const cookiesOf = (response: Response): string[] =>
    response.headers.getSetCookie().map((each) => each.slice(0, each.indexOf(';')))
  const page = await fetch(`${url}/signin`)
  const csrf = /name="csrf" value="([^"]+)"/.exec(await page.text())?.[1] ?? ''
  const before = cookiesOf(page)
  const body = new URLSearchParams({ csrf, email: owner.email, password: PASSWORD })
  const headers = { cookie: before.join('; '), origin: ORIGIN }
  const signedIn = await fetch(`${url}/signin`, { method: 'POST', headers, body, redirect: 'manual' })
  expect(signedIn.status).toBe(303)
  return [...before, ...cookiesOf(signedIn)].join('; ')
}

async function open(url: string, route: Route, params: Record<string, string>, cookie: string): Promise<Seen> {
  const filled = route.path.replaceAll(/:(\w+)/g, (_whole, name: string) => encodeURIComponent(params[name] ?? 'x'))
  const response = await fetch(new URL(filled.replace(/\*$/, 'x'), url), {
    method: route.method,
    redirect: 'manual',
    headers: { cookie, accept: 'text/html,*/*', ...(route.method !== 'GET' && { origin: ORIGIN }) },
    ...(route.method !== 'GET' && { body: new URLSearchParams({ a: 'b' }) }),
    signal: AbortSignal.timeout(60_000),
  })
  const type = response.headers.get('content-type') ?? ''
  const text = /^(?:text|application\/(?:json|problem|xml|manifest|javascript|openapi))/.test(type)
    ? await response.text()
    : ''
  return { what: `${route.method} ${route.path}`, status: response.status, type, text }
}

/** The places where the other name stands, with what is around it. */
const foreign = (seen: readonly Seen[]): string[] =>
  seen.flatMap(({ what, text }) => [...text.matchAll(/.{0,40}Dropway.{0,40}/g)].map(([around]) => `${what}: ${around}`))

/** Every page to strangers and to members, and what every form answers to nonsense. */
async function walk(): Promise<Seen[]> {
  const { url } = await startServer([...routes])
  const { site } = await instance.publishPage(owner, 'Theirs')
  const params = { id: site.id, slug: site.slug, name: 'cv', org: owner.orgId, number: '1' }
  const asked = routes.filter(({ method }) => method === 'GET' || method === 'POST')
  const pages = asked.filter(({ method, path: at }) => method === 'GET' && !at.endsWith('/events'))
  const cookie = await signIn(url)
  const seen: Seen[] = []
  for (const route of pages) for (const who of ['', cookie]) seen.push(await open(url, route, params, who))
  for (const route of asked.filter(({ method }) => method === 'POST')) seen.push(await open(url, route, params, ''))
  return seen
}

test('no page, answer or document says another name than the service’s own', async () => {
  const seen = await walk()
  // The licence's note is the one place.
  const imprint = foreign(seen.filter(({ what }) => what === 'GET /imprint'))
  expect(new Set(imprint)).toEqual(new Set(imprint.filter((line) => line.includes('runs on Dropway'))))
  expect(imprint.length).toBeGreaterThan(0)
  expect(foreign(seen.filter(({ what }) => what !== 'GET /imprint'))).toEqual([])

  const shown = seen.filter(({ status, type }) => status === 200 && type.startsWith('text/html'))
  expect(shown.length).toBeGreaterThan(40)
  // A page that stands alone names the service; pages of the dashboard have the operator's links too.
  const framed = shown.filter(({ text }) => text.includes('<footer'))
  for (const { what, text } of framed) expect(text, what).toContain('Acme Pages')
  const inFrame = framed.filter(({ text }) => !text.includes('class="standalone"'))
  for (const { what, text } of inFrame) expect(text, what).toContain('https://acme.test/rules')
  expect(inFrame.length).toBeGreaterThan(30)
  expect(seen.filter(({ status }) => status === 500).map(({ what, status }) => `${what} ${status}`)).toEqual([])
})

/** What only those say who sell: prices, and ways to another plan. */
const SALES = /.{0,40}(?:upgrad|pricing|#plans|Plan and usage|(?:€|\$)[\d ]+\d a month|free plan|paid plan).{0,40}/gi

test('where there is one plan without prices, no page sells another or says so', async () => {
  const sold = await walk()
  expect(sold.flatMap(({ text }) => [...text.matchAll(SALES)]).length).toBeGreaterThan(20)
  installTerms(termsOf('single'))
  onTestFinished(() => installTerms(termsOf('table')))
  routes = allRoutes(instance.services, createDashboard(instance.services))
  const seen = await walk()
  expect(seen.flatMap(({ what, text }) => [...text.matchAll(SALES)].map(([around]) => `${what}: ${around}`))).toEqual(
    [],
  )
  expect(seen.filter(({ status }) => status === 500)).toEqual([])
})
