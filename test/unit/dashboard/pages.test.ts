import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createDashboard } from '../../../control/doors/dashboard/dashboard.ts'
import { loadAssets } from '../../../control/doors/dashboard/frame/assets.ts'
import { encodingOf } from '../../../control/doors/dashboard/frame/compressed.ts'
import { flashOf, saying } from '../../../control/doors/dashboard/frame/flash.ts'
import { problemText } from '../../../control/doors/dashboard/frame/handlers.ts'
import { usageBody, type UsagePage } from '../../../control/doors/dashboard/account/plan-view.ts'
import { createLayout, type AccountViewer, type Viewer } from '../../../control/doors/dashboard/frame/layout.ts'
import { sparkline, viewsChart } from '../../../control/doors/dashboard/parts/charts.ts'
import { consentPage } from '../../../control/doors/dashboard/sign-in/consent-view.ts'
import { apiTagPage } from '../../../control/doors/dashboard/public/docs/api-view.ts'
import { qrCode } from '../../../control/doors/dashboard/parts/qr.ts'
import { staffPage } from '../../../control/doors/dashboard/staff/staff-view.ts'
import { relativeTime } from '../../../control/doors/dashboard/parts/words.ts'
import { bytesInWords } from '../../../shared/values/sizes.ts'
import { html, type Html } from '../../../shared/pages/html.ts'
import { HOUSE_LOOK } from '../../../shared/pages/look.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { openApiDocument } from '../../../control/ground/http/openapi.ts'
import { described } from '../../../control/ground/http/operations/described.ts'
import { describeOperation } from '../../../control/ground/http/operations/operation.ts'
import type { Reply, Route } from '../../../control/ground/http/route.ts'
import { fakeRequest } from '../../support/accounts.ts'

test.each([
  ['/sites', '/sites?done=switched'],
  ['/sites/st_1?edit', '/sites/st_1?edit&done=switched'],
  ['/sites?done=welcome&q=a', '/sites?q=a&done=switched'],
  ['/sites/st_1?edit#publish', '/sites/st_1?edit&done=switched#publish'],
])('what is said at %s goes into its one query', (path, expected) => {
  expect(saying(path, 'switched')).toBe(expected)
})

describe('which drops stay live', () => {
  const drop = (index: number, state: 'live' | 'paused' = 'live') =>
    ({ id: `st_${index}`, name: '', title: '', slug: `drop-${index}`, state, stays_live: false }) as const
  const billing = {
    configured: false,
    plan: 'plus',
    currency: 'eur',
    status: 'active',
    interval: 'monthly',
    current_period_end: null,
    cancel_at_period_end: false,
    past_due_since: null,
    grace_ends_at: null,
  }
  const limit = { used: 0, limit: 0 }
  const usage = { plan: 'plus' as const, drops: limit, storage_bytes: limit, upload_bytes: { limit: 0 } }
  const bodyOf = (changes: Partial<UsagePage>) =>
    String(
      usageBody(viewer as AccountViewer, {
        plan: 'plus',
        usage: {
          ...usage,
          uploads_under_way: { used: 0, limit: 0, bytes: 0 },
          versions_per_drop: { limit: 0 },
          previews_per_drop: { limit: 0 },
          paused_drops: 0,
          views_30d: 0,
        },
        customDomains: 0,
        drops: [1, 2, 3, 4].map((index) => drop(index)),
        billing,
        mayManage: true,
        lifetimes: { anonymousLifetimeMs: 1, freeIdleLifetimeMs: 1 },
        ...changes,
      }),
    )

  test.each<[string, Partial<UsagePage>, boolean]>([
    ['while a plan goes on', {}, false],
    ['when its end is set', { billing: { ...billing, cancel_at_period_end: true } }, true],
    ['when a payment is missing', { billing: { ...billing, grace_ends_at: '2026-12-01' } }, true],
    ['when it has ended', { drops: [drop(1), drop(2), drop(3), drop(4, 'paused')] }, true],
    ['when all fit', { drops: [drop(1)], billing: { ...billing, cancel_at_period_end: true } }, false],
  ])('is asked %s: %o', (_, changes, isAsked) => {
    expect(bodyOf(changes).includes('Keep these live')).toBe(isAsked)
  })
})

