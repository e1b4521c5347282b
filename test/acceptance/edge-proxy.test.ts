/** What the edge passes on to control: one request for one request, whatever a caller says about where it ends. */
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import tls from 'node:tls'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { rawH1, startEdgeFixture, type EdgeFixture } from '../support/edge-fixture.ts'

const HOST = 'localhost'
/** Would be the beginning of the next request on the same connection. */
const SMUGGLED = 'POST /smuggled HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nX-Rest: '

let fixture: EdgeFixture
let control: http.Server
let seen: string[]

beforeAll(async () => {
  control = http.createServer((request, response) => {
    void buffer(request).then((body) => {
      seen.push(`${request.method} ${request.url} ${body.toString()}`.trim())
      response.end('answered')
    })
  })
  control.on('clientError', (_, socket) => {
    seen.push('something that is no request')
    socket.destroy()
  })
  control.listen(0, '127.0.0.1')
  await once(control, 'listening')
  const { port } = control.address() as AddressInfo
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1', CONTROL_PORT: String(port) } })
})
afterAll(async () => {
  await fixture?.stop()
  control.closeAllConnections()
  control.close()
})
beforeEach(() => {
  seen = []
})

const h1 = (head: string, body: string): Promise<string> =>
  rawH1(fixture.edge.httpsPort, fixture.ca(), HOST, `${head}\r\nHost: ${HOST}\r\n\r\n${body}`)
const chunked = (body: string): string => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
const length = `Content-Length: ${SMUGGLED.length}`

/** Others share the connections between the edge and control. */
async function expectOnly(request: string): Promise<void> {
  for (const target of ['/first', '/second'])
    expect((await fixture.h2(HOST, target, { headers: { 'x-who': 'someone else' } })).text).toBe('answered')
  expect(seen).toEqual([request, 'GET /first', 'GET /second'])
}

test.each(['GET', 'HEAD', 'OPTIONS', 'DELETE', 'TRACE', 'PROPFIND'])(
  'a body of %s over HTTP/2 is left out',
  async (method) => {
    await fixture.h2(HOST, '/asked', { method, body: SMUGGLED })
    await expectOnly(`${method} /asked`)
  },
)

test.each([
  ['GET with a length', 'GET', `Connection: close\r\n${length}`, SMUGGLED],
  ['GET whose length is "of the connection"', 'GET', `Connection: close, content-length\r\n${length}`, SMUGGLED],
  ['GET in chunks', 'GET', 'Connection: close\r\nTransfer-Encoding: chunked', chunked(SMUGGLED)],
  [
    'GET whose chunks are "of the connection"',
    'GET',
    'Connection: close, transfer-encoding\r\nTransfer-Encoding: chunked',
    chunked(SMUGGLED),
  ],
  ['OPTIONS in chunks', 'OPTIONS', 'Connection: close\r\nTransfer-Encoding: chunked', chunked(SMUGGLED)],
  ['DELETE in chunks', 'DELETE', 'Connection: close\r\nTransfer-Encoding: chunked', chunked(SMUGGLED)],
])('a body of %s over HTTP/1.1 is left out', async (_, method, headers, body) => {
  expect(await h1(`${method} /asked HTTP/1.1\r\n${headers}`, body)).toContain('answered')
  await expectOnly(`${method} /asked`)
})

test.each([
  '/a//b',
  '//a',
  '///',
  '//a@b/c',
  '//a@[/',
  '/next/http:/x',
  '/https:/x?next=https:/y//z',
  '/a/../b/./c',
  '/%2F%2f/%5C?a?b',
])('the path %s arrives as it was sent', async (target) => {
  expect((await fixture.h2(HOST, target)).text).toBe('answered')
  expect(await h1(`GET ${target} HTTP/1.1\r\nConnection: close`, '')).toContain('answered')
  expect(seen).toEqual([`GET ${target}`, `GET ${target}`])
})

