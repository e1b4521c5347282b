/**
 * Plain requests of HTTP/1.1 are read by the edge itself, all others by node:http. No visitor may notice: the same bytes
 * get the same answer, whoever reads them and however they are divided.
 */
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import net from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { IS_DEEP } from '../support/depth.ts'
import { startEdgeFixture, type EdgeFixture } from '../support/edge-fixture.ts'
import { inGroups } from '../support/groups.ts'

let fixture: EdgeFixture
const HOST = 'direct.localhost'
const LARGE = 'large '.repeat(50_000)
const HUGE = 'huge '.repeat(500_000)

beforeAll(async () => {
  fixture = await startEdgeFixture({
    env: { EDGE_WORKERS: '1', EDGE_REQUESTS_PER_IP: '100000', EDGE_HANDSHAKES_PER_IP: '10000' },
  })
  await fixture.publish(
    HOST,
    { 'index.html': '<p>mine</p>', 'a/b.txt': 'deep', 'empty.txt': '', 'large.txt': LARGE, 'huge.bin': HUGE },
    {},
    { redirects: [{ from: '/old', to: '/a/b.txt', status: 302, force: false, line: 1 }] },
  )
  await fixture.publish('other.localhost', { 'index.html': 'other', 'secret.txt': 'other secret' })
  // Once, so that nothing is loaded any more.
  for (const target of ['/', '/a/b.txt', '/large.txt']) await fixture.h1(HOST, target)
})
afterAll(() => fixture?.stop())

async function connect(): Promise<tls.TLSSocket> {
  const socket = tls.connect({
    port: fixture.edge.httpsPort,
    host: '127.0.0.1',
    ca: fixture.ca(),
    servername: HOST,
    ALPNProtocols: ['http/1.1'],
  })
  socket.on('error', () => {})
  socket.setNoDelay(true)
  await once(socket, 'secureConnect')
  return socket
}

const endOf = (socket: tls.TLSSocket): Promise<void> => new Promise((resolve) => socket.once('close', () => resolve()))

const CLOSING = `GET /a/b.txt HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`
/** No plain request: from here on node:http reads the connection. */
const TO_NODE = `OPTIONS / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`

/** Everything that is answered to these pieces, each a TLS record of its own, until the connection ends. */
async function answersTo(pieces: readonly (string | Buffer)[], before = ''): Promise<string> {
  const socket = await connect()
  const chunks: Buffer[] = []
  if (before !== '') {
    socket.write(before)
    await once(socket, 'data')
  }
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  const closed = endOf(socket)
  // One after the other: Node would put what waits into one record.
  for (const piece of pieces) await Promise.race([closed, new Promise((resolve) => void socket.write(piece, resolve))])
  await closed
  const text = Buffer.concat(chunks).toString('latin1')
  // What a visitor hears after the end was announced depends on who was faster.
  return text
    .replaceAll(/^Date: .*\r$/gm, 'Date: now\r')
    .replace(/^([^]*?\r\nconnection: close\r\n[^]*?)HTTP\/1\.1 [^]*$/i, '$1')
}

const head = (lines: string, target = '/'): string => `GET ${target} HTTP/1.1\r\nHost: ${HOST}\r\n${lines}\r\n`

