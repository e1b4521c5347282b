import { describe, expect, test } from 'vitest'
import { createCsrf, CSRF_FIELD } from '../../../control/people/access/csrf.ts'
import { SESSION_COOKIE } from '../../../control/people/access/sessions.ts'
import { createSecrets } from '../../../shared/secrets/secrets.ts'
import { BASE_URL, fakeRequest, secretOf } from '../../support/accounts.ts'

const csrf = createCsrf({ secrets: createSecrets('a secret key for tests, 32 chars or more'), baseUrl: BASE_URL })
const VISITOR_COOKIE = '__Host-dropway_csrf'

type Parts = { headers?: Record<string, string>; cookies: Record<string, string>; token: string }

function passes({ headers = { origin: BASE_URL, 'sec-fetch-site': 'same-origin' }, cookies, token }: Parts): boolean {
  try {
    csrf.requireCsrf(fakeRequest({ method: 'POST', headers, cookies }), new URLSearchParams({ [CSRF_FIELD]: token }))
    return true
  } catch (error) {
    expect(error).toMatchObject({ status: 403, code: 'forbidden' })
    return false
  }
}

describe('before sign-in', () => {
  const page = csrf.csrfToken(fakeRequest({}))
  const cookies = { [VISITOR_COOKIE]: secretOf({ setCookie: page.setCookie! }) }

  test('a page gets a cookie and a token that fits it', () => {
    expect(page.setCookie).toMatch(/^__Host-dropway_csrf=[\w-]+; Path=\/; Secure; HttpOnly; SameSite=Lax$/)
    expect(passes({ cookies, token: page.token })).toBe(true)
  })

  test('the next page keeps the cookie, so that two open forms both work', () => {
    const next = csrf.csrfToken(fakeRequest({ cookies }))
    expect(next).toEqual({ token: page.token, setCookie: undefined })
  })

  test('no token, another browser, or no cookie is refused', () => {
    expect(passes({ cookies, token: '' })).toBe(false)
    expect(passes({ cookies: {}, token: page.token })).toBe(false)
    const other = csrf.csrfToken(fakeRequest({}))
    expect(passes({ cookies, token: other.token })).toBe(false)
  })
})

describe('with a session', () => {
  const cookies = { [SESSION_COOKIE]: 'session-secret', [VISITOR_COOKIE]: 'visitor-secret' }
  const { token, setCookie } = csrf.csrfToken(fakeRequest({ cookies }))

  test('the token is bound to the session, and is not its secret', () => {
    expect(setCookie).toBeUndefined()
    expect(token).not.toContain('session-secret')
    expect(passes({ cookies, token })).toBe(true)
    expect(passes({ cookies: { ...cookies, [SESSION_COOKIE]: 'another' }, token })).toBe(false)
  })

  test('a cookie of before cannot stand in for the session', () => {
    const visitor = csrf.csrfToken(fakeRequest({ cookies: { [VISITOR_COOKIE]: 'visitor-secret' } }))
    expect(passes({ cookies, token: visitor.token })).toBe(false)
    const planted = csrf.csrfToken(fakeRequest({ cookies: { [VISITOR_COOKIE]: 'session-secret' } }))
    expect(passes({ cookies, token: planted.token })).toBe(false)
  })

  test.each([
    ['our page', { origin: BASE_URL, 'sec-fetch-site': 'same-origin' }, true],
    ['our page that hides its referrer', { origin: 'null', 'sec-fetch-site': 'same-origin' }, true],
    ['a client that sends neither header', {}, true],
    ['another site', { origin: 'https://evil.test' }, false],
    ['a drop', { origin: 'https://drop.dropway.test', 'sec-fetch-site': 'same-site' }, false],
    ['a sandboxed frame elsewhere', { origin: 'null', 'sec-fetch-site': 'cross-site' }, false],
    ['a link from elsewhere', { 'sec-fetch-site': 'cross-site' }, false],
  ])('the right token from %s', (_, headers: Record<string, string>, expected) => {
    expect(passes({ headers, cookies, token })).toBe(expected)
  })
})
