/** What every route of the control plane may rely on, over real sockets. */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { Readable } from 'node:stream'
import { afterEach, expect, test } from 'vitest'
import { createHttpServer, type HttpServer, type HttpServerOptions } from '../../control/ground/http/server/server.ts'
import { html, json, noContent, stream } from '../../control/ground/http/reply.ts'
import type { Part, Route } from '../../control/ground/http/route.ts'
import { systemClock } from '../../shared/clock.ts'
import { errors } from '../../shared/errors.ts'
import { silentLog, type Log } from '../../shared/log.ts'
import { exchange, statusOf } from '../support/raw-http.ts'

const servers: HttpServer[] = []

async function start(
  routes: Route[],
  options: Partial<HttpServerOptions> = {},
): Promise<{ url: string; port: number; server: HttpServer }> {
  const server = createHttpServer({ routes, log: silentLog, clock: systemClock, trustedProxies: [], ...options })
  const port = await server.listen(0, '127.0.0.1')
  servers.push(server)
  return { url: `http://127.0.0.1:${port}`, port, server }
}

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close(0)))
})

const jsonEcho: Route = {
  method: 'POST',
  path: '/api/v1/echo',
  handle: async (request) => json(200, await request.json()),
}
const hello: Route = { method: 'GET', path: '/hello', handle: () => json(200, { hello: true }) }

test('JSON bodies: parsed, or refused with the code that says why', async () => {
  const { url } = await start([jsonEcho])
  const post = (body: string, type = 'application/json') =>
    fetch(`${url}/api/v1/echo`, { method: 'POST', body, headers: { 'content-type': type } })
  expect(await (await post('{"a":[1,"ü"]}', 'application/json; charset=utf-8')).json()).toEqual({ a: [1, 'ü'] })
  const table: [string, string, number, string][] = [
    ['{"a":', 'application/json', 400, 'invalid_json'],
    ['', 'application/json', 400, 'invalid_json'],
    ['{}', 'text/plain', 400, 'invalid_request'],
    ['{}', 'application/jsonx', 400, 'invalid_request'],
    [JSON.stringify('x'.repeat(1_000_001)), 'application/json', 413, 'upload_too_large'],
  ]
  for (const [body, type, status, code] of table) {
    const answer = await post(body, type)
    expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([status, code])
  }
})

test('a body that is not UTF-8, and a chunked one over the cap, are refused', async () => {
  const { url } = await start([jsonEcho])
  const headers = { 'content-type': 'application/json' }
  const bad = await fetch(`${url}/api/v1/echo`, { method: 'POST', headers, body: Buffer.from([0x22, 0xff, 0x22]) })
  expect(bad.status).toBe(400)
  const chunks = Readable.toWeb(
    Readable.from(Array.from({ length: 40 }, () => Buffer.alloc(50_000, 32))),
  ) as ReadableStream
  const large = await fetch(`${url}/api/v1/echo`, {
    method: 'POST',
    headers,
    body: chunks,
    duplex: 'half',
  } as RequestInit)
  expect(large.status).toBe(413)
})