const REQUESTS: readonly (readonly [name: string, request: string])[] = [
  ['a page', head('')],
  ['a page as a browser asks', head('User-Agent: Mozilla/5.0\r\nAccept: */*\r\nConnection: keep-alive\r\n')],
  ['HEAD', head('').replace('GET', 'HEAD')],
  ['a file that is empty', head('', '/empty.txt')],
  ['a redirect', head('', '/old?a=b')],
  ['nothing', head('', '/nothing')],
  ['a malformed path', head('', '/%00')],
  ['a range', head('Range: bytes=1-3\r\n', '/a/b.txt')],
  ['ranges', head('Range: bytes=90-\r\n', '/a/b.txt')],
  ['another host than the certificate names', 'GET / HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n'],
  ['an unknown host', 'GET / HTTP/1.1\r\nHost: nobody.localhost\r\n\r\n'],
  ['a host in capitals with a port', 'GET / HTTP/1.1\r\nHOST: DIRECT.localhost.:8443\r\n\r\n'],
  ['no host', 'GET / HTTP/1.1\r\n\r\n'],
  ['an empty host', 'GET / HTTP/1.1\r\nHost:\r\n\r\n'],
  ['two hosts', head(`Host: other.localhost\r\n`)],
  ['a host with user info', 'GET / HTTP/1.1\r\nHost: a@direct.localhost\r\n\r\n'],
  ['an absolute target', head('').replace(' /', ` http://${HOST}/`)],
  ['an absolute target of another host', head('').replace(' /', ' https://other.localhost/secret.txt')],
  ['the end of the connection', head('Connection: close\r\n')],
  ['the end of the connection in capitals', head('CONNECTION: CLOSE\r\n', '/nothing')],
  ['the end of the connection, HEAD', head('Connection: close\r\n').replace('GET', 'HEAD')],
  ['the end of the connection of an empty file', head('Connection: close\r\n', '/empty.txt')],
  ['the end of the connection after a range', head('Connection: close\r\nRange: bytes=1-2\r\n', '/a/b.txt')],
  ['the end of the connection twice', head('Connection: close\r\nConnection: close\r\n')],
  ['the end of the connection, and that it goes on', head('Connection: close, keep-alive\r\n')],
  ['HTTP/1.0', head('').replace('1.1', '1.0')],
  ['HTTP/1.0, HEAD of nothing', head('', '/nothing').replace('1.1', '1.0').replace('GET', 'HEAD')],
  ['HTTP/1.0 that ends', head('Connection: close\r\n', '/old').replace('1.1', '1.0')],
  ['HTTP/1.0 that goes on', head('Connection: keep-alive\r\n').replace('1.1', '1.0')],
  ['HTTP/1.0 without a host', 'GET / HTTP/1.0\r\n\r\n'],
  ['HTTP/2.0 by name', head('').replace('1.1', '2.0')],
  ['a body that is a request', head(`Content-Length: ${TO_NODE.length}\r\n`) + TO_NODE],
  ['a chunked body that is a request', `${head('Transfer-Encoding: chunked\r\n')}0\r\n\r\n`],
  ['both lengths', `${head('Content-Length: 4\r\nTransfer-Encoding: chunked\r\n')}0\r\n\r\n`],
  ['a length that is none', head('Content-Length: +0\r\n')],
  ['a length of nothing', head('Content-Length: 0\r\n')],
  ['a space before the colon', head('Content-Length : 5\r\n')],
  ['a tab in a name', head('Transfer-Encoding\t: chunked\r\n')],
  ['a control character in a value', head('X: a\u000bb\r\n')],
  ['a null in a value', head('X: a\0b\r\n')],
  ['bytes beyond ASCII', head('X: \u00e4\u00ff\r\n')],
  ['bytes beyond ASCII in the target', head('', '/\u00e4')],
  ['a folded line', head('X: a\r\n b\r\n')],
  ['lines that end in LF', head('').replaceAll('\r\n', '\n')],
  ['a bare CR', head('X: a\rb\r\n')],
  ['an empty name', head(': a\r\n')],
  ['no colon', head('a\r\n')],
  ['an empty line in front', `\r\n${head('')}`],
  ['a space in the target', head('', '/a b')],
  ['two spaces before the version', head('').replace(' HTTP', '  HTTP')],
  ['an upgrade', head('Connection: upgrade\r\nUpgrade: websocket\r\n')],
  ['an upgrade to h2c', head('Connection: upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n')],
  ['an expectation', head('Expect: 100-continue\r\n')],
  ['trailers', head('TE: trailers\r\nConnection: TE\r\n')],
  ['the same cookie header twice', head('Cookie: a=1\r\nCookie: b=2\r\n')],
  ['POST', head('').replace('GET', 'POST')],
  ['DELETE', head('').replace('GET', 'DELETE')],
  ['a method in small letters', head('').replace('GET', 'get')],
  ['what is no HTTP', 'hello there\r\n\r\n'],
  ['two requests', head('') + head('', '/a/b.txt')],
  ['two requests, the first unusual', head('', '/a/b.txt').replace('GET', 'POST') + head('')],
  ['two requests, the second unusual', head('') + head('Content-Length: 0\r\n', '/a/b.txt')],
]

/**
 * The edge itself reads whole heads only, and hands a divided one to node:http: a cut is a cut, wherever in the head it is.
 * The first and the last byte and every border between two requests are cuts of their own.
 */
function isTelling(bytes: Buffer, at: number): boolean {
  return at === 1 || at === bytes.length - 1 || bytes.subarray(0, at).toString('latin1').endsWith('\r\n\r\n')
}

