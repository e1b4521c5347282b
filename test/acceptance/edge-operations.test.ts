/** Running an edge: proxying to control, the plain port, views, metrics, limits, crashes and draining. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import http2 from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import tls from 'node:tls'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  rawH1,
  requestH1,
  requestH2,
  startEdgeFixture,
  type EdgeFixture,
  type RequestOptions,
} from '../support/edge-fixture.ts'
import { watchDay } from '../support/midnight.ts'
import { processTree } from '../support/processes.ts'
import { solve } from '../support/proof-of-work.ts'

let fixture: EdgeFixture
let control: http.Server
let onRequest: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) => response.end('ok')

beforeAll(async () => {
  control = http.createServer((request, response) => onRequest(request, response)).listen(0, '127.0.0.1')
  await once(control, 'listening')
  fixture = await startEdgeFixture({
    env: { CONTROL_PORT: String((control.address() as AddressInfo).port), METRICS_PORT: '0', EDGE_WORKERS: '2' },
  })
  await fixture.publish('a.localhost', { 'index.html': '<html><head></head><body>a</body></html>', 'a.css': 'p{}' })
})
afterAll(async () => {
  await fixture?.stop()
  control?.closeAllConnections()
  control?.close()
})

const plain = (path: string, headers: Record<string, string> = {}): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    http
      .get(
        { port: fixture.edge.httpPort, host: '127.0.0.1', path, headers: { host: 'a.localhost', ...headers } },
        (answer) => {
          answer.resume()
          resolve(answer)
        },
      )
      .on('error', reject)
  })

describe.each(['h1', 'h2'] as const)('the service host over %s', (protocol) => {
  test('control sees the request, and only our word about the visitor', async () => {
    let seen: IncomingMessage | undefined
    onRequest = (request, response) => {
      seen = request
      response.writeHead(201, { 'x-from': 'control', 'set-cookie': ['a=1', 'b=2'] })
      response.end('made')
    }
    const answer = await fixture[protocol]('localhost', '/api/v1/x?y=1', {
      method: 'POST',
      body: 'hello',
      headers: { 'x-forwarded-for': '6.6.6.6', forwarded: 'for=6.6.6.6', 'x-real-ip': '6.6.6.6', 'x-mine': 'kept' },
    })
    expect([answer.status, answer.text, answer.headers['x-from']]).toEqual([201, 'made', 'control'])
    expect(answer.headers['set-cookie']).toBe('a=1, b=2')
    expect(seen!.url).toBe('/api/v1/x?y=1')
    expect(seen!.headers).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'localhost',
      host: 'localhost',
      'x-mine': 'kept',
    })
    expect(JSON.stringify(seen!.headers)).not.toContain('6.6.6.6')
  })

  test('a large upload streams through', async () => {
    let received = 0
    let chunks = 0
    onRequest = (request, response) => {
      request.on('data', (chunk: Buffer) => {
        received += chunk.length
        chunks += 1
      })
      request.on('end', () => response.end(String(received)))
    }
    const answer = await fixture[protocol]('localhost', '/api/v1/upload', {
      method: 'POST',
      body: Buffer.alloc(8_000_000, 'x'),
    })
    expect(answer.text).toBe('8000000')
    expect(chunks).toBeGreaterThan(10)
  })

  test('one who asks before they send a body is told to', async () => {
    onRequest = (request, response) => void buffer(request).then((body) => response.end(body))
    const answer = await fixture[protocol]('localhost', '/api/v1/upload', {
      method: 'POST',
      body: 'hello',
      headers: { expect: '100-continue' },
    })
    expect(answer.text).toContain('hello')
  })

  test('an answer streams piece by piece', async () => {
    onRequest = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: 1\n\n')
      setTimeout(() => response.end('data: 2\n\n'), 50)
    }
    expect((await fixture[protocol]('localhost', '/events')).text).toBe('data: 1\n\ndata: 2\n\n')
  })

  test('control gone in the middle, or at all: a page for people, JSON for programs', async () => {
    onRequest = (request) => void request.socket.destroy()
    const page = await fixture[protocol]('localhost', '/')
    expect([page.status, page.headers['content-type']]).toEqual([502, 'text/html; charset=utf-8'])
    const json = await fixture[protocol]('localhost', '/api/v1/sites')
    expect([json.status, JSON.parse(json.text).error]).toEqual([502, 'unavailable'])
  })

  test('an address that is too long: a page for people, JSON for programs', async () => {
    const long = 'x'.repeat(9000)
    for (const path of ['/api/v1/sites', '/mcp', '/oauth/token']) {
      const { status, headers, text } = await fixture[protocol]('localhost', `${path}?${long}`)
      expect([status, headers['content-type'], JSON.parse(text).error]).toEqual([
        414,
        'application/json',
        'address_too_long',
      ])
    }
    const { status, headers } = await fixture[protocol]('localhost', `/apiary?${long}`)
    expect([status, headers['content-type']]).toEqual([414, 'text/html; charset=utf-8'])
    // A drop's own /api/ is people's.
    expect((await fixture[protocol]('a.localhost', `/api/?${long}`)).headers['content-type']).toMatch('text/html')
  })
})

test('with several controls, one that is away costs no request', async () => {
  const port = (control.address() as AddressInfo).port
  const edge = await fixture.startEdge({
    REPLICA_DIR: `${fixture.dataDir}/several`,
    EDGE_WORKERS: '1',
    CONTROL_URLS: `http://127.0.0.1:9,http://127.0.0.1:${port}`,
  })
  onRequest = (request, response) => void request.resume().on('end', () => response.end(request.method))
  for (const method of ['GET', 'POST', 'POST', 'GET', 'DELETE', 'POST']) {
    const body = method === 'POST' ? 'x'.repeat(100_000) : undefined
    const answer = await requestH2(edge.httpsPort, fixture.ca(), 'localhost', '/api/v1/x', { method, body })
    expect([answer.status, answer.text]).toEqual([200, method])
  }
  await edge.stop()
})

test('over HTTP/2 too one who asks before they send a body is told to', async () => {
  onRequest = (request, response) => void buffer(request).then((body) => response.end(body))
  const session = http2.connect(`https://127.0.0.1:${fixture.edge.httpsPort}`, {
    ca: fixture.ca(),
    servername: 'localhost',
  })
  session.on('error', () => {})
  const stream = session.request({
    ':authority': 'localhost',
    ':path': '/api/v1/upload',
    ':method': 'POST',
    expect: '100-continue',
  })
  await once(stream, 'continue')
  stream.end('hello')
  expect((await stream.toArray()).join('')).toBe('hello')
  session.close()
})

test('a visitor who leaves ends the work of control', async () => {
  const [asked, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  onRequest = (request) => {
    request.socket.once('close', () => left.resolve())
    asked.resolve()
  }
  const session = http2.connect('https://localhost', {
    createConnection: () =>
      tls.connect({
        port: fixture.edge.httpsPort,
        host: '127.0.0.1',
        ca: fixture.ca(),
        servername: 'localhost',
        ALPNProtocols: ['h2'],
      }),
  })
  session.on('error', () => {})
  const stream = session.request({ ':path': '/slow' })
  stream.on('error', () => {})
  await asked.promise
  session.destroy()
  await left.promise
})

test('the plain port redirects with host and path kept, and answers challenges first', async () => {
  const moved = await plain('/x?y=1', { host: 'a.localhost:8080' })
  expect([moved.statusCode, moved.headers.location]).toEqual([308, 'https://a.localhost/x?y=1'])
  expect((await plain('//evil.example/')).headers.location).toBe('https://a.localhost/evil.example/')
  expect((await plain('/', { host: 'bad_host' })).statusCode).toBe(400)
  expect((await plain('/.well-known/acme-challenge/tok')).statusCode).toBe(404)
  expect(await fixture.reached(await fixture.log({ kind: 'challenge', name: 'tok', value: 'tok.thumb' }))).toBe(true)
  expect((await plain('/.well-known/acme-challenge/tok')).statusCode).toBe(200)
  expect(await fixture.reached(await fixture.log({ kind: 'challenge', name: 'tok', value: '' }))).toBe(true)
  expect((await plain('/.well-known/acme-challenge/tok')).statusCode).toBe(404)
})

test('who goes on sending to the plain port is sent to https all the same', async () => {
  const socket = net.connect(fixture.edge.httpPort, '127.0.0.1')
  let answer = ''
  // Read as it comes, and kept though the edge may have ended what is sent too late.
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString())).on('error', () => {})
  const closed = once(socket, 'close')
  const pieces = [
    'POST /x HTTP/1.1\r\nhost: a.localhost\r\ncontent-length: 300000\r\n\r\n',
    'x'.repeat(1e5),
    'x'.repeat(1e5),
  ]
  for (const piece of pieces) {
    await new Promise((resolve) => void socket.write(piece, resolve))
    await sleep(100)
  }
  await closed
  expect(answer).toMatch(/^HTTP\/1\.1 308 [^]*location: https:\/\/a\.localhost\/x\r\n/)
})

test('views count people who open pages, and reach Redis', async () => {
  const host = 'counted.localhost'
  await fixture.publish(host, { 'index.html': '<html><head></head><body>a</body></html>', 'a.css': 'p{}' })
  const edge = await fixture.startEdge({ REPLICA_DIR: `${fixture.dataDir}/counting`, EDGE_DRAIN: '60s' })
  const visit = (target: string, request: RequestOptions) =>
    requestH2(edge.httpsPort, fixture.ca(), host, target, request)
  const ofDay = watchDay()
  const { headers } = await visit('/', { headers: { 'user-agent': 'Mozilla/5.0' } })
  // Each time at another worker, perhaps.
  for (let time = 0; time < 3; time++) await visit('/', { headers: { 'user-agent': 'Mozilla/5.0' } })
  const another = { 'user-agent': 'Mozilla/5.0 (another)', 'if-none-match': headers['etag']! }
  await requestH1(edge.httpsPort, fixture.ca(), host, '/', { headers: another })
  const ignored: RequestOptions[] = [
    { headers: { 'user-agent': 'Googlebot/2.1' } },
    { headers: { 'user-agent': 'Mozilla/5.0 (compatible; Googlebot/2.1)' } },
    { headers: { 'user-agent': 'curl/8.5.0' } },
    { headers: { 'user-agent': 'Wget/1.21' } },
    { headers: { 'user-agent': 'python-requests/2.31' } },
    {},
    { headers: { 'user-agent': 'Mozilla/5.0 (3)', 'sec-purpose': 'prefetch;prerender' } },
    { headers: { 'user-agent': 'Mozilla/5.0 (4)', 'sec-fetch-mode': 'cors' } },
    { headers: { 'user-agent': 'Mozilla/5.0 (5)', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' } },
    { headers: { 'user-agent': 'Mozilla/5.0 (6)' }, method: 'HEAD' },
  ]
  for (const request of ignored) await visit('/', request)
  await visit('/a.css', {})
  await visit('/missing', {})
  await expect.poll(() => fixture.views(`st_${host}`)).toBeGreaterThan(0)
  // An edge that stops hands over all that it has counted: nothing comes later.
  expect(await edge.stop()).toBe(0)
  expect(ofDay(2)).toContain(await fixture.views(`st_${host}`))
})

test('a session ticket of one worker is good at every other', async () => {
  const open = (session?: Buffer): tls.TLSSocket =>
    tls
      .connect({
        port: fixture.edge.httpsPort,
        host: '127.0.0.1',
        ca: fixture.ca(),
        servername: 'a.localhost',
        session,
      })
      .resume()
  const first = open()
  const [ticket] = (await once(first, 'session')) as [Buffer]
  first.destroy()
  for (let attempt = 0; attempt < 8; attempt++) {
    const again = open(ticket)
    await once(again, 'secureConnect')
    expect(again.isSessionReused()).toBe(true)
    again.destroy()
  }
})

test('a session ticket of an edge that has ended is good at the others', async () => {
  const another = await fixture.startEdge({ REPLICA_DIR: `${fixture.dataDir}/another`, EDGE_WORKERS: '1' })
  const at = (port: number, session?: Buffer): tls.TLSSocket =>
    tls.connect({ port, host: '127.0.0.1', ca: fixture.ca(), servername: 'a.localhost', session }).resume()
  const first = at(another.httpsPort)
  const [ticket] = (await once(first, 'session')) as [Buffer]
  first.destroy()
  await another.stop()
  const again = at(fixture.edge.httpsPort, ticket)
  await once(again, 'secureConnect')
  expect(again.isSessionReused()).toBe(true)
  again.destroy()
})

test('old TLS is refused', async () => {
  const socket = tls.connect({
    port: fixture.edge.httpsPort,
    host: '127.0.0.1',
    servername: 'a.localhost',
    rejectUnauthorized: false,
    minVersion: 'TLSv1',
    maxVersion: 'TLSv1.1',
  })
  await expect(once(socket, 'secureConnect')).rejects.toThrow()
})

test.each([
  ['X25519MLKEM768:X25519', 'X25519MLKEM768'],
  ['X25519', 'X25519'],
  ['X25519:X25519MLKEM768', 'X25519'],
  ['P-256', 'prime256v1'],
])('who brings %s agrees on %s', async (ecdhCurve, agreed) => {
  const { httpsPort: port } = fixture.edge
  const socket = tls.connect({ port, host: '127.0.0.1', servername: 'a.localhost', ca: fixture.ca(), ecdhCurve })
  await once(socket, 'secureConnect')
  expect(socket.getEphemeralKeyInfo()).toMatchObject({ name: agreed })
  socket.destroy()
})

const healthOf = async (): Promise<unknown> =>
  (await fetch(`http://127.0.0.1:${fixture.edge.metricsPort}/healthz`)).json()

test('health and metrics are summed over the workers', async () => {
  // A worker that has no time to answer is left out.
  await expect.poll(healthOf).toMatchObject({ workers: 2, following: true, snapshot: true })
  const metrics = async (): Promise<string> =>
    (await fetch(`http://127.0.0.1:${fixture.edge.metricsPort}/metrics`)).text()
  await expect.poll(metrics).toContain('dropway_edge_workers 2')
  expect(await metrics()).toMatch(/dropway_edge_requests_total\{status="200"\} \d+/)
})

test('a password is asked for once per browser, everywhere in the drop', async () => {
  const hash = await fixture.hashPassword('open sesame')
  await fixture.publish(
    'locked.localhost',
    { 'index.html': 'inside', 'a.css': 'p{}' },
    { password: { hash, generation: 1 } },
  )
  for (const [target, method] of [
    ['/', 'GET'],
    ['/a.css', 'GET'],
    ['/missing', 'GET'],
    ['/', 'HEAD'],
  ] as const) {
    const answer = await fixture.h2('locked.localhost', target, { method })
    expect([answer.status, answer.headers['cache-control'], answer.headers['x-robots-tag']]).toEqual([
      401,
      'private, no-store',
      'noindex',
    ])
  }
  const post = (password: string) =>
    fixture.h1('locked.localhost', '/.dropway/unlock', {
      method: 'POST',
      body: new URLSearchParams({ password, next: '/a.css' }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
  expect((await post('wrong')).status).toBe(401)
  const opened = await post('open sesame')
  expect([opened.status, opened.headers['location']]).toEqual([303, '/a.css'])
  const cookie = opened.headers['set-cookie']!.split(';')[0]!
  expect((await fixture.h2('locked.localhost', '/', { headers: { cookie } })).text).toBe('inside')
  await fixture.publish('locked.localhost', { 'index.html': 'inside' }, { password: { hash, generation: 2 } })
  expect((await fixture.h2('locked.localhost', '/', { headers: { cookie } })).status).toBe(401)
})

test('guesses at a password are counted over all workers together', async () => {
  const hash = await fixture.hashPassword('open sesame')
  await fixture.publish('guessed.localhost', { 'index.html': 'inside' }, { password: { hash, generation: 1 } })
  // One after the other, each on a connection of its own: the kernel spreads them over the workers.
  const guess = async (count: number): Promise<number[]> => {
    const outcomes: number[] = []
    for (let attempt = 0; attempt < count; attempt++) {
      const answer = await fixture.h1('guessed.localhost', '/.dropway/unlock', {
        method: 'POST',
        body: new URLSearchParams({ password: `guess ${attempt}`, next: '/' }).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      })
      outcomes.push(answer.status)
    }
    return outcomes
  }
  expect(await guess(10)).toEqual(Array.from({ length: 10 }, () => 401))
  // News passes from the primary to workers in order: with the first of these it has heard of all guesses, with the second they have.
  for (let news = 0; news < 2; news++)
    await fixture.setRoute({ kind: 'redirect', host: 'news.localhost', to: 'a.localhost' })
  // Without hearing of each other the two would allow twenty.
  expect(await guess(20)).toEqual(Array.from({ length: 20 }, () => 429))

  // Who knows the password comes in, at whichever worker, by answering what the page asks.
  const page = await fixture.h2('guessed.localhost', '/')
  const [, challenge, bits] = /data-challenge="([^"]+)" data-bits="(\d+)"/.exec(page.text)!
  const open = (proof: string) =>
    fixture.h1('guessed.localhost', '/.dropway/unlock', {
      method: 'POST',
      body: new URLSearchParams({ password: 'open sesame', next: '/', proof }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
  expect((await open(`${challenge}:0`)).status).toBe(429)
  expect((await open(solve(challenge!, Number(bits)))).status).toBe(303)
})

test('an edge that logs every answer writes no query, of a page, a miss, a malformed or a proxied request', async () => {
  const settings = { REPLICA_DIR: `${fixture.dataDir}/logging`, LOG_LEVEL: 'info', ACCESS_LOG_SAMPLE: '1' }
  const logging = await fixture.startEdge(settings)
  onRequest = (_request, response) => void response.end('ok')
  try {
    for (const [host, target] of [
      ['a.localhost', '/?token=hunter2'],
      ['a.localhost', '/nowhere?token=hunter2#hunter2'],
      ['a.localhost', '/%ff?token=hunter2'],
      ['localhost', '/signin?next=%2F&token=hunter2'],
    ] as const)
      await requestH2(logging.httpsPort, fixture.ca(), host, target, {})
    await expect.poll(() => logging.output().match(/"msg":"request"/g)).toHaveLength(4)
  } finally {
    await logging.stop()
  }
  expect(logging.output()).toContain('"path":"/nowhere"')
  expect(logging.output()).not.toContain('hunter2')
})

test('a crashed worker is replaced while the port stays open', async () => {
  const children = processTree(fixture.edge.pid).slice(1)
  expect(children).toHaveLength(2)
  process.kill(children[0]!, 'SIGKILL')
  const others = (): number[] => processTree(fixture.edge.pid).slice(1)
  await expect.poll(() => others().filter((pid) => !children.includes(pid))).toHaveLength(1)
  await expect.poll(healthOf).toMatchObject({ workers: 2 })
  await fixture.publish('after.localhost', { 'index.html': 'after' })
  for (let attempt = 0; attempt < 6; attempt++) expect((await fixture.h1('after.localhost', '/')).status).toBe(200)
})

test('limits per network refuse too many requests and connections, with 429 or a closed door', async () => {
  const limited = await fixture.startEdge({
    REPLICA_DIR: `${fixture.dataDir}/limited`,
    EDGE_WORKERS: '1',
    EDGE_REQUESTS_PER_IP: '20',
    EDGE_CONNECTIONS_PER_IP: '3',
  })
  // So many that they last only where a machine takes ten seconds for them.
  const many = 'GET / HTTP/1.1\r\nhost: a.localhost\r\n\r\n'.repeat(200)
  const text = await rawH1(
    limited.httpsPort,
    fixture.ca(),
    'a.localhost',
    `${many}GET / HTTP/1.1\r\nhost: a.localhost\r\nconnection: close\r\n\r\n`,
  )
  expect(text.match(/HTTP\/1\.1 200/g)!.length).toBeGreaterThanOrEqual(20)
  expect(text).toContain('HTTP/1.1 429')
  expect(text).toMatch(/retry-after: \d+/i)
  // From another address: the edge may not have noticed yet that the connection above is gone.
  const from = { host: '127.0.0.1', localAddress: '127.0.0.2', ca: fixture.ca(), servername: 'a.localhost' }
  const sockets = Array.from({ length: 5 }, () =>
    tls.connect({ ...from, port: limited.httpsPort } as tls.ConnectionOptions),
  )
  const outcomes = await Promise.all(
    sockets.map((socket) =>
      once(socket, 'secureConnect').then(
        () => 'open',
        () => 'refused',
      ),
    ),
  )
  expect(outcomes.filter((outcome) => outcome === 'open')).toHaveLength(3)
  for (const socket of sockets) socket.destroy()
  await limited.stop()
})

test('two edges on the same port: the second says so and ends', async () => {
  const started = fixture.startEdge({
    REPLICA_DIR: `${fixture.dataDir}/twin`,
    EDGE_HTTPS_PORT: String(fixture.edge.httpsPort),
  })
  await expect(started).rejects.toThrow(/EDGE_HTTPS_PORT \d+ cannot be used: something else is listening there/)
})

test('SIGTERM: balancers are told while newcomers are served', async () => {
  const settings = { REPLICA_DIR: `${fixture.dataDir}/noticed`, EDGE_WORKERS: '1', DRAIN_NOTICE: '10m' }
  const edge = await fixture.startEdge(settings)
  const health = async (path: string) => (await fetch(`http://127.0.0.1:${edge.metricsPort}${path}`)).status
  expect([await health('/healthz'), await health('/readyz')]).toEqual([200, 200])
  onRequest = (_request, response) => void response.end('served')
  const stopped = edge.stop()
  await expect.poll(() => health('/readyz')).toBe(503)
  expect(await health('/healthz')).toBe(200)
  expect((await requestH1(edge.httpsPort, fixture.ca(), 'localhost', '/new', {})).text).toBe('served')
  for (const pid of processTree(edge.pid)) process.kill(pid, 'SIGKILL')
  await stopped
})

test('SIGTERM before an edge serves: it takes itself off the list of live edges, and its exit code is 0', async () => {
  // It waits for a snapshot.
  const empty = await startEdgeFixture({ epoch: false, startEdge: false })
  onTestFinished(() => empty.stop())
  const forked = Promise.withResolvers<ChildProcess>()
  const started = Promise.allSettled([empty.startEdge({}, forked.resolve)])
  const edge = await forked.promise
  const ended = once(edge, 'exit')
  await expect.poll(() => empty.edgeIds()).toHaveLength(1)
  edge.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
  expect(await empty.edgeIds()).toEqual([])
  await started
})

test('SIGTERM: then GOAWAY, the request in flight is finished, exit code 0', async () => {
  const settings = { REPLICA_DIR: `${fixture.dataDir}/draining`, EDGE_WORKERS: '1', EDGE_DRAIN: '60s' }
  const edge = await fixture.startEdge(settings)
  const session = http2.connect('https://localhost', {
    createConnection: () =>
      tls.connect({
        port: edge.httpsPort,
        host: '127.0.0.1',
        ca: fixture.ca(),
        servername: 'localhost',
        ALPNProtocols: ['h2'],
      }),
  })
  session.on('error', () => {})
  const goaway = once(session, 'goaway')
  const arrived = Promise.withResolvers<void>()
  onRequest = (_request, response) => {
    arrived.resolve()
    void goaway.then(() => response.end('finished'))
  }
  const stream = session.request({ ':path': '/slow' })
  await arrived.promise
  const stopped = edge.stop()
  await goaway
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  expect(text).toBe('finished')
  session.close()
  expect(await stopped).toBe(0)
})
