/** The service's own host while some callers, or control itself, do their worst: no one else waits, no one waits in silence. */
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { rawH1, startEdgeFixture, streamH2, type Answer, type EdgeFixture } from '../support/edge-fixture.ts'

const HOST = 'localhost'
const ATTACKER = { 'x-forwarded-for': '203.0.113.9' }
const LARGE = Buffer.alloc(400_000, 'x')

interface Control {
  readonly url: string
  isFrozen: boolean
  readonly seen: string[]
  close(): void
}

/** `/never` is never answered; frozen, nothing is. */
async function startControl(): Promise<Control> {
  const seen: string[] = []
  const control = { isFrozen: false, seen, url: '', close: () => {} }
  const server = http.createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`)
    if (control.isFrozen || request.url === '/never') return
    if (request.url === '/large') return void response.end(LARGE)
    if (request.url === '/who') return void response.end(String(request.headers['x-forwarded-for']))
    request.resume()
    const isAsked = request.url === '/connection'
    request.once('end', () => response.end(isAsked ? String(request.socket.remotePort) : 'answered'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  control.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  control.close = () => {
    server.closeAllConnections()
    server.close()
  }
  return control
}

let fixture: EdgeFixture
let controls: Control[]
const sessions: http2.ClientHttp2Session[] = []

beforeAll(async () => {
  controls = [await startControl(), await startControl()]
  fixture = await startEdgeFixture({
    env: {
      EDGE_WORKERS: '1',
      // Controls freeze here, and what waits for them is told so in seconds.
      PATIENCE: '2',
      CONTROL_URLS: controls.map(({ url }) => url).join(),
      TRUSTED_PROXIES: '127.0.0.1',
    },
  })
})
afterAll(async () => {
  await fixture?.stop()
  for (const control of controls) control.close()
})

afterEach(() => {
  for (const session of sessions.splice(0)) session.destroy()
})

function connect(): http2.ClientHttp2Session {
  const { httpsPort: port } = fixture.edge
  const socket = tls.connect({ port, host: '127.0.0.1', ca: fixture.ca(), servername: HOST, ALPNProtocols: ['h2'] })
  const session = http2.connect(`https://${HOST}`, { createConnection: () => socket })
  session.on('error', () => {})
  sessions.push(session)
  return session
}

/** Requests that are begun and left alone: `started` says what came of each so far. */
function begin(method: string, target: string, count: number): { statuses: number[] } {
  const statuses: number[] = []
  const session = connect()
  for (let index = 0; index < count; index++) {
    const stream = session.request(
      { ':authority': HOST, ':path': target, ':method': method, ...ATTACKER },
      { endStream: method === 'GET' },
    )
    stream.on('error', () => {})
    stream.on('response', (headers) => statuses.push(Number(headers[':status'])))
    if (method === 'POST') stream.write('x')
  }
  return { statuses }
}

async function asOther(method = 'GET', body?: string): Promise<Answer> {
  const headers = { 'x-forwarded-for': '198.51.100.1' }
  return fixture.h2(HOST, '/api/v1/me', { method, headers, ...(body !== undefined && { body }) })
}

test.each(['//a@[/', '//a@b/c', '/%', '/\\', '/[', '//[::1', '/x?y#z', '/\u00ff'])(
  'POST %s to one of two controls costs no worker',
  async (target) => {
    for (const method of ['POST', 'GET'])
      expect((await fixture.h2(HOST, target, { method, ...(method === 'POST' && { body: 'x' }) })).status).toBeLessThan(
        500,
      )
    expect((await asOther()).text).toBe('answered')
    expect(fixture.edge.output()).not.toContain('a worker died')
  },
)

test('short calls that write share connections that were in use a moment ago; long ones have one each', async () => {
  const connectionsOf = async (bytes: number): Promise<number> => {
    const used = new Set<string>()
    for (let call = 0; call < 12; call++) {
      const headers = { 'content-length': String(bytes) }
      const { text } = await fixture.h2(HOST, '/connection', { method: 'POST', headers, body: 'x'.repeat(bytes) })
      used.add(text)
    }
    return used.size
  }
  expect(await connectionsOf(65_536)).toBeLessThan(12)
  expect(await connectionsOf(65_537)).toBe(12)
})