test.each(REQUESTS)('%s is answered alike by both readers, divided or not', async (_name, request) => {
  const bytes = Buffer.from(request, 'latin1')
  const alike = async (pieces: readonly (string | Buffer)[], how: string): Promise<void> => {
    const [direct, byNode] = await Promise.all([answersTo(pieces), answersTo(pieces, TO_NODE)])
    expect(byNode).toMatch(/^HTTP\/1\.1 \d{3} /)
    expect(direct, how).toBe(byNode)
  }
  await alike([bytes, CLOSING], 'whole')
  await alike([Buffer.concat([bytes, Buffer.from(CLOSING)])], 'with what follows')
  const everywhere = Array.from({ length: bytes.length - 1 }, (_, at) => at + 1)
  const places = IS_DEEP ? everywhere : everywhere.filter((at) => isTelling(bytes, at))
  await inGroups(places, 8, (at) => alike([bytes.subarray(0, at), bytes.subarray(at), CLOSING], `divided at ${at}`))
})

const BODY = 'x'.repeat(100_000)
const LINES = 'x'.repeat(20_000)

test.each([
  ['a body that nobody reads', [head('Content-Length: 300000\r\n').replace('GET', 'POST'), BODY, BODY, BODY], 405],
  ['a body that nobody reads, of a page', [head('Content-Length: 300000\r\n'), BODY, BODY, BODY], 200],
  ['too many headers', [`GET / HTTP/1.1\r\nHost: ${HOST}\r\nX: `, LINES, LINES, LINES, LINES], 431],
  ['what is no HTTP', ['hello there\r\n\r\n', BODY, BODY], 400],
  [
    'a body that is longer than buffers',
    [head('Content-Length: 8000000\r\n').replace('GET', 'POST') + BODY.repeat(80)],
    405,
  ],
  [
    'a body that is broken from its beginning',
    [`${head('Transfer-Encoding: chunked\r\n').replace('GET', 'POST')}ZZZ\r\n`, BODY, BODY],
    405,
  ],
])('%s: who goes on sending hears the answer all the same', async (_name, pieces, status) => {
  const socket = await connect()
  const closed = endOf(socket)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  for (const piece of pieces) {
    await new Promise((resolve) => void socket.write(piece, resolve))
    await sleep(100)
  }
  await closed
  const answers = Buffer.concat(chunks).toString('latin1')
  expect(answers.match(/HTTP\/1\.1 \d{3} /g)).toEqual([`HTTP/1.1 ${status} `])
})

test('what is broken behind an answer that has begun is refused after it, and becomes no part of it', async () => {
  const socket = await connect()
  const closed = endOf(socket)
  socket.write(TO_NODE)
  await once(socket, 'data')
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.write(head('', '/huge.bin'))
  await once(socket, 'data')
  // The rest of it waits for its reader.
  socket.pause()
  socket.write('hello there\r\n\r\n')
  await sleep(200)
  socket.resume()
  await closed
  const [answer, ...rest] = Buffer.concat(chunks).toString('latin1').split('\r\n\r\n')
  expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  expect(rest.join('\r\n\r\n').slice(0, HUGE.length)).toBe(HUGE)
  expect(rest.join('\r\n\r\n').slice(HUGE.length)).toMatch(/^HTTP\/1\.1 400 /)
})

const MANY_RECORDS = 600_000

test('who goes on sending without listening is let go', async () => {
  const socket = await connect()
  const closed = endOf(socket)
  socket.write(head('Content-Length: 3000000\r\n').replace('GET', 'POST'))
  await sleep(200)
  let sent = 0
  // Each a record of its own; more of them than buffers hold on the way to an edge that is slow to read.
  const send = (error?: Error | null): void => {
    if (error) return
    if (sent++ < MANY_RECORDS) socket.write('x', send)
    // One who listens again notices the end.
    else socket.resume()
  }
  send()
  await closed
  expect(sent).toBeLessThan(MANY_RECORDS)
})

test('who does neither is let go after a moment', async () => {
  const open = async (): Promise<string> => {
    const metrics = await fetch(`http://127.0.0.1:${fixture.edge.metricsPort}/metrics`)
    return /^dropway_edge_connections_http1 (\d+)$/m.exec(await metrics.text())![1]!
  }
  await expect.poll(open).toBe('0')
  const socket = await connect()
  socket.write(head('Content-Length: 3000000\r\n').replace('GET', 'POST'))
  await expect.poll(open).toBe('1')
  await expect.poll(open).toBe('0')
  socket.destroy()
})

test('who asks before they send a body hears at once that nobody wants it', async () => {
  const post = head('Expect: 100-continue\r\nContent-Length: 300000\r\n').replace('GET', 'POST')
  expect(await answersTo([post])).toMatch(/^HTTP\/1\.1 405 [^]*\r\nconnection: close\r\n/i)
})

