/** Who may call what: each endpoint with no credentials, a revoked token, another tenant's id, an unverified session. */
import { beforeAll, describe, expect, test } from 'vitest'
import { apiFor, fileForm } from '../support/api.ts'
import type { Answer } from '../support/client.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { sendFirst } from '../support/raw-http.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let owner: Account
let stranger: Account
let siteId: string
let versionId: string
let revoked: string
let unverified: FormBrowser
let unverifiedSite: string

beforeAll(async () => {
  stack = await sharedStack()
  ;[owner, stranger] = await Promise.all([stack.createAccount('plus'), stack.createAccount('plus')])
  const api = apiFor(stack, owner)
  siteId = (await api.create()).json().id
  versionId = (await api.upload(siteId, fileForm('a.html', 'x'))).json().version_id

  const other = await stack.createAccount('plus')
  const tokens = (await stack.fetch('/api/v1/tokens', { token: other.token })).json()
  await stack.fetch(`/api/v1/tokens/${(tokens.tokens ?? tokens)[0].id}`, { token: other.token, method: 'DELETE' })
  revoked = other.token

  unverified = new FormBrowser(stack, '198.51.100.77')
  await unverified.send('/signup', {
    email: `unverified-${Date.now()}@example.test`,
    password: 'correct horse battery',
  })
  unverifiedSite = (await unverified.api('/sites', { json: {} })).json().id
})

interface Endpoint {
  readonly name: string
  /** Works while the e-mail is unverified: the exceptions that the specification lists. */
  readonly exception?: true
  readonly hasId?: true
  readonly method: string
  path(id: string): string
  body?(): { json: unknown } | { body: FormData }
}

const endpoints: readonly Endpoint[] = [
  { name: 'POST /sites', exception: true, method: 'POST', path: () => '/sites', body: () => ({ json: {} }) },
  { name: 'GET /sites', exception: true, method: 'GET', path: () => '/sites' },
  { name: 'GET /sites/{id}', exception: true, hasId: true, method: 'GET', path: (id) => `/sites/${id}` },
  {
    name: 'POST /sites/{id}/upload',
    exception: true,
    hasId: true,
    method: 'POST',
    path: (id) => `/sites/${id}/upload`,
    body: () => ({ body: fileForm('a.html', 'x') }),
  },
  {
    name: 'POST /sites/{id}/upload-bundle',
    exception: true,
    hasId: true,
    method: 'POST',
    path: (id) => `/sites/${id}/upload-bundle`,
    body: () => ({ body: fileForm('a.zip', 'x') }),
  },
  {
    name: 'PATCH /sites/{id}',
    hasId: true,
    method: 'PATCH',
    path: (id) => `/sites/${id}`,
    body: () => ({ json: { name: 'x' } }),
  },
  { name: 'GET /sites/{id}/versions', hasId: true, method: 'GET', path: (id) => `/sites/${id}/versions` },
  { name: 'POST promote', hasId: true, method: 'POST', path: (id) => `/sites/${id}/versions/${versionId}/promote` },
  { name: 'GET changes', hasId: true, method: 'GET', path: (id) => `/sites/${id}/versions/${versionId}/changes` },
  { name: 'GET /sites/{id}/views', hasId: true, method: 'GET', path: (id) => `/sites/${id}/views` },
  { name: 'GET /sites/{id}/domains', hasId: true, method: 'GET', path: (id) => `/sites/${id}/domains` },
  {
    name: 'POST /sites/{id}/domains',
    hasId: true,
    method: 'POST',
    path: (id) => `/sites/${id}/domains`,
    body: () => ({ json: { domain: 'www.example.org' } }),
  },
  { name: 'GET /sites/export', method: 'GET', path: () => '/sites/export' },
  { name: 'GET /me', method: 'GET', path: () => '/me' },
  { name: 'GET /usage', method: 'GET', path: () => '/usage' },
  { name: 'GET /tokens', method: 'GET', path: () => '/tokens' },
  { name: 'GET /audit-log', method: 'GET', path: () => '/audit-log' },
  { name: 'GET /billing', method: 'GET', path: () => '/billing' },
  { name: 'DELETE /sites/{id}', exception: true, hasId: true, method: 'DELETE', path: (id) => `/sites/${id}` },
]

const withId = endpoints.filter((endpoint) => endpoint.hasId)
const outcome = (answer: Answer): [number, string] => [answer.status, answer.json().error]

describe('without credentials', () => {
  test.each(endpoints)('$name is 401', async ({ method, path, body }) => {
    expect(outcome(await stack.fetch(`/api/v1${path(siteId)}`, { method, ...body?.() }))).toEqual([401, 'unauthorized'])
  })
})

