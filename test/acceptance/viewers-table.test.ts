/** Every address and answer of a drop, by everyone who might ask: not a byte of it for who may not see it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { unlockCookie, viewerCookie, viewersOnly } from '../support/admissions.ts'
import { startEdgeFixture, type Answer, type EdgeFixture } from '../support/edge-fixture.ts'

const MARK = 'the-secret-of-the-plan'
const HOST = 'plan.localhost'
const SITE = `st_${HOST}`
const FAR = Date.UTC(2100, 0, 1)
const GENERATION = 3
const OLD_HASH = '$argon2id$old'

let fixture: EdgeFixture
let cookies: Readonly<Record<string, string>>

const page = (text: string): string => `<!doctype html><title>${MARK}</title><p>${MARK} ${text}</p>`
const content = {
  'index.html': page('home'),
  '404.html': page('missing'),
  'clip.bin': { body: MARK.repeat(10) },
}
const rules = {
  redirects: [{ from: '/old', to: `/new-${MARK}`, status: 302 as const, force: false, line: 1 }],
  headers: [
    {
      from: '/*',
      set: [
        ['cache-control', 'public, max-age=3600'],
        ['referrer-policy', 'unsafe-url'],
        ['access-control-allow-origin', 'https://elsewhere.example'],
      ] as [string, string][],
      line: 1,
    },
  ],
}

beforeAll(async () => {
  fixture = await startEdgeFixture()
  const former = await fixture.store(content, rules)
  const manifest = await fixture.store({ ...content, 'new.html': page('new') }, rules)
  await fixture.publish(
    HOST,
    content,
    {
      ...viewersOnly(GENERATION, [['vw_removed', FAR]]),
      manifest,
      version_number: 2,
      versions: [
        [2, manifest],
        [1, former],
      ],
    },
    rules,
  )
  await fixture.setRoute({ kind: 'alias', host: 'alias.localhost', to: HOST })
  const admission = { siteId: SITE, subject: 'vw_1', generation: GENERATION, history: 0, endsAt: FAR }
  const cookie = (change: Partial<typeof admission>): string => viewerCookie(fixture, { ...admission, ...change })
  cookies = {
    stranger: '',
    viewer: `a=b; ${cookie({})}`,
    'viewer with a dead cookie too': `${cookie({ subject: 'vw_removed' })}; ${cookie({})}`,
    'removed viewer': cookie({ subject: 'vw_removed' }),
    guest: cookie({ subject: 'gl_1' }),
    'expired guest': cookie({ subject: 'gl_1', endsAt: 1 }),
    member: cookie({ subject: 'usr_1.1700000000' }),
    'viewer of an earlier mode': cookie({ generation: GENERATION - 1 }),
    'viewer of another drop': cookie({ siteId: 'st_other' }),
    'viewer of a lost history': cookie({ history: 1 }),
    forger: '__Host-dropway-viewer=s1.AAAA',
    'password holder of before': unlockCookie(fixture, { siteId: SITE, generation: GENERATION - 1, hash: OLD_HASH }),
    'who unlocks with the word itself': unlockCookie(fixture, {
      siteId: SITE,
      generation: GENERATION,
      hash: 'viewers',
    }),
  }
})
afterAll(() => fixture?.stop())

const ADMITTED = new Set(['viewer', 'viewer with a dead cookie too', 'guest', 'member'])
const PLACES = { live: HOST, preview: `2--${HOST}`, 'former version': `1--${HOST}`, 'custom domain': 'alias.localhost' }

interface Ask {
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
  /** For who is in. */
  readonly status: number
}

const ASKS: Readonly<Record<string, Ask>> = {
  page: { target: '/', status: 200 },
  'page by its name': { target: '/index.html', status: 200 },
  'not modified': { target: '/', headers: { 'if-none-match': '*' }, status: 304 },
  range: { target: '/clip.bin', headers: { range: 'bytes=0-9' }, status: 206 },
  'range that cannot be': { target: '/clip.bin', headers: { range: 'bytes=9999-' }, status: 416 },
  redirect: { target: '/old', status: 302 },
  'missing page': { target: '/nothing', status: 404 },
  icon: { target: '/favicon.ico', status: 200 },
  'malformed path': { target: '/%', status: 400 },
}