describe('compression of pages', () => {
  const render = createLayout({
    assets: loadAssets(HOUSE_LOOK),
    baseUrl: 'https://dropway.test',
    look: HOUSE_LOOK,
    signUp: { kind: 'open' },
  })
  const words = html`<p>${'the same words again and again '.repeat(200)}</p>`
  const stranger: Viewer = { signedIn: undefined, csrf: 'a-token', cookies: [], encoding: 'br' }
  const encodingFor = async (who: Viewer, body: Html) =>
    (await render(who, { title: 'T', body })).headers?.['content-encoding']

  test('a page that is nobody’s own and holds no token is compressed', async () => {
    expect(await encodingFor(stranger, words)).toBe('br')
    expect(await encodingFor({ ...stranger, encoding: 'gzip' }, words)).toBe('gzip')
    expect(await encodingFor({ ...stranger, encoding: undefined }, words)).toBeUndefined()
  })

  test('a page with a token, or of one person, is not: its length would tell (BREACH)', async () => {
    const form = html`${words}<input type="hidden" name="csrf" value="a-token">`
    expect(await encodingFor(stranger, form)).toBeUndefined()
    expect(await encodingFor({ ...viewer, encoding: 'br' }, words)).toBeUndefined()
  })

  test.each([
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip;q=1.0, br;q=0', 'gzip'],
    ['br;q=0.5', 'br'],
    ['identity', undefined],
    [undefined, undefined],
  ])('a browser that takes %s gets %s', (accepted, expected) => expect(encodingOf(accepted)).toBe(expected))
})

test('every module of a page’s scripts is asked for at once', async () => {
  const assets = loadAssets(HOUSE_LOOK)
  const page = textOf(
    await createLayout({ assets, baseUrl: 'https://dropway.test', look: HOUSE_LOOK, signUp: { kind: 'open' } })(
      viewer,
      {
        title: 'T',
        body: '',
        scripts: ['publish'],
      },
    ),
  )
  const preloaded = [...page.matchAll(/<link rel="modulepreload" href="([^"]+)"/g)].map(([, address]) => address!)
  expect(preloaded.length).toBeGreaterThan(10)
  expect(new Set(preloaded).size).toBe(preloaded.length)
  // What a module imports is among them, whatever level it stands on.
  const [route] = assets.routes
  for (const address of [assets.script('publish'), ...preloaded]) {
    const params = { file: address.slice('/assets/'.length) }
    const body = textOf(await route!.handle({ ...fakeRequest({}), params }))
    for (const [, imported] of body.matchAll(/from\s*'(\/assets\/[^']+)'/g)) expect(preloaded).toContain(imported)
  }
})