describe('with a revoked token', () => {
  test.each(endpoints)('$name is 401', async ({ method, path, body }) => {
    expect(outcome(await stack.fetch(`/api/v1${path(siteId)}`, { token: revoked, method, ...body?.() }))).toEqual([
      401,
      'unauthorized',
    ])
  })
})

describe("another tenant's id answers exactly like a missing one", () => {
  test.each(withId)('$name', async ({ method, path, body }) => {
    const [foreign, missing] = await Promise.all(
      [siteId, 'st_missing'].map((id) =>
        stack.fetch(`/api/v1${path(id)}`, { token: stranger.token, method, ...body?.() }),
      ),
    )
    expect(outcome(foreign!)).toEqual([404, 'not_found'])
    expect(foreign!.text()).toBe(missing!.text())
  })
})

describe('while the e-mail is unverified', () => {
  test.each(endpoints.filter((endpoint) => !endpoint.exception))(
    '$name is 403 email_not_verified',
    async ({ method, path, body }) => {
      expect(outcome(await unverified.api(path(unverifiedSite), { method, ...body?.() }))).toEqual([
        403,
        'email_not_verified',
      ])
    },
  )
  test('so is every endpoint that the API describes, except those that the specification lists', async () => {
    const exceptions = new Set([
      'POST /sites',
      'GET /sites',
      'GET /sites/{id}',
      'DELETE /sites/{id}',
      'POST /sites/{id}/upload',
      'POST /sites/{id}/upload-bundle',
    ])
    const { paths } = (await stack.fetch('/api/v1/openapi.json')).json<{
      paths: Record<string, Record<string, { security?: unknown[] }>>
    }>()
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, { security }]) => (security?.length ?? 0) > 0)
        .map(([method]) => ({ method: method.toUpperCase(), path: path.replace('/api/v1', '') })),
    )
    expect(described.length).toBeGreaterThan(30)
    const answers: Record<string, string> = {}
    for (const { method, path } of described) {
      if (exceptions.has(`${method} ${path}`)) continue
      const address = path
        .replace('/api/v1', '')
        .replace('{id}', unverifiedSite)
        .replace(/\{\w+\}/g, 'unknown')
      const answer = await unverified.api(address, { method, ...(method === 'GET' ? {} : { json: {} }) })
      answers[`${method} ${path}`] = `${answer.status} ${/"error":"(\w+)"/.exec(answer.text())?.[1]}`
    }
    const others = Object.entries(answers).filter(([, answer]) => answer !== '403 email_not_verified')
    expect(others).toEqual([])
  })
  test.each(endpoints.filter((endpoint) => endpoint.exception))('$name works', async ({ method, path, body, name }) => {
    const answer = await unverified.api(path(unverifiedSite), { method, ...body?.() })
    // The bundle is not a zip: it is read and judged, not refused at the door.
    expect(answer.status).toBe(name.endsWith('upload-bundle') ? 400 : { GET: 200, POST: 201, DELETE: 204 }[method])
  })
})

test("a session is no credential for another site's pages", async () => {
  for (const headers of [
    { origin: 'https://evil.example' },
    { origin: stack.baseUrl, 'sec-fetch-site': 'cross-site' },
    {},
  ] as Record<string, string>[]) {
    const answer = await unverified.open('/api/v1/sites', { headers })
    expect(answer.status).toBe(401)
  }
})

test.each(['Bearer', 'Bearer dw_wrong', 'Basic abc', 'Bearer ', `Bearer dw_${'x'.repeat(5000)}`])(
  'a malformed credential %s is 401',
  async (authorization) => {
    expect((await stack.fetch('/api/v1/sites', { headers: { authorization } })).status).toBe(401)
  },
)

describe('a caller who sends everything before reading anything hears the refusal', () => {
  const body = Buffer.alloc(11_000_000, 'x')
  const send = (head: string): Promise<string> =>
    sendFirst({ port: stack.httpsPort, ca: stack.ca, host: 'localhost' }, head, body)
  const form = 'content-type: multipart/form-data; boundary=b'

  test.each<[string, number, () => string]>([
    ['a wrong token', 401, () => `POST /api/v1/sites/${siteId}/upload HTTP/1.1\r\nauthorization: Bearer no\r\n${form}`],
    [
      'a body over its bound',
      413,
      () =>
        `PATCH /api/v1/sites/${siteId} HTTP/1.1\r\nauthorization: Bearer ${owner.token}\r\ncontent-type: application/json`,
    ],
    ['an unknown address', 404, () => 'POST /api/v1/nowhere HTTP/1.1'],
    ['a form in another coding', 415, () => `POST /signin HTTP/1.1\r\ncontent-encoding: gzip\r\n${form}`],
  ])('%s: %i', async (_, status, head) => {
    expect((await send(head())).split('\r\n')[0]).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  })
})
