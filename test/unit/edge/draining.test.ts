/** A listener that stops: what was asked for is answered whole, and no connection outlives its last answer. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import tls from 'node:tls'
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createCertificateIndex } from '../../../certs/certificates.ts'
import { openLocalCa } from '../../../certs/local/local-ca.ts'
import { createTlsListener, TLS_OPTIONS, type TlsListener } from '../../../edge/accept/listen.ts'
import { createNetworkLimits, type NetworkLimits } from '../../../edge/accept/visitors/limits.ts'
import type { Exchange } from '../../../edge/context.ts'
import type { CertificateBundle } from '../../../shared/certificates/bundle.ts'
import { systemClock } from '../../../shared/running/clock.ts'

/** No test takes as long: what ends by force would end too late. */
const NEVER_MS = 3_600_000
const DROP = 'drop.localhost'
const SERVICE = 'localhost'
/** More than the buffers of both ends hold. */
const LARGE_BYTES = 30_000_000

let folder: string
let certificate: CertificateBundle
let listener: TlsListener
let limits: NetworkLimits
let port: number
let onExchange: (exchange: Exchange) => void

beforeAll(() => {
  // Nor does a connection end because nothing comes.
  vi.spyOn(net.Socket.prototype, 'setTimeout').mockReturnThis()
  folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-draining-'))
  certificate = openLocalCa(folder, systemClock).serviceCertificate([SERVICE, DROP])
})
afterAll(() => {
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true, force: true })
})

beforeEach(async () => {
  limits = createNetworkLimits({ connections: 100, handshakesPerSecond: 100, requestsPerSecond: 100 })
  onExchange = () => {}
  listener = createTlsListener({
    certificates: createCertificateIndex({ fallback: certificate, tlsOptions: TLS_OPTIONS }),
    fallback: certificate,
    visitorIps: { isTrusted: () => false, visitorOf: (peer) => peer },
    limits,
    ticketKeys: Buffer.alloc(48, 1),
    onExchange: (exchange) => onExchange(exchange),
    onAnswer() {},
    isService: (authority) => authority === SERVICE,
    onRefusedConnection() {},
  })
  port = await listener.listen(0, '127.0.0.1')
})
afterEach(() => limits.stop())

async function connect(): Promise<tls.TLSSocket> {
  const socket = tls.connect({
    port,
    host: '127.0.0.1',
    servername: DROP,
    ca: certificate.cert,
    ALPNProtocols: ['http/1.1'],
  })
  await once(socket, 'secureConnect')
  return socket
}

/** Until every connection that is there has heard of it. */
async function startDraining(): Promise<{ end: Promise<void> }> {
  const end = listener.drain(NEVER_MS)
  await turn()
  await turn()
  return { end }
}

const request = (host: string, target = '/'): string => `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`

async function ask(host: string, target = '/'): Promise<{ socket: tls.TLSSocket; exchange: Exchange }> {
  const asked = new Promise<Exchange>((resolve) => (onExchange = resolve))
  const socket = await connect()
  socket.write(request(host, target))
  return { socket, exchange: await asked }
}

describe.each([
  ['that the edge reads itself', DROP],
  ['that node:http reads', SERVICE],
])('a connection %s', (_, host) => {
  test('ends after the answer under way, whose head said that it goes on', async () => {
    const { socket, exchange } = await ask(host)
    const body = new PassThrough()
    exchange.stream(200, ['content-length', '9'], body, 9)
    body.write('under ')
    await once(socket, 'readable')
    const drained = await startDraining()
    body.end('way')
    expect(await text(socket)).toMatch(/connection: keep-alive[^]*under way$/i)
    await drained.end
  })

  test('ends after an answer that was asked for before, which says so', async () => {
    const { socket, exchange } = await ask(host)
    const drained = await startDraining()
    exchange.send(200, ['content-length', '4'], Buffer.from('late'))
    expect(await text(socket)).toMatch(/connection: close[^]*late$/i)
    await drained.end
  })

  test('loses nothing of an answer whose end waits for its reader', async () => {
    const { socket, exchange } = await ask(host)
    const body = Buffer.alloc(LARGE_BYTES, 'x')
    exchange.send(200, ['content-length', String(body.length)], body)
    await once(socket, 'readable')
    const drained = await startDraining()
    let bytes = 0
    for await (const chunk of socket) bytes += (chunk as Buffer).length
    expect(bytes).toBeGreaterThan(LARGE_BYTES)
    await drained.end
  })

  test('ends at once while nothing is under way, and one that has just begun after its first answer', async () => {
    const { socket: idle, exchange } = await ask(host)
    exchange.send(200, ['content-length', '0'], undefined)
    await once(idle, 'data')
    const fresh = await connect()
    onExchange = (asked) => asked.send(200, ['content-length', '5'], Buffer.from('first'))
    // On its way when the listener begins to stop.
    fresh.write(request(host))
    const drained = await startDraining()
    await once(idle.resume(), 'close')
    expect(await text(fresh)).toMatch(/connection: close[^]*first$/i)
    await drained.end
  })
})

test.each([
  ['that the edge reads itself', DROP],
  ['that node:http reads', SERVICE],
])('what was sent ahead on a connection %s is answered before it ends', async (_, host) => {
  const { socket, exchange } = await ask(host)
  const next = new Promise<Exchange>((resolve) => (onExchange = resolve))
  const body = new PassThrough()
  exchange.stream(200, ['content-length', '5'], body, 5)
  body.write('fir')
  socket.write(request(host))
  await once(socket, 'readable')
  const drained = await startDraining()
  body.end('st')
  const [answers] = await Promise.all([
    text(socket),
    next.then((asked) => asked.send(200, ['content-length', '4'], Buffer.from('next'))),
  ])
  expect(answers).toMatch(/connection: keep-alive[^]*first[^]*connection: close[^]*next$/i)
  await drained.end
})

test.each([
  ['an empty line', '\r\n'],
  ['a part of a request that stays one', 'GET / HTTP/1.1\r\nHo'],
])('%s behind the last answer does not keep a connection', async (_, rest) => {
  const { socket, exchange } = await ask(SERVICE)
  exchange.send(200, ['content-length', '4'], Buffer.from('done'))
  await once(socket, 'data')
  await new Promise((written) => socket.write(rest, written))
  // Until it has come.
  for (let turns = 0; turns < 10; turns++) await turn()
  const closed = once(socket.resume(), 'close')
  await (
    await startDraining()
  ).end
  await closed
})

test('a refusal behind the last answer is not cut off: what its visitor still sends is thrown away', async () => {
  const asked = new Promise<Exchange>((resolve) => (onExchange = resolve))
  const socket = await connect()
  socket.allowHalfOpen = true
  socket.write(`${request(SERVICE)}NO REQUEST\r\n\r\n`)
  const exchange = await asked
  const body = new PassThrough()
  exchange.stream(200, ['content-length', '4'], body, 4)
  body.write('la')
  await once(socket, 'readable')
  const drained = await startDraining()
  body.end('st')
  let answers = ''
  socket.on('data', (bytes: Buffer) => (answers += bytes.toString()))
  await once(socket, 'end')
  expect(answers).toMatch(/^HTTP\/1.1 200[^]*lastHTTP\/1.1 400/)
  const failure = await new Promise((sent) => socket.write(Buffer.alloc(LARGE_BYTES), sent))
  expect(failure ?? undefined).toBe(undefined)
  socket.end()
  await drained.end
})

test('a connection that asks for nothing is not waited for', async () => {
  const fresh = await connect()
  const closed = once(fresh.resume(), 'close')
  await listener.drain(NEVER_MS)
  await closed
})