test('after signing up one notice says what to do, not two', async () => {
  const newcomer: Viewer = { ...viewer, signedIn: { ...viewer.signedIn!, emailVerified: false } }
  const render = createLayout({
    assets: loadAssets(HOUSE_LOOK),
    baseUrl: 'https://dropway.test',
    look: HOUSE_LOOK,
    signUp: { kind: 'open' },
  })
  const request = { query: new URLSearchParams({ done: 'welcome' }) }
  const page = textOf(await render(newcomer, { title: 'T', body: '', ...flashOf(request) }))
  expect(page.match(/class="notice/g)).toHaveLength(1)
  expect(page).toContain('Open the link in the mail')
  expect(page).toContain('Send it again')
})

function textOf(reply: Reply): string {
  if (typeof reply.body !== 'string') throw new Error('the reply is no text')
  return reply.body
}

const viewer: Viewer = {
  signedIn: {
    email: 'a@example.com',
    orgId: 'org_1',
    emailVerified: true,
    isStaff: false,
    plan: 'free',
    organisations: async () => [],
  },
  csrf: 'token',
  cookies: [],
}

test.each([
  ['https://drop.dropway.test/a', true],
  ['javascript:80//%0aalert(1)', false],
  ['data:80//text/html,x', false],
  ['drop.dropway.test/a', false],
])('staff can follow a reported %s: %s', (address, isLink) => {
  const entry = {
    kind: 'report' as const,
    id: 'rep_1',
    site_id: null,
    slug: null,
    url: address,
    address,
    title: '',
    score: null,
    reasons: ['phishing'],
    detail: '',
    created_at: new Date(0),
  }
  const shown = String(staffPage(viewer, { queue: [entry], search: '', found: [], now: 0 }).body)
  expect(shown).toContain(address)
  expect(shown.includes(`<a href="${address}"`)).toBe(isLink)
})

test('a refusal is said without the name of the field', () => {
  expect(problemText(errors.invalidRequest('slug: use 3 to 63 letters'))).toBe('Use 3 to 63 letters')
  expect(problemText(errors.notFound())).toBe('There is no such drop, or it is not yours.')
})

test.each([
  [999, '999 B'],
  [1000, '1 kB'],
  [1_234_567, '1.2 MB'],
  [500_000_000, '500 MB'],
  [2_000_000_000, '2 GB'],
  [Number.POSITIVE_INFINITY, 'no limit'],
])('%d bytes are %s', (bytes, words) => {
  expect(bytesInWords(bytes)).toBe(words)
})

test('times are told relatively', () => {
  const now = Date.parse('2026-05-01T12:00:00Z')
  expect(relativeTime(now - 5000, now)).toBe('just now')
  expect(relativeTime(now - 2 * 3_600_000, now)).toBe('2 hours ago')
  expect(relativeTime(now + 7 * 86_400_000, now)).toBe('in 7 days')
})

describe('charts', () => {
  test('survive days without any view', () => {
    expect(sparkline([0, 0, 0]).text).not.toContain('NaN')
    expect(viewsChart([{ day: '2026-01-01', count: 0 }]).text).not.toContain('NaN')
  })

  test('say their total to those who cannot see them', () => {
    expect(
      viewsChart([
        { day: '2026-01-01', count: 1 },
        { day: '2026-01-02', count: 2 },
      ]).text,
    ).toContain('3 views in 2 days')
  })
})

test('a QR code is one path of dark squares', () => {
  expect(qrCode('https://calm-otter.example').text).toMatch(/<path fill="#10211e" d="M\d+ \d+h1v1h-1z/)
})

describe('assets', () => {
  test('scripts import each other by hashed names, and types are gone', async () => {
    const assets = loadAssets(HOUSE_LOOK)
    const address = assets.script('publish')
    const reply = await assets.routes[0]!.handle({
      params: { file: address.slice('/assets/'.length) },
      header: () => undefined,
    } as never)
    const body = textOf(reply)
    expect(body).toMatch(/from '\/assets\/send\.[0-9a-f]{12}\.js'/)
    expect(body).not.toMatch(/\.ts'|: HTMLFormElement/)
    expect(address).toContain(createHash('sha256').update(body).digest('hex').slice(0, 12))
  })
})

test('the proof of work in the browser is SHA-256', async () => {
  // Named at run time: the browser's scripts are checked by a project of their own.
  const { sha256 } = (await import(new URL('../../../shared/pages/browser/sha256.ts', import.meta.url).href)) as {
    sha256(bytes: Uint8Array): Uint32Array
  }
  for (const text of ['', 'abc', 'x'.repeat(55), 'x'.repeat(56), 'x'.repeat(64), 'challenge:12345'.repeat(9)]) {
    const words = [...sha256(new TextEncoder().encode(text))].map((word) => word.toString(16).padStart(8, '0')).join('')
    expect(words).toBe(createHash('sha256').update(text).digest('hex'))
  }
})

test('the consent page names the client as text, and its form may lead to the redirect alone', async () => {
  const render = createLayout({
    assets: loadAssets(HOUSE_LOOK),
    baseUrl: 'https://dropway.example',
    look: HOUSE_LOOK,
    signUp: { kind: 'open' },
  })
  const reply = await render(
    viewer,
    consentPage(viewer, {
      clientName: '<script>alert(1)</script>',
      verifiedHost: undefined,
      redirectUri: 'http://127.0.0.1:7777/<b>cb',
      returnsTo: { kind: 'own-machine' },
      redirectSource: 'http://127.0.0.1:7777',
      organisation: 'Org',
      email: 'a@example.com',
      scopes: ['mcp', '<b>'],
      action: '/oauth/authorize',
      hidden: { state: '"><script>' },
    }),
  )
  expect(textOf(reply)).not.toMatch(/<script>|<b>/)
  expect(reply.headers?.['content-security-policy']).toContain("form-action 'self' http://127.0.0.1:7777;")
  expect(textOf(reply)).toMatch(/value="allow"[\s\S]*value="deny"/)
})

test('the consent page names the host that was verified, and no other as the maker', async () => {
  const asked = {
    clientName: 'dropway.example (official)',
    redirectUri: 'https://app.example/cb',
    returnsTo: { kind: 'site' as const, host: 'app.example' },
    redirectSource: 'https:',
    organisation: 'Org',
    email: 'a@example.com',
    scopes: ['mcp'],
    action: '/oauth/authorize',
    hidden: {},
  }
  const layout = createLayout({
    assets: loadAssets(HOUSE_LOOK),
    baseUrl: 'https://dropway.example',
    look: HOUSE_LOOK,
    signUp: { kind: 'open' },
  })
  const render = async (verifiedHost: string | undefined) =>
    textOf(await layout(viewer, consentPage(viewer, { ...asked, verifiedHost })))
  expect(await render('app.example')).toContain('<dt>Made by</dt><dd><strong>app.example</strong> (verified)</dd>')
  expect(await render(undefined)).toContain('<dt>Made by</dt><dd>unknown</dd>')
  expect(await render(undefined)).not.toContain('(verified)')
})

test('the reference describes an operation with a call that can be pasted', () => {
  const route: Route = {
    method: 'POST',
    path: '/api/v1/sites/:id/upload',
    handle: () => ({ status: 201 }),
    operation: describeOperation({
      method: 'POST',
      path: '/api/v1/sites/:id/upload',
      access: 'verified',
      needs: 'publish',
      summary: 'Publish <one> file',
      tag: 'Versions',
      form: z.object({ file: z.file() }),
      formSamples: { page: { file: 'page.html' } },
      query: z.object({
        days: z
          .int()
          .meta({ examples: [7] })
          .optional(),
      }),
      status: 201,
      output: z.object({ url: described(z.string(), 'Its address.', 'https://my-page.example') }),
    }),
  }
  const document = openApiDocument([route, { method: 'GET', path: '/page', handle: () => ({ status: 200 }) }], {
    name: 'Dropway',
    baseUrl: 'https://dropway.example',
    version: '1',
    tags: [{ name: 'Versions', description: 'About versions.' }],
    sessionCookie: 'session',
  })
  const map = { guides: [], api: [] }
  const text = (apiTagPage(document, 'Versions', map, 'https://dropway.example').body as Html).text
  expect(text).toContain('Publish &lt;one&gt; file')
  expect(text).toContain('-F file=@page.html')
  expect(text).toContain('&quot;https://dropway.example/api/v1/sites/$SITE_ID/upload?days=7&quot;')
  expect(text).toContain('https://my-page.example')
  expect(text).not.toContain('/page<')
})

test('an error is told also when the organisations of its reader cannot be read', async () => {
  const services = {
    config: {
      baseUrl: 'https://dropway.example',
      sitesDomain: 'dropway.example',
      publicPort: 443,
      look: HOUSE_LOOK,
      signUp: { kind: 'open' },
    },
    access: { sessionActor: async () => ({ ...viewer.signedIn }) },
    csrf: { csrfToken: () => ({ token: 'token', setCookie: undefined }) },
    organisations: { list: () => Promise.reject(new Error('the database has just gone')) },
  }
  const dashboard = createDashboard(services as unknown as Parameters<typeof createDashboard>[0])
  const reply = await dashboard.errorPage(fakeRequest({}), errors.internal('err_1'))
  expect(reply.status).toBe(500)
  expect(textOf(reply)).toContain('err_1')
})