test('params are decoded once, query and cookies are read, a broken escape is 400', async () => {
  const { url } = await start([
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
  const { url } = await start([hello, { method: 'DELETE', path: '/hello', handle: () => noContent() }], {
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
  const { url } = await start(
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
  const { url } = await start([
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
  const { url } = await start([{ method: 'GET', path: '/', handle: () => noContent({ 'set-cookie': ['a=1', 'b=2'] }) }])
  expect((await fetch(url)).headers.getSetCookie()).toEqual(['a=1', 'b=2'])
})

test("the caller's address is what our own edge says, one hop deep", async () => {
  const route: Route = { method: 'GET', path: '/ip', handle: (request) => json(200, request.ip) }
  const { url } = await start([route], { trustedProxies: ['10.0.0.0/8', '2001:db8::/32'] })
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

/** Collects parts; files as sizes and hashes. */
function collector(): { route: Route; parts: unknown[]; received: { bytes: number } } {
  const parts: unknown[] = []
  const received = { bytes: 0 }
  const onPart = async (part: Part) => {
    if (part.kind === 'field') return void parts.push([part.name, part.value])
    const hash = createHash('sha256')
    let size = 0
    for await (const chunk of part.stream as AsyncIterable<Buffer>) {
      hash.update(chunk)
      size += chunk.byteLength
      received.bytes += chunk.byteLength
    }
    const filename = part.kind === 'file' ? part.filename : undefined
    parts.push([part.name, filename, size, hash.digest('hex').slice(0, 8)])
  }
  const route: Route = {
    method: 'POST',
    path: '/api/v1/upload',
    async handle(request) {
      await request.multipart(onPart)
      return json(201, parts.length)
    },
  }
  return { route, parts, received }
}

test('multipart: parts in order, paths and UTF-8 names kept', async () => {
  const { route, parts } = collector()
  const { url } = await start([route])
  const form = new FormData()
  form.append('files', new Blob(['one']), 'dir/übersicht.html')
  form.append('paths', 'dir/übersicht.html')
  form.append('files', new Blob([]), 'empty.txt')
  form.append('paths', 'empty.txt')
  const answer = await fetch(`${url}/api/v1/upload`, { method: 'POST', body: form })
  expect(answer.status).toBe(201)
  expect(parts).toEqual([
    ['files', 'dir/übersicht.html', 3, expect.any(String)],
    ['paths', 'dir/übersicht.html'],
    ['files', 'empty.txt', 0, expect.any(String)],
    ['paths', 'empty.txt'],
  ])
})

test.each([
  [4, 201],
  [5, 413],
])('multipart: %i MB of text fields are answered with %i', async (fields, status) => {
  const { route } = collector()
  const { url } = await start([route])
  const form = new FormData()
  for (let index = 0; index < fields; index++) form.append('paths', 'x'.repeat(999_000))
  const answer = await fetch(`${url}/api/v1/upload`, { method: 'POST', body: form })
  expect(answer.status).toBe(status)
})

test('multipart: 100 MB stream through without being held in memory', async () => {
  const { route, parts, received } = collector()
  const { url } = await start([route])
  const block = randomBytes(1_000_000)
  const expected = createHash('sha256')
  let sent = 0
  let widestGap = 0
  async function* body(): AsyncGenerator<Buffer> {
    yield Buffer.from('--b\r\ncontent-disposition: form-data; name="file"; filename="big.zip"\r\n\r\n')
    for (let index = 0; index < 100; index++) {
      expected.update(block)
      yield block
      sent += block.byteLength
      widestGap = Math.max(widestGap, sent - received.bytes)
    }
    yield Buffer.from('\r\n--b--\r\n')
  }
  const answer = await fetch(`${url}/api/v1/upload`, {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data; boundary=b' },
    body: Readable.toWeb(Readable.from(body())) as ReadableStream,
    duplex: 'half',
  } as RequestInit)
  expect(answer.status).toBe(201)
  expect(parts).toEqual([['file', 'big.zip', 100_000_000, expected.digest('hex').slice(0, 8)]])
  // What is under way: buffers of both sockets, of the sender and of each step.
  expect(widestGap).toBeLessThan(25_000_000)
})

test('multipart: a slow handler holds the sender back', async () => {
  const { promise: go, resolve: release } = Promise.withResolvers<void>()
  let received = 0
  const { port } = await start([
    {
      method: 'POST',
      path: '/slow',
      async handle(request) {
        await request.multipart(async (part) => {
          await go
          if (part.kind === 'file')
            for await (const chunk of part.stream as AsyncIterable<Buffer>) received += chunk.byteLength
        })
        return json(200, received)
      },
    },
  ])
  const total = 64_000_000
  const head = '--b\r\ncontent-disposition: form-data; name="f"; filename="f"\r\n\r\n'
  const tail = '\r\n--b--\r\n'
  const socket = net.connect(port, '127.0.0.1')
  socket.write(
    `POST /slow HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: ${head.length + total + tail.length}\r\n\r\n${head}`,
  )
  const block = Buffer.alloc(1_000_000, 65)
  let sent = 0
  for (let flowing = true; sent < total && flowing; sent += block.byteLength) {
    flowing =
      socket.write(block) || (await Promise.race([once(socket, 'drain').then(() => true), wait(400).then(() => false)]))
  }
  expect(sent, 'the sender was held up').toBeLessThan(total)
  release()
  const answer = once(socket, 'data')
  for (; sent < total; sent += block.byteLength) if (!socket.write(block)) await once(socket, 'drain')
  socket.write(tail)
  expect(String((await answer)[0])).toMatch(/200 OK/)
  expect(received).toBe(total)
  socket.destroy()
})

test.each([
  ['no boundary', 'multipart/form-data', '--b\r\n\r\n--b--', 400],
  ['another type', 'application/json', '{}', 400],
  [
    'truncated in a file',
    'multipart/form-data; boundary=b',
    '--b\r\ncontent-disposition: form-data; name="f"; filename="x"\r\n\r\nhalf',
    400,
  ],
  ['truncated in a header', 'multipart/form-data; boundary=b', '--b\r\ncontent-dispos', 400],
  ['no parts at all', 'multipart/form-data; boundary=b', 'nothing', 400],
  ['an empty body', 'multipart/form-data; boundary=b', '', 400],
])('multipart: %s is refused, never left hanging', async (_name, type, body, status) => {
  const { route } = collector()
  const { url } = await start([route])
  const answer = await fetch(`${url}/api/v1/upload`, { method: 'POST', body, headers: { 'content-type': type } })
  expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([status, 'invalid_request'])
})

test('a handler that refuses early is heard, whatever the caller still sends', async () => {
  let reached = 0
  const { port, url } = await start([
    {
      method: 'POST',
      path: '/api/v1/upload',
      async handle(request) {
        await request.multipart(async (part) => {
          if (part.kind !== 'file') return
          for await (const chunk of part.stream as AsyncIterable<Buffer>) {
            reached += chunk.byteLength
            if (reached > 100_000) throw errors.uploadTooLarge(100_000)
          }
        })
        return noContent()
      },
    },
    hello,
  ])
  const request = http.request({
    port,
    host: '127.0.0.1',
    method: 'POST',
    path: '/api/v1/upload',
    headers: { 'content-type': 'multipart/form-data; boundary=b' },
  })
  request.on('error', () => {})
  request.write('--b\r\ncontent-disposition: form-data; name="f"; filename="x"\r\n\r\n')
  let sent = 0
  const block = Buffer.alloc(200_000, 65)
  const sender = setInterval(() => {
    if (!request.destroyed && sent < 50_000_000) sent += request.write(block) ? block.byteLength : 0
  }, 1)
  const [reply] = (await once(request, 'response')) as [http.IncomingMessage]
  expect([reply.statusCode, reply.headers.connection]).toEqual([413, 'close'])
  expect(JSON.parse(String(Buffer.concat(await reply.toArray())))).toMatchObject({ error: 'upload_too_large' })
  clearInterval(sender)
  request.destroy()
  expect(reached).toBeLessThan(5_000_000)
  expect((await fetch(`${url}/hello`)).status).toBe(200)
})

test('a small body that no one reads does not cost the connection', async () => {
  const { port } = await start([
    { method: 'POST', path: '/api/v1/x', handle: () => Promise.reject(errors.unauthorized()) },
    hello,
  ])
  const post = `POST /api/v1/x HTTP/1.1\r\nhost: x\r\ncontent-length: 50000\r\n\r\n${'x'.repeat(50_000)}`
  const answer = await exchange(port, `${post}GET /hello HTTP/1.1\r\nhost: x\r\n\r\n`)
  expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401', 'HTTP/1.1 200'])
})

test('a caller that announces a body and never sends it gets its answer', async () => {
  const { port } = await start([
    { method: 'POST', path: '/api/v1/x', handle: () => Promise.reject(errors.unauthorized()) },
  ])
  const answer = await exchange(port, 'POST /api/v1/x HTTP/1.1\r\nhost: x\r\ncontent-length: 50000\r\n\r\n', 3000)
  expect(statusOf(answer)).toBe(401)
})

test('when the caller leaves, the handler hears of it and nothing is logged', async () => {
  const logged: unknown[] = []
  const outcomes: string[] = []
  const { promise: done, resolve } = Promise.withResolvers<void>()
  const note = (what: string) => {
    outcomes.push(what)
    if (outcomes.length === 3) resolve()
  }
  const { port } = await start(
    [
      {
        method: 'GET',
        path: '/wait',
        handle: (request) =>
          new Promise((_resolve, reject) =>
            request.signal.addEventListener('abort', () => (note('signal'), reject(request.signal.reason))),
          ),
      },
      {
        method: 'POST',
        path: '/json',
        handle: (request) =>
          request.json().then(
            () => noContent(),
            (error: unknown) => (note('json'), Promise.reject(error)),
          ),
      },
      {
        method: 'POST',
        path: '/form',
        handle: (request) =>
          request
            .multipart(async (part) => {
              if (part.kind === 'file') for await (const _ of part.stream) void _
            })
            .then(
              () => noContent(),
              (error: unknown) => (note('form'), Promise.reject(error)),
            ),
      },
    ],
    { log: { error: (...args: unknown[]) => logged.push(args) } as unknown as Log },
  )
  const texts = [
    'GET /wait HTTP/1.1\r\nhost: x\r\n\r\n',
    'POST /json HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"a":',
    'POST /form HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: 1000\r\n\r\n--b\r\ncontent-disposition: form-data; name="f"; filename="x"\r\n\r\nhalf',
  ]
  for (const text of texts) {
    const socket = net.connect(port, '127.0.0.1', () =>
      socket.write(text, () => setTimeout(() => socket.destroy(), 50)),
    )
  }
  await done
  await wait(50)
  expect(outcomes.toSorted()).toEqual(['form', 'json', 'signal'])
  expect(logged).toEqual([])
})

test('a streamed reply is held back by a slow reader and destroyed when the reader leaves', async () => {
  let produced = 0
  let gone: () => void = () => {}
  const destroyed = new Promise<void>((resolve) => (gone = resolve))
  const { url } = await start([
    {
      method: 'GET',
      path: '/export',
      handle: () =>
        stream(
          200,
          new Readable({
            read() {
              produced += 65_536
              this.push(Buffer.alloc(65_536))
            },
            destroy: (error, done) => (gone(), done(error)),
          }),
          { 'content-type': 'application/zip' },
        ),
    },
  ])
  const request = http.get(`${url}/export`)
  request.on('error', () => {})
  const [reply] = (await once(request, 'response')) as [http.IncomingMessage]
  reply.on('error', () => {})
  reply.pause()
  for (let before = -1; before !== produced; await wait(100)) before = produced
  expect(produced).toBeLessThan(50_000_000)
  request.destroy()
  await destroyed
})

test('a stream of known length carries it; one that fails midway cuts the connection', async () => {
  const { url } = await start([
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
              await wait(20)
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
  await expect(fetch(`${url}/broken`).then((answer) => answer.text())).rejects.toThrow()
})

test('closing lets requests finish, refuses new ones, and cuts what outlasts the grace', async () => {
  const { url, server } = await start([
    { method: 'GET', path: '/slow', handle: () => wait(150).then(() => json(200, 'done')) },
    { method: 'GET', path: '/never', handle: () => new Promise(() => {}) },
  ])
  const slow = fetch(`${url}/slow`)
  const never = fetch(`${url}/never`).then(
    () => 'answered',
    () => 'cut',
  )
  await wait(50)
  const closed = server.close(600)
  expect(await (await slow).json()).toBe('done')
  await closed
  expect(await never).toBe('cut')
  await expect(fetch(`${url}/slow`)).rejects.toThrow()
})

test('hundreds of random requests: never a 5xx, never a hang', async () => {
  const { route } = collector()
  const { port, url } = await start([
    jsonEcho,
    hello,
    route,
    { method: 'GET', path: '/api/v1/sites/:id/versions/:version_id', handle: (request) => json(200, request.params) },
    { method: 'POST', path: '/form', handle: async (request) => json(200, [...(await request.form())]) },
  ])
  const knownPaths = [
    '/hello',
    '/api/v1/echo',
    '/api/v1/upload',
    '/form',
    '/api/v1/sites/%zz/versions/__proto__',
    '/../..//',
    '*',
    'http://x/hello',
  ]
  const knownTypes = [
    'application/json',
    'multipart/form-data; boundary=b',
    'multipart/form-data',
    'application/x-www-form-urlencoded',
  ]
  const FORM = '--b\r\ncontent-disposition: form-data; name="f"; filename="x"\r\n\r\nx\r\n--b--'
  const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(Math.random() * values.length)]!
  const noise = () =>
    randomBytes(Math.floor(Math.random() * 60))
      .toString('latin1')
      .replaceAll(/[\0\r\n]/g, '')
  const one = (): { bytes: Buffer; complete: boolean } => {
    const method = pick(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'BREW'])
    const path = pick([...knownPaths, `/${encodeURI(noise())}`, `/${noise().replaceAll(' ', '')}`])
    const type = pick([...knownTypes, noise()])
    const body = pick([noise(), '{"a":1}', FORM, ''])
    const length = pick([body.length, body.length, body.length + 5, Math.max(0, body.length - 3), -1, 'x'])
    const head = `${method} ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`
    return { bytes: Buffer.from(head + body, 'latin1'), complete: length === body.length }
  }
  for (let round = 0; round < 10; round++) {
    const requests = Array.from({ length: 40 }, one)
    const answers = await Promise.all(
      requests.map((request) => exchange(port, request.bytes, request.complete ? 5000 : 250)),
    )
    for (const [index, answer] of answers.entries()) {
      const { bytes, complete } = requests[index]!
      expect(statusOf(answer), bytes.toString('latin1')).toBeLessThan(500)
      if (complete) expect(statusOf(answer), bytes.toString('latin1')).toBeGreaterThan(0)
    }
  }
  expect((await fetch(`${url}/hello`)).status).toBe(200)
})

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

const SMALL_SHARES = { places: 6, placesPerCaller: 2, waiting: 20, waitingPerCaller: 4, waitMs: 500 }

test('one network holds only its part of the requests under way, and no one waits in silence', async () => {
  const release = Promise.withResolvers<void>()
  const slow: Route = { method: 'GET', path: '/slow', handle: () => release.promise.then(() => json(200, {})) }
  const { url } = await start([slow, hello], { shares: SMALL_SHARES })
  const from = (ip: string, path: string): Promise<Response> =>
    fetch(url + path, { headers: { 'x-forwarded-for': ip } })
  const held = [from('203.0.113.1', '/slow'), from('203.0.113.1', '/slow')]
  await new Promise((resolve) => setTimeout(resolve, 100))
  const extra = await Promise.all(Array.from({ length: 8 }, () => from('203.0.113.1', '/hello')))
  const told = extra.map((answer) => `${answer.status} ${answer.headers.has('retry-after')}`).toSorted()
  expect(told).toEqual([...Array<string>(4).fill('429 true'), ...Array<string>(4).fill('503 true')])
  // Others notice nothing, neighbours of one IPv6 subscriber are one caller.
  expect((await from('203.0.113.2', '/hello')).status).toBe(200)
  expect((await from('2001:db8::1', '/hello')).status).toBe(200)
  release.resolve()
  expect((await Promise.all(held)).map((answer) => answer.status)).toEqual([200, 200])
  expect((await from('203.0.113.1', '/hello')).status).toBe(200)
})

test('a place is given back by answers, errors and callers who leave', async () => {
  const failing: Route = { method: 'GET', path: '/failing', handle: () => Promise.reject(new Error('failed')) }
  const endless: Route = { method: 'GET', path: '/endless', handle: (request) => waitFor(request.signal) }
  const waitFor = (signal: AbortSignal): Promise<never> =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(errors.notFound())))
  const { url } = await start([hello, failing, endless], { shares: SMALL_SHARES })
  for (let round = 0; round < 6; round++) {
    expect((await fetch(`${url}/failing`)).status).toBe(500)
    await fetch(`${url}/endless`, { signal: AbortSignal.timeout(50) }).catch(() => {})
    expect((await fetch(`${url}/hello`)).status).toBe(200)
  }
})

test('a body that arrives too slowly is ended; one that waits for us is not', { timeout: 20_000 }, async () => {
  const slowReader: Route = {
    method: 'POST',
    path: '/slowly-read',
    async handle(request) {
      let bytes = 0
      for await (const chunk of request.stream() as AsyncIterable<Buffer>) {
        bytes += chunk.byteLength
        await new Promise((resolve) => setTimeout(resolve, 400))
      }
      return json(200, { bytes })
    },
  }
  const { url, port } = await start([jsonEcho, slowReader], { pace: { minBytesPerMs: 1, graceMs: 1000 } })
  const head = 'POST /api/v1/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n'
  const socket = net.connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(head)
  const drip = setInterval(() => socket.write('['), 100)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  clearInterval(drip)
  socket.destroy()
  expect(statusOf(answer.toString())).toBe(408)
  const body = Buffer.alloc(600_000, 'x')
  const read = await fetch(`${url}/slowly-read`, { method: 'POST', body })
  expect(await read.json()).toEqual({ bytes: body.byteLength })
})