test.each([
  ['unanswered', 'GET', '/never'],
  ['unread', 'GET', '/large'],
  ['unsent', 'POST', '/never'],
])('hundreds of %s requests of one network hold up no one else', async (_, method, target) => {
  const held = Array.from({ length: 4 }, () => begin(method, target, 100))
  // The network has taken all that one may have.
  await expect.poll(() => held.flatMap(({ statuses }) => statuses)).toContain(429)
  for (let visit = 0; visit < 5; visit++) {
    expect((await asOther()).text).toBe('answered')
    expect((await asOther('POST', 'x')).text).toBe('answered')
  }
  // A caller without a place hears of it, within seconds.
  const heard = (): number => held.reduce((sum, { statuses }) => sum + statuses.length, 0)
  await expect.poll(heard).toBeGreaterThan(target === '/large' ? 0 : 300)
  for (const status of held.flatMap(({ statuses }) => statuses)) expect([200, 408, 429, 503]).toContain(status)
})

test('one for whom there is no place is not asked for a body first, and its connection ends', async () => {
  const lines = `Host: ${HOST}\r\nX-Forwarded-For: ${ATTACKER['x-forwarded-for']}\r\nTransfer-Encoding: chunked\r\n`
  const post = `POST /api/v1/x HTTP/1.1\r\n${lines}Expect: 100-continue\r\n\r\n`
  const answerWithoutPlace = async (): Promise<string> => {
    const held = [begin('GET', '/never', 100), begin('GET', '/never', 100)]
    // All places of the network are taken.
    await expect.poll(() => held.flatMap(({ statuses }) => statuses)).toContain(429)
    return rawH1(fixture.edge.httpsPort, fixture.ca(), HOST, post)
  }
  // Those who wait for a place give up after four seconds, and a slow machine must take theirs again.
  await expect.poll(answerWithoutPlace).toMatch(/^HTTP\/1\.1 429 [^]*\r\nconnection: close\r\n/i)
})

test('a body that hardly arrives ends with 408, one that arrives slowly does not', async () => {
  const slow = begin('POST', '/slow', 1)
  const session = connect()
  const steady = session.request({ ':authority': HOST, ':path': '/steady', ':method': 'POST' }, { endStream: false })
  const answered = once(steady, 'response') as Promise<[http2.IncomingHttpHeaders]>
  const sending = setInterval(() => steady.write(Buffer.alloc(3000)), 1000)
  await expect.poll(() => slow.statuses).toEqual([408])
  clearInterval(sending)
  steady.end()
  expect((await answered)[0][':status']).toBe(200)
})

const askedOf = (control: Control): number => control.seen.filter((request) => request.endsWith('/api/v1/me')).length

test('a control that does not move is passed over, and without another one a page says so', async () => {
  controls[0]!.isFrozen = true
  const first = await Promise.all([asOther(), asOther()])
  for (const answer of first) expect(answer.text).toBe('answered')
  // It is remembered: no caller is sent there again.
  const tried = askedOf(controls[0]!)
  const begun = performance.now()
  for (let visit = 0; visit < 4; visit++) expect((await asOther()).text).toBe('answered')
  // For ten seconds, within which a machine that is stopped may not come this far.
  if (performance.now() - begun < 5000) expect(askedOf(controls[0]!)).toBe(tried)
  controls[1]!.isFrozen = true
  const [page, api] = await Promise.all([
    streamH2(connect(), HOST, '/', { headers: { 'x-forwarded-for': '198.51.100.2' } }),
    asOther(),
  ])
  expect([page.status, api.status]).toEqual([504, 504])
  expect(page.headers['content-type']).toContain('text/html')
  expect(Number(page.headers['retry-after'])).toBeGreaterThan(0)
  for (const control of controls) control.isFrozen = false
  await expect.poll(async () => (await asOther()).status).toBe(200)
})