const bytesOf = ({ headers, body }: Answer): string => `${JSON.stringify(headers)} ${body.toString('latin1')}`

describe.each(['h1', 'h2'] as const)('over %s', (protocol) => {
  describe.each(['GET', 'HEAD'])('%s', (method) => {
    test.each(Object.entries(PLACES))('at the %s', async (_, host) => {
      for (const [who, cookie] of Object.entries(cookies)) {
        const asked = Object.entries(ASKS).map(async ([what, { target, headers, status }]) => {
          const sent = { ...headers, ...(cookie === '' ? {} : { cookie }) }
          const answer = await fixture[protocol](host, target, { method, headers: sent })
          const about = `${who}, ${what}`
          expect(answer.headers['cache-control'], about).toBe('private, no-store')
          expect(answer.headers['x-robots-tag'], about).toBe('noindex')
          expect(['same-origin', 'no-referrer'], about).toContain(answer.headers['referrer-policy'])
          expect(answer.headers['access-control-allow-origin'], about).toBeUndefined()
          // RFC 9110 §14.2: a range is about a GET.
          const expected = method === 'HEAD' && headers?.['range'] !== undefined ? 200 : status
          if (ADMITTED.has(who)) expect(answer.status, about).toBe(expected)
          else {
            expect(answer.status, about).toBe(401)
            expect(bytesOf(answer), about).not.toContain(MARK)
            expect(answer.headers['etag'], about).toBeUndefined()
          }
        })
        await Promise.all(asked)
      }
    })
  })

  test('other methods show nothing to anyone', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH'])
      for (const cookie of Object.values(cookies)) {
        const answer = await fixture[protocol](HOST, '/', { method, headers: cookie === '' ? {} : { cookie } })
        expect(answer.status).toBe(405)
        expect(bytesOf(answer)).not.toContain(MARK)
      }
  })

  test('a program whose token nobody can judge sees nothing', async () => {
    const tokens: Record<string, string>[] = [{ authorization: 'Bearer dw_x' }, { 'dropway-guest': 'x' }]
    for (const headers of tokens) {
      const answer = await fixture[protocol](HOST, '/', { headers })
      expect(answer.status).toBe(502)
      expect(bytesOf(answer)).not.toContain(MARK)
    }
  })

  test('the state of a drop comes first, and its doors are closed with it', async () => {
    const host = `over-${protocol}.localhost`
    const settings = { ...viewersOnly(1, []), expires_at: 1 }
    await fixture.publish(host, content, settings)
    const admission = { siteId: `st_${host}`, subject: 'vw_1', generation: 1, history: 0, endsAt: FAR }
    const cookie = viewerCookie(fixture, admission)
    for (const target of ['/', '/.dropway/visit', '/.dropway/enter/x', '/.dropway/guest/x'])
      expect((await fixture[protocol](host, target, { headers: { cookie } })).status, target).toBe(410)
  })

  test('an admission that is taken back is refused by every worker once that is acknowledged', async () => {
    const host = `revoked-${protocol}.localhost`
    await fixture.publish(host, content, viewersOnly(1, []))
    const admission = { siteId: `st_${host}`, subject: 'vw_1', generation: 1, history: 0, endsAt: FAR }
    const headers = { cookie: viewerCookie(fixture, admission) }
    for (let index = 0; index < 6; index++) expect((await fixture[protocol](host, '/', { headers })).status).toBe(200)
    await fixture.publish(host, content, viewersOnly(1, [['vw_1', FAR]]))
    for (let index = 0; index < 12; index++) expect((await fixture[protocol](host, '/', { headers })).status).toBe(401)
  })
})