test('HTTP/1.0 knows no such question', async () => {
  const form = 'password=x'
  const lines = `Content-Type: application/x-www-form-urlencoded\r\nExpect: 100-continue\r\nContent-Length: ${form.length}\r\n`
  expect(await answersTo([`POST /.dropway/unlock HTTP/1.0\r\nHost: ${HOST}\r\n${lines}\r\n`, form])).toMatch(
    /^HTTP\/1\.1 [34]\d\d /,
  )
})

test('one who would unlock is asked for the password', async () => {
  const form = 'password=x'
  const post = `POST /.dropway/unlock HTTP/1.1\r\nHost: ${HOST}\r\nContent-Type: application/x-www-form-urlencoded\r\n`
  const socket = await connect()
  socket.write(`${post}Expect: 100-continue\r\nContent-Length: ${form.length}\r\n\r\n`)
  const [asked] = (await once(socket, 'data')) as [Buffer]
  expect(asked.toString()).toBe('HTTP/1.1 100 Continue\r\n\r\n')
  socket.write(form)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 [34]\d\d /)
  socket.destroy()
})

test('a request byte by byte', async () => {
  const request = head('Cookie: a=1\r\nAccept: */*\r\n') + CLOSING
  const whole = await answersTo([request])
  expect(await answersTo(Array.from(request))).toBe(whole)
})

test('large and streamed files are whole, one after the other on one connection', async () => {
  const targets = ['/large.txt', '/huge.bin', '/a/b.txt', '/huge.bin', '/large.txt']
  const answer = await answersTo([...targets.map((target) => head('', target)), CLOSING])
  const bodies = answer.split(/HTTP\/1\.1 200 OK\r\n[^]*?\r\n\r\n/).slice(1)
  expect(bodies.map((body) => body.length)).toEqual(
    [LARGE, HUGE, 'deep', HUGE, LARGE, 'deep'].map((body) => body.length),
  )
  expect(bodies).toEqual([LARGE, HUGE, 'deep', HUGE, LARGE, 'deep'])
})

/** Bytes of a connection that the edge's kernel has and the visitor's does not (proc_net_tcp(5)). */
function takenByKernel({ localPort, remotePort }: tls.TLSSocket): number {
  const hex = (port: number | undefined): string => port!.toString(16).toUpperCase().padStart(4, '0')
  const queue = new RegExp(`:${hex(remotePort)} \\w+:${hex(localPort)} \\w+ (\\w+):`)
  // The edge listens at IPv6, which takes IPv4 too, where the machine has it.
  const lists = ['/proc/net/tcp', '/proc/net/tcp6'].filter((list) => existsSync(list))
  const connections = lists.map((list) => readFileSync(list, 'latin1')).join('')
  return Number.parseInt(queue.exec(connections)?.[1] ?? '', 16)
}

test('the kernel takes little of what a visitor does not read, and they get all of it when they do', async () => {
  const socket = await connect()
  socket.pause()
  socket.write(`GET /huge.bin HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`)
  let taken = 0
  // Until it takes no more.
  const takesMore = (): boolean => {
    const before = taken
    taken = takenByKernel(socket)
    return !(taken > 0 && taken === before)
  }
  await expect.poll(takesMore, { interval: 300 }).toBe(false)
  // Two and a half megabytes without the edge's bound.
  expect(taken).toBeLessThan(1_000_000)
  const chunks: Buffer[] = await socket.toArray()
  expect(Buffer.concat(chunks).toString('latin1').split('\r\n\r\n', 2)[1]).toBe(HUGE)
})

test.each([
  ['Connection: close', head('Connection: close\r\n', '/huge.bin')],
  ['HTTP/1.0', head('', '/huge.bin').replace('1.1', '1.0')],
])('%s: what is sent behind it gets no answer, and takes nothing of the one before', async (_, request) => {
  const socket = await connect()
  const closed = endOf(socket)
  const chunks: Buffer[] = []
  socket.once('data', () => {
    // While most of the answer waits for its reader.
    socket.pause()
    for (let more = 0; more < 50; more++) socket.write(head(`X: ${'x'.repeat(2000)}\r\n`))
    setTimeout(() => socket.resume(), 200)
  })
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.write(request)
  await closed
  const [first = '', body, ...more] = Buffer.concat(chunks).toString('latin1').split('\r\n\r\n')
  expect(first).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\nConnection: close$/)
  expect(body === HUGE).toBe(true)
  expect(more).toEqual([])
})

