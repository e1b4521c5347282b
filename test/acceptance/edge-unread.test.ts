/**
 * Answers to visitors who ask for much and read late: every head is followed by its own body. Control's answers share the
 * connection with large files, and must not be cut, swapped or emptied because those wait.
 */
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startEdgeFixture, type EdgeFixture } from '../support/edge-fixture.ts'

const SERVICE = 'localhost'
const DROP = 'unread.localhost'
const LARGE = 'y'.repeat(300_000)
const SMALL = 'the small file'
/** What control says, by path. */
const SAID: Readonly<Record<string, string>> = {
  '/healthz': '{"status":"ok"}',
  '/api/v1/status': '{"control":"as it should be"}',
  '/signin': `<p>${'sign in '.repeat(2000)}`,
}
/** Long enough for the edge to be done with all that it can send unread. */
const LATE_MS = 300

let fixture: EdgeFixture
let control: http.Server

beforeAll(async () => {
  control = http.createServer((request, response) => {
    const body = SAID[request.url ?? ''] ?? ''
    response.writeHead(200, { 'content-length': Buffer.byteLength(body) }).end(body)
  })
  control.listen(0, '127.0.0.1')
  await once(control, 'listening')
  const { port } = control.address() as AddressInfo
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1', CONTROL_PORT: String(port) } })
  await fixture.publish(DROP, { 'large.txt': LARGE, 'small.txt': SMALL, 'huge.bin': 'z'.repeat(900_000) })
})
afterAll(async () => {
  await fixture?.stop()
  control.closeAllConnections()
  control.close()
})

/** The bodies in turn, each as long as its head announces. */
function bodiesOf(received: Buffer): string[] {
  const bodies: string[] = []
  for (let at = 0; at < received.length;) {
    const headEnd = received.indexOf('\r\n\r\n', at)
    const head = received.subarray(at, headEnd).toString('latin1')
    const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1])
    expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    bodies.push(received.subarray(headEnd + 4, headEnd + 4 + length).toString())
    at = headEnd + 4 + length
  }
  return bodies
}

test.each([1, 2, 3])('pipelined and read late, each answer of HTTP/1.1 has its own body (%i)', async () => {
  const get = (host: string, path: string, last = ''): string =>
    `GET ${path} HTTP/1.1\r\nHost: ${host}:${fixture.edge.httpsPort}\r\n${last}\r\n`
  const socket = tls.connect({ port: fixture.edge.httpsPort, ca: fixture.ca(), servername: SERVICE })
  await once(socket, 'secureConnect')
  socket.pause()
  const large = Array.from({ length: 14 }, () => get(DROP, '/large.txt')).join('')
  socket.write(large + get(SERVICE, '/healthz') + get(DROP, '/small.txt', 'Connection: close\r\n'))
  await sleep(LATE_MS)
  const bodies = bodiesOf(await buffer(socket))
  expect(bodies).toEqual([...Array.from({ length: 14 }, () => LARGE), SAID['/healthz'], SMALL])
})

test.each([1, 2, 3])('beside four large answers that no one reads, control answers over HTTP/2 (%i)', async () => {
  const session = http2.connect(`https://127.0.0.1:${fixture.edge.httpsPort}`, {
    ca: fixture.ca(),
    servername: SERVICE,
  })
  await once(session, 'connect')
  session.setLocalWindowSize(16_000_000)
  const ask = (authority: string, path: string): http2.ClientHttp2Stream =>
    session.request({ ':authority': authority, ':path': path })
  const unread = Array.from({ length: 4 }, () => ask(DROP, '/huge.bin'))
  for (const stream of unread) await once(stream, 'response')
  await sleep(LATE_MS)
  for (const [path, said] of Object.entries(SAID)) {
    const stream = ask(SERVICE, path)
    expect((await buffer(stream)).toString()).toBe(said)
  }
  for (const stream of unread) expect((await buffer(stream)).length).toBe(900_000)
  session.destroy()
})