test('a connection is kept or closed as its caller wishes', async () => {
  const answer = await h1('GET /asked HTTP/1.1\r\nConnection: close', '')
  expect(answer.toLowerCase()).toContain('connection: close')
})

test.each(['POST', 'PUT', 'PATCH'])('a body of %s arrives whole, however it is framed', async (method) => {
  const framed: [string, string][] = [
    [`Connection: close\r\n${length}`, SMUGGLED],
    [`Connection: close, content-length\r\n${length}`, SMUGGLED],
    ['Connection: close\r\nTransfer-Encoding: chunked', chunked(SMUGGLED)],
    ['Connection: close, transfer-encoding\r\nTransfer-Encoding: chunked', chunked(SMUGGLED)],
  ]
  for (const [headers, body] of framed) {
    expect(await h1(`${method} /asked HTTP/1.1\r\n${headers}`, body)).toContain('answered')
    await expectOnly(`${method} /asked ${SMUGGLED.trim()}`)
    seen = []
  }
  await fixture.h2(HOST, '/asked', { method, body: SMUGGLED })
  await expectOnly(`${method} /asked ${SMUGGLED.trim()}`)
})

test('something broken behind a request does not take its answer', async () => {
  const answer = await h1(`GET /asked HTTP/1.1\r\nHost: ${HOST}\r\n\r\nBROKEN`, '')
  expect(answer).toMatch(/^HTTP\/1\.1 200 .*answered.*HTTP\/1\.1 400 /s)
})

test('headers that are too large are refused in JSON where the API is asked', async () => {
  const big = `X: ${'a'.repeat(40_000)}`
  const [head = '', body = ''] = (await h1(`GET /api/v1/sites HTTP/1.1\r\n${big}`, '')).split('\r\n\r\n')
  expect(head).toMatch(/^HTTP\/1\.1 431 .*content-type: application\/json/s)
  expect(JSON.parse(body)).toMatchObject({ error: 'headers_too_large', detail: expect.any(String) })
  expect(await h1(`GET /other HTTP/1.1\r\n${big}`, '')).toMatch(/^HTTP\/1\.1 431 .*content-length: 0/s)
})

test.each([
  ['another page', 'GET /asked HTTP/1.1', '', '/api/v1/sites', 'application/json'],
  ['the API', 'GET /api/v1/sites HTTP/1.1', '', '/other', undefined],
  [
    'a body',
    `POST /api/v1/sites HTTP/1.1\r\nContent-Length: 20000`,
    'x'.repeat(20_000),
    '/api/v1/x',
    'application/json',
  ],
])('also behind %s on the same connection', async (_before, head, sent, path, type) => {
  const { httpsPort: port } = fixture.edge
  const socket = tls.connect({
    port,
    host: '127.0.0.1',
    ca: fixture.ca(),
    servername: HOST,
    ALPNProtocols: ['http/1.1'],
  })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  const received: Buffer[] = []
  socket.on('data', (chunk: Buffer) => received.push(chunk))
  const text = (): string => Buffer.concat(received).toString('latin1')
  socket.write(`${head}\r\nHost: ${HOST}\r\n\r\n`)
  for (const piece of sent.match(/.{1,7000}/g) ?? []) await new Promise((resolve) => void socket.write(piece, resolve))
  await expect.poll(text).toMatch(/answered/)
  received.length = 0
  // In two pieces, as a slow line would bring it.
  socket.write(`GET ${path.slice(0, 5)}`)
  await new Promise((resolve) => setTimeout(resolve, 50))
  socket.write(`${path.slice(5)} HTTP/1.1\r\nHost: ${HOST}\r\nX: ${'a'.repeat(40_000)}\r\n\r\n`)
  await once(socket, 'close')
  expect(text()).toMatch(/^HTTP\/1\.1 431 /)
  expect(/content-type: ([^\r]*)/.exec(text())?.[1]).toBe(type)
})