test('what many load at once, some of it in part and some of it not to its end, does not mix', async () => {
  const files = Array.from({ length: 4 }, (_, file) => `${file} is not another one, `.repeat(70_000))
  await fixture.publish('many.localhost', Object.fromEntries(files.map((text, file) => [`${file}.bin`, text])))
  const visit = async (turn: number): Promise<void> => {
    const [file, protocol] = [turn % 4, turn % 8 < 4 ? 'h1' : 'h2'] as const
    const start = turn % 3 === 0 ? 0 : turn * 1000
    const range = { headers: { range: `bytes=${start}-` } }
    const { text } = await fixture[protocol]('many.localhost', `/${file}.bin`, start === 0 ? {} : range)
    expect(text === files[file]!.slice(start)).toBe(true)
  }
  const leave = async (file: number): Promise<void> => {
    const socket = await connect()
    socket.write(head('', `/${file}.bin`).replace(HOST, 'many.localhost'))
    await once(socket, 'data')
    socket.destroy()
  }
  for (let round = 0; round < 5; round++) {
    const visits = Array.from({ length: 24 }, (_, turn) => visit(turn))
    await Promise.all([...visits, ...files.map((_, file) => leave(file))])
  }
})

test('a tag that is known is not sent again', async () => {
  const { headers } = await fixture.h1(HOST, '/a/b.txt')
  const request = head(`If-None-Match: ${headers['etag']}\r\n`, '/a/b.txt')
  const direct = await answersTo([request, CLOSING])
  expect(direct).toMatch(/^HTTP\/1\.1 304 Not Modified\r\n/)
  expect(direct).toBe(await answersTo([request, CLOSING], TO_NODE))
})

test('what is sent ahead is answered in order, and others in between', async () => {
  const targets = Array.from({ length: 500 }, (_, n) => (n % 2 === 0 ? '/a/b.txt' : `/nothing-${n}`))
  const waiting = answersTo([...targets.map((target) => head('', target)), CLOSING])
  expect((await fixture.h2(HOST, '/')).status).toBe(200)
  const statuses = [...(await waiting).matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status)
  expect(statuses).toEqual([...targets.map((target) => (target === '/a/b.txt' ? '200' : '404')), '200'])
})

test('a connection that says nothing, or half of a head, is told so and ended after ten seconds', async () => {
  const plain = net.connect(fixture.edge.httpPort, '127.0.0.1')
  const sockets = [await connect(), await connect(), plain]
  for (const half of sockets.slice(1)) half.write('GET / HTTP/1.1\r\nHost: ')
  const answers = await Promise.all(sockets.map((socket) => text(socket)))
  for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 408 /)
})

test('a network over its rate gets 429 on a plain request too', async () => {
  const limited = await fixture.startEdge({
    EDGE_REQUESTS_PER_IP: '5',
    EDGE_WORKERS: '1',
    REPLICA_DIR: `${fixture.dataDir}/second`,
  })
  const plain = fixture.edge
  try {
    fixture.edge = limited
    // So many that they last only where a machine takes twenty seconds for them.
    const answer = await answersTo([...Array.from({ length: 100 }, () => head('')), CLOSING])
    const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status)
    expect(statuses.slice(0, 5)).toEqual(Array.from({ length: 5 }, () => '200'))
    expect(statuses).toContain('429')
  } finally {
    fixture.edge = plain
    await limited.stop()
  }
})

test.each([
  ['itself', ''],
  ['with node:http', TO_NODE],
])(
  'a stopping edge that reads %s ends idle connections at once, and busy ones after their answer',
  async (_, before) => {
    const stopping = await fixture.startEdge({
      EDGE_WORKERS: '1',
      REPLICA_DIR: `${fixture.dataDir}/stopping-${before.length}`,
      // Far longer than the test.
      EDGE_DRAIN: '10m',
    })
    const plain = fixture.edge
    fixture.edge = stopping
    const [idle, busy] = await Promise.all([connect(), connect()])
    fixture.edge = plain
    for (const socket of before === '' ? [] : [idle, busy]) {
      socket.write(before)
      await once(socket, 'data')
    }
    idle.write(head(''))
    await once(idle, 'data')
    // More than the kernel's buffers hold: under way until it is read.
    busy.pause()
    busy.write(head('', '/huge.bin'))
    await expect.poll(() => takenByKernel(busy)).toBeGreaterThan(0)
    const ended = stopping.stop()
    await once(idle.resume(), 'close')
    let received = 0
    busy.on('data', (chunk: Buffer) => (received += chunk.length))
    busy.resume()
    await once(busy, 'close')
    expect(received).toBeGreaterThan(HUGE.length)
    expect(await ended).toBe(0)
  },
)
