/** What every route of the control plane may rely on, over real sockets: how requests are read and replies sent. */
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { html, json, noContent, stream } from '../../control/ground/http/reply.ts'
import type { Route } from '../../control/ground/http/route.ts'
import { errors } from '../../shared/contracts/errors.ts'
import type { Log } from '../../shared/running/log.ts'
import { hello, startServer } from '../support/http-server.ts'

test('params are decoded once, query and cookies are read, a broken escape is 400', async () => {
  const { url } = await startServer([
    {
      method: 'GET',
      path: '/api/v1/things/:id',
      handle: (request) =>
        json(200, {
          id: request.params['id'],
          q: request.query.getAll('q'),
          cookie: request.cookie('__Host-a'),
          method: request.method,
        }),
    },
    { method: 'GET', path: '/files/*', handle: (request) => json(200, request.params['*']) },
  ])
  const answer = await fetch(`${url}/api/v1/things/a%2520b?q=1&q=%C3%BC`, {
    headers: { cookie: 'x=1; __Host-a="v=2"; __Host-a=late' },
  })
  expect(await answer.json()).toEqual({ id: 'a%20b', q: ['1', 'ü'], cookie: 'v=2', method: 'GET' })
  expect((await fetch(`${url}/api/v1/things/%zz`)).status).toBe(400)
  expect(await (await fetch(`${url}/files/a%20b/c?x`)).json()).toBe('a b/c')
})

test('HEAD is GET without a body; another method is 405 with Allow; an unknown path is 404', async () => {
  const { url } = await startServer([hello, { method: 'DELETE', path: '/hello', handle: () => noContent() }], {
    notFound: () => html(404, '<h1>Nothing here</h1>'),
  })
  const head = await fetch(`${url}/hello`, { method: 'HEAD' })
  expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '14', ''])
  const wrong = await fetch(`${url}/hello`, { method: 'PATCH', body: 'x' })
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'DELETE, GET, HEAD'])
  const api = await fetch(`${url}/api/v1/nothing`)
  expect([api.status, ((await api.json()) as { error: string }).error]).toEqual([404, 'not_found'])
  expect((await fetch(`${url}/mcp`)).headers.get('content-type')).toContain('json')
  const page = await fetch(`${url}/nothing`)
  expect([page.status, await page.text()]).toEqual([404, '<h1>Nothing here</h1>'])
  expect((await fetch(`${url}/hello`, { method: 'DELETE' })).status).toBe(204)
})

test('errors: the catalogue as JSON with its headers, pages for people, an id for what is our fault', async () => {
  const logged: unknown[] = []
  const log = { error: (...args: unknown[]) => logged.push(args) } as unknown as Log
  const { url } = await startServer(
    [
      { method: 'GET', path: '/api/v1/limited', handle: () => Promise.reject(errors.rateLimited(7)) },
      { method: 'GET', path: '/api/v1/bug', handle: () => Promise.reject(new TypeError('secret detail')) },
      {
        method: 'GET',
        path: '/api/v1/away',
        handle: () => Promise.reject(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })),
      },
      { method: 'GET', path: '/page', handle: () => Promise.reject(errors.forbidden('Not yours.')) },
      { method: 'GET', path: '/broken-page', handle: () => Promise.reject(new Error('again')) },
    ],
    {
      log,
      errorPage: (request, error) => {
        if (request.path === '/broken-page') throw new Error('the page fails too')
        return html(error.status, `<p>${error.message}</p>`)
      },
    },
  )
  const limited = await fetch(`${url}/api/v1/limited`)
  expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '7'])
  expect(logged).toHaveLength(0)
  const bug = await fetch(`${url}/api/v1/bug`)
  const body = (await bug.json()) as Record<string, string>
  expect([bug.status, body['error']]).toEqual([500, 'internal'])
  expect(JSON.stringify(body)).not.toContain('secret')
  expect(logged).toHaveLength(1)
  expect(JSON.stringify(logged[0])).toContain(body['id'])
  const away = await fetch(`${url}/api/v1/away`)
  expect([away.status, ((await away.json()) as { error: string }).error]).toEqual([503, 'unavailable'])
  expect(await (await fetch(`${url}/page`)).text()).toBe('<p>Not yours.</p>')
  expect((await fetch(`${url}/broken-page`)).status).toBe(500)
})

test('every reply carries the security headers; a page may set its own policy', async () => {
  const { url } = await startServer([
    hello,
    { method: 'GET', path: '/page', handle: () => html(200, 'x', { 'content-security-policy': "default-src 'self'" }) },
  ])
  for (const path of ['/hello', '/nothing', '/api/v1/nothing']) {
    const { headers } = await fetch(url + path)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('x-frame-options')).toBe('DENY')
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    expect(headers.get('strict-transport-security')).toBeTruthy()
    expect(headers.get('referrer-policy')).toBeTruthy()
  }
  expect((await fetch(`${url}/page`)).headers.get('content-security-policy')).toBe("default-src 'self'")
})

test('several cookies are several headers', async () => {
  const { url } = await startServer([
    { method: 'GET', path: '/', handle: () => noContent({ 'set-cookie': ['a=1', 'b=2'] }) },
  ])
  expect((await fetch(url)).headers.getSetCookie()).toEqual(['a=1', 'b=2'])
})

test("the caller's address is what our own edge says, one hop deep", async () => {
  const route: Route = { method: 'GET', path: '/ip', handle: (request) => json(200, request.ip) }
  const { url } = await startServer([route], { trustedProxies: ['10.0.0.0/8', '2001:db8::/32'] })
  const table: [string | undefined, string][] = [
    [undefined, '127.0.0.1'],
    ['203.0.113.9', '203.0.113.9'],
    ['1.1.1.1, 203.0.113.9', '203.0.113.9'],
    ['203.0.113.9, 10.1.2.3', '203.0.113.9'],
    ['203.0.113.9, 2001:db8::1', '203.0.113.9'],
    ['1.1.1.1, 127.0.0.1', '127.0.0.1'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['nonsense', '127.0.0.1'],
  ]
  for (const [forwarded, ip] of table) {
    const answer = await fetch(`${url}/ip`, {
      headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
    })
    expect(await answer.json(), forwarded).toBe(ip)
  }
})

test('a stream of known length carries it; one that fails midway cuts the connection', async () => {
  const heard = Promise.withResolvers<void>()
  const { url } = await startServer([
    {
      method: 'GET',
      path: '/known',
      handle: () => stream(200, Readable.from([Buffer.from('abc'), Buffer.from('def')]), { 'content-length': '6' }),
    },
    {
      method: 'GET',
      path: '/broken',
      handle: () =>
        stream(
          200,
          Readable.from(
            (async function* () {
              yield Buffer.from('begin')
              await heard.promise
              throw new Error('disk gone')
            })(),
          ),
          {},
        ),
    },
  ])
  const known = await fetch(`${url}/known`)
  expect([known.headers.get('content-length'), await known.text()]).toEqual(['6', 'abcdef'])
  const head = await fetch(`${url}/known`, { method: 'HEAD' })
  expect([head.headers.get('content-length'), await head.text()]).toEqual(['6', ''])
  const broken = await fetch(`${url}/broken`)
  heard.resolve()
  await expect(broken.text()).rejects.toThrow()
})