const V1 = 'PROXY TCP4 192.0.2.77 198.51.100.1 56324 443\r\n'
const V2 = Buffer.from('0d0a0d0a000d0a515549540a2111000cc000024dc6336401dc0401bb', 'hex')
/** What a balancer says of itself: its health checks. */
const V2_LOCAL = Buffer.from('0d0a0d0a000d0a515549540a20000000', 'hex')

/** Is no balancer. */
const STRANGER = '127.0.0.2'

const connectFrom = (localAddress: string, port: number): net.Socket =>
  net.connect({ port, host: '127.0.0.1', localAddress })

/** Sends bytes ahead of a handshake, all at once or one by one, and asks whom control is told; undefined: the connection ended. */
async function announcedBy(from: string, header: string | Buffer, pieces: 'whole' | 'bytes' = 'whole') {
  const raw = connectFrom(from, fixture.edge.httpsPort)
  raw.on('error', () => {})
  raw.setNoDelay()
  await once(raw, 'connect')
  const bytes = Buffer.from(header as string, 'latin1')
  const size = pieces === 'whole' ? Math.max(1, bytes.length) : 1
  for (let at = 0; at < bytes.length; at += size) {
    raw.write(bytes.subarray(at, at + size))
    if (pieces === 'bytes') await sleep(1)
  }
  const socket = tls.connect({ socket: raw, ca: fixture.ca(), servername: HOST, ALPNProtocols: ['http/1.1'] })
  socket.on('error', () => {})
  socket.write(`GET /who HTTP/1.1\r\nHost: ${HOST}\r\nX-Forwarded-For: 203.0.113.1\r\nConnection: close\r\n\r\n`)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  await new Promise((resolve) => socket.once('close', resolve))
  return /\r\n\r\n(.*)$/s.exec(Buffer.concat(chunks).toString('latin1'))?.[1]
}

test.each([
  ['version 1', '127.0.0.1', V1, 'whole', '192.0.2.77'],
  ['version 1, byte by byte', '127.0.0.1', V1, 'bytes', '192.0.2.77'],
  ['version 2', '127.0.0.1', V2, 'whole', '192.0.2.77'],
  ['version 2, byte by byte', '127.0.0.1', V2, 'bytes', '192.0.2.77'],
  [
    'a balancer that speaks for itself, and then for a visitor in a header of HTTP',
    '127.0.0.1',
    V2_LOCAL,
    'whole',
    '203.0.113.1',
  ],
  ['none: it is optional', '127.0.0.1', '', 'whole', '203.0.113.1'],
  ['a broken one', '127.0.0.1', 'PROXY TCP4 nobody\r\n', 'whole', undefined],
  ['version 1 of a stranger', STRANGER, V1, 'whole', undefined],
  ['version 2 of a stranger', STRANGER, V2, 'whole', undefined],
  ['a stranger without one', STRANGER, '', 'whole', STRANGER],
] as const)('who a visitor is, by the PROXY protocol: %s', async (_, from, header, pieces, visitor) => {
  expect(await announcedBy(from, header, pieces)).toBe(visitor)
})

test.each([
  ['127.0.0.1', V1, 308],
  ['127.0.0.1', V2, 308],
  ['127.0.0.1', '', 308],
  [STRANGER, '', 308],
  [STRANGER, V1, undefined],
  [STRANGER, V2, undefined],
] as const)('the plain port takes it from balancers alone: %s %j', async (from, header, status) => {
  const socket = connectFrom(from, fixture.edge.httpPort)
  socket.on('error', () => {})
  socket.write(
    Buffer.concat([Buffer.from(header as string, 'latin1'), Buffer.from('GET / HTTP/1.1\r\nHost: a.test\r\n\r\n')]),
  )
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  await new Promise((resolve) => socket.once('close', resolve))
  const answered = /^HTTP\/1\.1 (\d+)/.exec(Buffer.concat(chunks).toString('latin1'))?.[1]
  expect(answered === '400' ? undefined : answered && Number(answered)).toBe(status)
})
