/** What no well-behaved client sends: never a 5xx, never another drop's bytes, never a redirect to somewhere else. */
import { once } from 'node:events'
import http2 from 'node:http2'
import net from 'node:net'
import tls from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseH1, rawH1, startEdgeFixture, streamH2, type EdgeFixture } from '../support/edge-fixture.ts'

let fixture: EdgeFixture
const HOST = 'mine.localhost'

beforeAll(async () => {
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1' } })
  await fixture.publish(HOST, { 'index.html': 'mine', 'a/b.txt': 'deep', ['__proto__']: 'proto' })
  await fixture.publish('other.localhost', { 'index.html': 'other', 'secret.txt': 'other secret' })
})
afterAll(() => fixture?.stop())

const raw = (text: string, servername = HOST): Promise<string> =>
  rawH1(fixture.edge.httpsPort, fixture.ca(), servername, text)

function connectH2(servername = HOST): http2.ClientHttp2Session {
  const session = http2.connect(`https://${servername}`, {
    createConnection: () =>
      tls.connect({
        port: fixture.edge.httpsPort,
        host: '127.0.0.1',
        ca: fixture.ca(),
        servername,
        ALPNProtocols: ['h2'],
      }),
  })
  session.on('error', () => {})
  return session
}

test.each([
  ['no Host', 'GET / HTTP/1.1\r\nconnection: close\r\n\r\n', 400],
  ['two Hosts', `GET / HTTP/1.1\r\nHost: ${HOST}\r\nHost: other.localhost\r\nconnection: close\r\n\r\n`, 400],
  ['the same Host twice', `GET / HTTP/1.1\r\nHost: ${HOST}\r\nhost: ${HOST}\r\nconnection: close\r\n\r\n`, 400],
  ['a Host with a path', 'GET / HTTP/1.1\r\nHost: mine.localhost/x\r\nconnection: close\r\n\r\n', 400],
  ['a Host with user info', 'GET / HTTP/1.1\r\nHost: a@mine.localhost\r\nconnection: close\r\n\r\n', 400],
  ['an underscore in Host', 'GET / HTTP/1.1\r\nHost: my_site.localhost\r\nconnection: close\r\n\r\n', 400],
  [
    'absolute form of the same host',
    `GET http://${HOST}/a/b.txt HTTP/1.1\r\nHost: ${HOST}\r\nconnection: close\r\n\r\n`,
    200,
  ],
  [
    'absolute form of another host',
    `GET https://other.localhost/secret.txt HTTP/1.1\r\nHost: ${HOST}\r\nconnection: close\r\n\r\n`,
    400,
  ],
  ['asterisk form', `OPTIONS * HTTP/1.1\r\nHost: ${HOST}\r\nconnection: close\r\n\r\n`, 204],
  ['CONNECT', `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 405],
  ['no HTTP at all', 'hello there\r\n\r\n', 400],
  ['a space in the target', `GET /a b HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 400],
  [
    'both lengths',
    `POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
  ],
  ['a folded header', `GET / HTTP/1.1\r\nHost: ${HOST}\r\nX: a\r\n b\r\nconnection: close\r\n\r\n`, 400],
  ['huge headers', `GET / HTTP/1.1\r\nHost: ${HOST}\r\nX: ${'a'.repeat(40_000)}\r\n\r\n`, 431],
  [
    'a name that the certificate does not cover',
    'GET / HTTP/1.1\r\nHost: elsewhere.example\r\nconnection: close\r\n\r\n',
    421,
  ],
  ['an IP address', 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nconnection: close\r\n\r\n', 404],
  ['upper case, port and dot', 'GET / HTTP/1.1\r\nHost: MINE.Localhost.:8443\r\nconnection: close\r\n\r\n', 200],
])('HTTP/1.1 with %s answers as it should', async (_name, text, status) => {
  expect(parseH1(await raw(text)).status).toBe(status)
})

test('an unknown name in the handshake gets the default certificate and then 421', async () => {
  const socket = tls.connect({
    port: fixture.edge.httpsPort,
    host: '127.0.0.1',
    servername: 'x.example',
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1'],
  })
  await once(socket, 'secureConnect')
  socket.write('GET / HTTP/1.1\r\nHost: x.example\r\nconnection: close\r\n\r\n')
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  expect(chunk.toString()).toMatch(/^HTTP\/1\.1 421 /)
  socket.destroy()
})

test('no name in the handshake works for the names of the default certificate', async () => {
  const socket = tls.connect({
    port: fixture.edge.httpsPort,
    host: '127.0.0.1',
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1'],
  })
  await once(socket, 'secureConnect')
  socket.write('GET / HTTP/1.1\r\nHost: mine.localhost\r\nconnection: close\r\n\r\n')
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  expect(chunk.toString()).toMatch(/^HTTP\/1\.1 200 /)
  socket.destroy()
})

test.each([
  [{ ':authority': HOST, host: HOST }, 200],
  [{ ':authority': HOST, host: 'other.localhost' }, 400],
  [{ ':authority': 'elsewhere.example' }, 421],
  [{ ':authority': 'bad_name' }, 400],
])('HTTP/2 with %j answers %i', async (headers, status) => {
  const session = connectH2()
  try {
    const stream = session.request({ ':path': '/', ...headers })
    const [answer] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
    expect(answer[':status']).toBe(status)
  } finally {
    session.destroy()
  }
})

test.each([
  '//evil.example',
  '///evil.example/',
  '/\\evil.example',
  '/%2f%2fevil.example',
  '//evil.example/%2e%2e',
  '/a/..//evil',
])('%s never leads away', async (target) => {
  for (const protocol of ['h1', 'h2'] as const) {
    const answer = await fixture[protocol](HOST, target)
    expect(answer.status).toBeLessThan(500)
    const { location } = answer.headers
    if (location !== undefined) expect(location).toMatch(/^\/(?![/\\])/)
  }
})

test('ten thousand random paths: never a 5xx, never the other drop', async () => {
  const session = connectH2()
  const pieces = [
    'a',
    'b.txt',
    '..',
    '.',
    '%2e%2e',
    '%2f',
    '%00',
    '%',
    '%ff',
    '\\',
    '//',
    '__proto__',
    'constructor',
    '%C3%A9',
    '?x',
    '#',
    ';',
    'index',
    '404.html',
    '.dropway',
    '.well-known',
  ]
  let seed = 7
  const random = (below: number): number => (seed = (seed * 1103515245 + 12345) % 2147483648) % below
  for (let round = 0; round < 100; round++) {
    const targets = Array.from(
      { length: 100 },
      () => `/${Array.from({ length: 1 + random(6) }, () => pieces[random(pieces.length)]).join(random(2) ? '/' : '')}`,
    )
    const answers = await Promise.all(targets.map((target) => streamH2(session, HOST, target)))
    for (const [index, answer] of answers.entries()) {
      expect(answer.status, targets[index]).toBeLessThan(500)
      expect(answer.text).not.toContain('other secret')
      expect(answer.headers['location'] ?? '/').toMatch(/^\/(?![/\\])/)
    }
  }
  session.destroy()
})

/** One HTTP/2 frame (RFC 9113 §4.1). */
function frame(type: number, flags: number, streamId: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(streamId, 5)
  return Buffer.concat([head, payload])
}

const PREFACE = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0, Buffer.alloc(0))])
/** GET https / with our authority, in HPACK's static table. */
const REQUEST = Buffer.concat([Buffer.from([0x82, 0x87, 0x84, 0x41, HOST.length]), Buffer.from(HOST)])
const CANCEL = Buffer.from([0, 0, 0, 8])

const floods: Record<string, (index: number) => Buffer> = {
  resets: (index) => Buffer.concat([frame(1, 5, 2 * index + 1, REQUEST), frame(3, 0, 2 * index + 1, CANCEL)]),
  settings: () => frame(4, 0, 0, Buffer.alloc(0)),
  pings: () => frame(6, 0, 0, Buffer.alloc(8)),
  'empty continuations': (index) => (index === 0 ? frame(1, 1, 1, REQUEST) : frame(9, 0, 1, Buffer.alloc(0))),
}

test.each(Object.keys(floods))('a flood of %s ends the session, not the worker', async (name) => {
  const socket = tls.connect({
    port: fixture.edge.httpsPort,
    host: '127.0.0.1',
    ca: fixture.ca(),
    servername: HOST,
    ALPNProtocols: ['h2'],
  })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  // Answers are not read: whatever the server queues for them is its to bound.
  socket.write(PREFACE)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  let index = 0
  const flood = setInterval(() => {
    if (socket.destroyed) return
    const batch = Array.from({ length: 500 }, () => floods[name]!(index++))
    if (socket.writableLength < 5_000_000) socket.write(Buffer.concat(batch))
  }, 5)
  socket.resume()
  await closed
  clearInterval(flood)
  expect((await fixture.h2(HOST, '/')).status).toBe(200)
})

/** Statuses of what was answered before the server ended the connection; it must do so by itself, and soon. */
async function statusesUntilEnd(host: string, text: string): Promise<number[]> {
  const socket = tls.connect({
    port: fixture.edge.httpsPort,
    host: '127.0.0.1',
    ca: fixture.ca(),
    servername: host,
    ALPNProtocols: ['http/1.1'],
  })
  let answers = ''
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => (answers += chunk.toString('latin1')))
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.write(text)
  await closed
  return [...answers.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
}

test('ten thousand requests sent ahead: the connection ends after a few hundred', async () => {
  const statuses = await statusesUntilEnd(HOST, `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`.repeat(10_000))
  // What the visitor still sends may cost them the last answers.
  expect(statuses.length).toBeLessThan(1000)
  for (const status of statuses) expect([200, 429]).toContain(status)
  expect((await fixture.h2(HOST, '/')).status).toBe(200)
})

test('a few requests sent ahead are answered in their order', async () => {
  const targets = ['/', '/a/b.txt', '/missing', '/', '/%00', '/__proto__']
  const head = (target: string): string => `GET ${target} HTTP/1.1\r\nHost: ${HOST}\r\n`
  const last = `${head('/a/b.txt')}connection: close\r\n\r\n`
  const statuses = await statusesUntilEnd(HOST, targets.map((target) => `${head(target)}\r\n`).join('') + last)
  expect(statuses).toEqual([200, 200, 404, 200, 400, 200, 200])
})

test.each(['localhost', HOST])('a body in one-byte chunks to %s ends its connection, not the worker', async (host) => {
  const head = `POST /.dropway/unlock HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n`
  const statuses = await statusesUntilEnd(host, head + '1\r\na\r\n'.repeat(50_000))
  for (const status of statuses) expect([400, 413, 502]).toContain(status)
  expect((await fixture.h2(HOST, '/')).status).toBe(200)
  expect(fixture.edge.output()).not.toContain('a worker died')
})

test('a client that never finishes its handshake or its headers is let go', async () => {
  const silent = net.connect(fixture.edge.httpsPort, '127.0.0.1')
  const slow = tls.connect({
    port: fixture.edge.httpsPort,
    host: '127.0.0.1',
    ca: fixture.ca(),
    servername: HOST,
    ALPNProtocols: ['http/1.1'],
  })
  slow.on('error', () => {})
  silent.on('error', () => {})
  await once(slow, 'secureConnect')
  slow.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\nx-slow: `)
  const drip = setInterval(() => slow.writable && slow.write('a'), 500)
  silent.resume()
  slow.resume()
  await Promise.all([once(silent, 'close'), once(slow, 'close')])
  clearInterval(drip)
})
