import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { closedPage, errorPage, missingPage, unlockPage } from '../../../edge/gate/pages.ts'
import type { PreparedPage } from '../../../edge/gate/pages.ts'

const options = { baseUrl: 'https://dropway.test:8443', host: 'demo.dropway.test' }

function headersOf(page: PreparedPage): Record<string, string> {
  expect(new Set(page.headers.map(([name]) => name)).size).toBe(page.headers.length)
  return Object.fromEntries(page.headers)
}

const REPORT = 'https://dropway.test:8443/report?url=https%3A%2F%2Fdemo.dropway.test%3A8443%2F'

describe('a closed drop says in words what happened', () => {
  test.each([
    ['unknown', 404, 'Nothing is published here', false],
    ['reserved', 404, 'Nothing here yet', false],
    ['gone', 410, 'This drop is gone', true],
    ['expired', 410, 'This drop has expired', true],
    ['removed', 410, 'This drop was removed', true],
    ['unverified', 503, 'Not verified yet', true],
    ['paused', 503, 'This drop is paused', true],
  ] as const)('%s: %i, %s', (name, status, words, mayBeReported) => {
    const page = closedPage(name, options)
    const body = page.body.toString()
    expect(page.status).toBe(status)
    expect(body).toContain(`<h1>${words}</h1>`)
    expect(body).toContain(options.host)
    expect(body.includes(REPORT)).toBe(mayBeReported)
    expect(headersOf(page)['retry-after'] !== undefined).toBe(status === 503)
    // Only what opens by itself is looked at again by itself.
    expect(headersOf(page)['refresh'] !== undefined).toBe(name === 'unverified')
  })
})

test.each<[string, PreparedPage, number]>([
  ['closed', closedPage('gone', options), 410],
  ['missing', missingPage({ ...options, isProtected: false }), 404],
  ['unlock', unlockPage({ ...options, next: '/' }), 401],
  ['error', errorPage(500, { baseUrl: options.baseUrl, id: 'err_1' }), 500],
])('the %s page is never stored, never indexed, and loads and runs nothing', (_, page, status) => {
  expect(page.status).toBe(status)
  const headers = headersOf(page)
  expect(headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'x-robots-tag': 'noindex',
    'x-content-type-options': 'nosniff',
    'strict-transport-security': expect.stringMatching(/^max-age=\d+$/),
  })
  expect(headers['cache-control']).toMatch(/no-store$/)
  expect(headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-[^']+';/)
  expect(page.body.toString()).not.toMatch(/<script|<img|<link|<iframe|url\(|@import| style=/)
})

describe('the unlock page', () => {
  test('is a form that works without scripts and keeps where the visitor wanted to go', () => {
    const body = unlockPage({ ...options, next: '/a?b="><script>' }).body.toString()
    expect(body).toContain('<form class="stack" method="post" action="/.dropway/unlock">')
    expect(body).toContain('name="next" value="/a?b=&quot;&gt;&lt;script&gt;"')
    expect(body).toContain('type="password" autocomplete="current-password"')
    expect(body).not.toContain('role="alert"')
    expect(body).toContain(REPORT)
  })

  test('says what was wrong', () => {
    const wrong = unlockPage({ ...options, next: '/', problem: 'wrong' })
    expect([wrong.status, headersOf(wrong)['retry-after']]).toEqual([401, undefined])
    expect(wrong.body.toString()).toMatch(/role="alert" id="problem">That is not the password/)
    const busy = unlockPage({ ...options, next: '/', problem: 'limited', retryAfterSeconds: 30 })
    expect([busy.status, headersOf(busy)['retry-after']]).toEqual([429, '30'])
    expect(busy.body.toString()).toMatch(/role="alert" id="problem">Very many passwords are being tried/)
  })

  test('that asks for work runs one script, which its policy names, and says what to do without', () => {
    const work = { challenge: '"><b>', bits: 19 }
    const page = unlockPage({ ...options, next: '/', problem: 'limited', retryAfterSeconds: 30, work })
    const body = page.body.toString()
    expect([page.status, headersOf(page)['retry-after']]).toEqual([429, '30'])
    expect(body).toContain('Many wrong passwords were tried here lately, perhaps by someone else')
    expect(body).toMatch(/<noscript>.*needs JavaScript.*ten minutes.*<\/noscript>/)
    expect(body).toContain('<input type="hidden" name="proof" value="">')
    expect(body).toContain('data-challenge="&quot;&gt;&lt;b&gt;" data-bits="19"')
    const scripts = [...body.matchAll(/<script type="module">([^]*?)<\/script>/g)]
    expect(scripts).toHaveLength(1)
    const hash = createHash('sha256').update(scripts[0]![1]!).digest('base64')
    expect(headersOf(page)['content-security-policy']).toContain(`; script-src 'sha256-${hash}';`)
    expect(scripts[0]![1]).not.toMatch(/^(import|export) /m)
  })

  test('belongs to this visitor', () => {
    expect(headersOf(unlockPage({ ...options, next: '/' }))).toMatchObject({
      'cache-control': 'private, no-store',
      vary: 'cookie',
    })
  })
})

describe('error pages', () => {
  test.each([400, 404, 405, 413, 414, 421, 429, 431, 500, 502, 503, 504, 418, 599])(
    '%i has words of its own or good general ones',
    (status) => {
      const page = errorPage(status, { baseUrl: options.baseUrl })
      expect(page.status).toBe(status)
      expect(page.body.toString()).toMatch(/<h1>[A-Z][^<]+<\/h1>/)
      expect(headersOf(page)['retry-after'] !== undefined).toBe([429, 502, 503, 504].includes(status))
    },
  )

  test('show the id that the log shows, and nothing else of the visitor', () => {
    expect(errorPage(500, { baseUrl: options.baseUrl, id: 'err_1<' }).body.toString()).toContain(
      '<code>err_1&lt;</code>',
    )
    expect(closedPage('unknown', { ...options, host: '"><script>' }).body.toString()).not.toContain('<script')
  })
})
