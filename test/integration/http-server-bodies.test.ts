/** Bodies that callers send to the control plane, over real sockets: JSON, forms with files, and what is wrong with them. */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { json, noContent } from '../../control/ground/http/reply.ts'
import type { Part, Route } from '../../control/ground/http/route.ts'
import { errors } from '../../shared/contracts/errors.ts'
import { SEED } from '../support/depth.ts'
import { hello, jsonEcho, startServer } from '../support/http-server.ts'
import { createRandom } from '../support/random.ts'
import { exchange, exchangeUntil, statusOf } from '../support/raw-http.ts'

test('JSON bodies: parsed, or refused with the code that says why', async () => {
  const { url } = await startServer([jsonEcho])
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

test('forms: a few fields, or refused before anything is made of them', async () => {
  const echo: Route = {
    method: 'POST',
    path: '/api/v1/form',
    handle: async (request) => json(200, [...(await request.form())]),
  }
  const { url } = await startServer([echo])
  const post = async (body: string): Promise<[number, unknown]> => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const answer = await fetch(`${url}/api/v1/form`, { method: 'POST', body, headers })
    const read = (await answer.json()) as { error?: string }
    return [answer.status, read.error ?? read]
  }
  expect(await post('a=1&b=%C3%BC+x&a')).toEqual([
    200,
    [
      ['a', '1'],
      ['b', 'ü x'],
      ['a', ''],
    ],
  ])
  expect(await post('a&'.repeat(499_000))).toEqual([413, 'upload_too_large'])
  expect(await post('a&'.repeat(30_000))).toEqual([400, 'invalid_request'])
  expect(await post('a=1&'.repeat(65))).toEqual([400, 'invalid_request'])
  expect((await post('a=1&'.repeat(64)))[0]).toBe(200)
  expect(await post(`a=${'b'.repeat(64_000)}`)).toEqual([413, 'upload_too_large'])
})

test.each(['gzip', 'br', 'deflate', 'zstd', 'x', 'gzip, identity', 'identity, gzip'])(
  'a body with Content-Encoding %s is refused',
  async (coding) => {
    const { url } = await startServer([jsonEcho])
    const headers = { 'content-type': 'application/json', 'content-encoding': coding }
    const answer = await fetch(`${url}/api/v1/echo`, { method: 'POST', body: '{}', headers })
    expect(answer.status).toBe(415)
    expect(await answer.json()).toMatchObject({ error: 'unsupported_encoding' })
  },
)

test.each(['identity', 'Identity', ''])('Content-Encoding %j says nothing', async (coding) => {
  const { url } = await startServer([jsonEcho])
  const headers = { 'content-type': 'application/json', 'content-encoding': coding }
  expect((await fetch(`${url}/api/v1/echo`, { method: 'POST', body: '{}', headers })).status).toBe(200)
})

test('a body that is not UTF-8, and a chunked one over the cap, are refused', async () => {
  const { url } = await startServer([jsonEcho])
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

test('of five large bodies at once from one network two are read, and the others hear when to come back', async () => {
  const decided = Promise.withResolvers<void>()
  let refused = 0
  const whole: Route = {
    method: 'POST',
    path: '/whole',
    async handle(request) {
      const bytes = await request.bytes(32_000_000)
      // What is read is held until it is answered.
      await decided.promise
      return json(200, bytes.length)
    },
  }
  const { url } = await startServer([whole])
  const part = Buffer.alloc(1_000_000)
  const answers = Array.from({ length: 5 }, async () => {
    const request = http.request(`${url}/whole`, { method: 'POST', headers: { 'content-length': 30 * part.length } })
    // One that is refused is cut off while it still sends.
    request.on('error', () => {})
    void Readable.from(Array.from({ length: 30 }, () => part)).pipe(request)
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage]
    answer.resume()
    if (answer.statusCode === 503 && ++refused === 3) decided.resolve()
    return { status: answer.statusCode, again: answer.headers['retry-after'] !== undefined }
  })
  const statuses = (await Promise.all(answers)).toSorted((a, b) => (a.status ?? 0) - (b.status ?? 0))
  expect(statuses).toEqual([
    ...Array.from({ length: 2 }, () => ({ status: 200, again: false })),
    ...Array.from({ length: 3 }, () => ({ status: 503, again: true })),
  ])
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
  const { url } = await startServer([route])
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
  const { url } = await startServer([route])
  const form = new FormData()
  for (let index = 0; index < fields; index++) form.append('paths', 'x'.repeat(999_000))
  const answer = await fetch(`${url}/api/v1/upload`, { method: 'POST', body: form })
  expect(answer.status).toBe(status)
})

test('multipart: 100 MB stream through without being held in memory', async () => {
  const { route, parts, received } = collector()
  const { url } = await startServer([route])
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
  const { port } = await startServer([
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
      socket.write(block) ||
      (await Promise.race([once(socket, 'drain').then(() => true), sleep(400).then(() => false)]))
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
  [
    'a field without a name',
    'multipart/form-data; boundary=b',
    '--b\r\ncontent-disposition: form-data\r\n\r\nx\r\n--b--\r\n',
    400,
  ],
  [
    'a file without a name',
    'multipart/form-data; boundary=b',
    '--b\r\ncontent-disposition: form-data; filename="a.html"\r\n\r\nx\r\n--b--\r\n',
    400,
  ],
  ['no parts at all', 'multipart/form-data; boundary=b', 'nothing', 400],
  ['an empty body', 'multipart/form-data; boundary=b', '', 400],
])('multipart: %s is refused, never left hanging', async (_name, type, body, status) => {
  const { route } = collector()
  const { url } = await startServer([route])
  const answer = await fetch(`${url}/api/v1/upload`, { method: 'POST', body, headers: { 'content-type': type } })
  expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([status, 'invalid_request'])
})

test('a handler that refuses early is heard, whatever the caller still sends', async () => {
  let reached = 0
  const { port, url } = await startServer([
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
  // A caller who is still sending when the server has waited long enough has its answer, and an error.
  const answered = new Promise<http.IncomingMessage>((resolve) => request.on('response', resolve))
  request.write('--b\r\ncontent-disposition: form-data; name="f"; filename="x"\r\n\r\n')
  let sent = 0
  const block = Buffer.alloc(200_000, 65)
  const sender = setInterval(() => {
    if (!request.destroyed && sent < 50_000_000) sent += request.write(block) ? block.byteLength : 0
  }, 1)
  const reply = await answered
  expect([reply.statusCode, reply.headers.connection]).toEqual([413, 'close'])
  expect(JSON.parse(String(Buffer.concat(await reply.toArray())))).toMatchObject({ error: 'upload_too_large' })
  clearInterval(sender)
  request.destroy()
  expect(reached).toBeLessThan(5_000_000)
  expect((await fetch(`${url}/hello`)).status).toBe(200)
})

test('a small body that no one reads does not cost the connection', async () => {
  const { port } = await startServer([
    { method: 'POST', path: '/api/v1/x', handle: () => Promise.reject(errors.unauthorized()) },
    hello,
  ])
  const post = `POST /api/v1/x HTTP/1.1\r\nhost: x\r\ncontent-length: 50000\r\n\r\n${'x'.repeat(50_000)}`
  const both = `${post}GET /hello HTTP/1.1\r\nhost: x\r\n\r\n`
  const answer = await exchangeUntil(port, both, (heard) => heard.endsWith('{"hello":true}'))
  expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401', 'HTTP/1.1 200'])
})

test('a caller that announces a body and never sends it gets its answer', async () => {
  const { port } = await startServer([
    { method: 'POST', path: '/api/v1/x', handle: () => Promise.reject(errors.unauthorized()) },
  ])
  const announced = 'POST /api/v1/x HTTP/1.1\r\nhost: x\r\ncontent-length: 50000\r\n\r\n'
  const answer = await exchangeUntil(port, announced, (heard) => statusOf(heard) > 0)
  expect(statusOf(answer)).toBe(401)
})

test('hundreds of random requests: never a 5xx, never a hang', async () => {
  const { route } = collector()
  const { port, url } = await startServer([
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
  const random = createRandom(SEED)
  const pick = <Value>(values: readonly Value[]): Value => random.pick(values)
  const noise = () =>
    Buffer.from(Array.from({ length: random.below(60) }, () => random.below(256)))
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
      requests.map((request) => exchange(port, request.bytes, request.complete ? undefined : 250)),
    )
    for (const [index, answer] of answers.entries()) {
      const { bytes, complete } = requests[index]!
      expect(statusOf(answer), bytes.toString('latin1')).toBeLessThan(500)
      if (complete) expect(statusOf(answer), bytes.toString('latin1')).toBeGreaterThan(0)
    }
  }
  expect((await fetch(`${url}/hello`)).status).toBe(200)
})
