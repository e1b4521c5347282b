/** Keys of session tickets: the same at every edge, others in every period and for every SECRET_KEY. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import tls from 'node:tls'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { openLocalCa } from '../../../certs/local/local-ca.ts'
import { createCertificateIndex } from '../../../certs/certificates.ts'
import { createTlsListener, TLS_OPTIONS, type TlsListener } from '../../../edge/accept/listen.ts'
import { rotateTicketKeys, ticketKeys } from '../../../edge/accept/tickets.ts'
import { createNetworkLimits } from '../../../edge/accept/visitors/limits.ts'
import type { CertificateBundle } from '../../../shared/certificates/bundle.ts'
import { HOUR_MS, systemClock } from '../../../shared/running/clock.ts'
import { createSecrets } from '../../../shared/secrets/secrets.ts'

const PERIOD_MS = 8 * HOUR_MS
const AT = 1000 * PERIOD_MS
const secrets = createSecrets('k'.repeat(40))
let folder: string
let certificate: CertificateBundle

beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-tickets-'))
  certificate = openLocalCa(folder, systemClock).serviceCertificate(['localhost'])
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))
afterEach(() => void vi.useRealTimers())

test('every edge of one SECRET_KEY has the same keys for eight hours', () => {
  const keys = ticketKeys(secrets, AT)
  expect(keys).toHaveLength(48)
  expect(ticketKeys(createSecrets('k'.repeat(40)), AT + PERIOD_MS - 1)).toEqual(keys)
  expect(ticketKeys(secrets, AT + PERIOD_MS)).not.toEqual(keys)
  expect(ticketKeys(createSecrets('l'.repeat(40)), AT)).not.toEqual(keys)
})

test('keys are changed when the period ends, and again', () => {
  vi.useFakeTimers({ now: AT + HOUR_MS })
  const used: Buffer[] = []
  const stop = rotateTicketKeys(secrets, { now: () => Date.now() }, (keys) => used.push(keys))
  vi.advanceTimersByTime(PERIOD_MS - HOUR_MS - 1)
  expect(used).toEqual([])
  vi.advanceTimersByTime(PERIOD_MS + 10)
  expect(used).toEqual([ticketKeys(secrets, AT + PERIOD_MS), ticketKeys(secrets, AT + 2 * PERIOD_MS)])
  stop()
  vi.advanceTimersByTime(PERIOD_MS)
  expect(used).toHaveLength(2)
})

test('a ticket is good at another server with the same keys, and not after they have changed', async () => {
  const [one, other] = [await serverAt(AT), await serverAt(AT + HOUR_MS)]
  const ticket = await ticketOf(portOf(one))
  expect(await isReused(visit(portOf(other), ticket))).toBe(true)
  other.setTicketKeys(ticketKeys(secrets, AT + PERIOD_MS))
  expect(await isReused(visit(portOf(other), ticket))).toBe(false)
  for (const server of [one, other]) server.close()
})

test('a ticket is good at a listener whose certificate was replaced since, and the reverse', async () => {
  const { port, listener, stop } = await listen()
  const before = await ticketOf(port)
  listener.setFallback(certificate)
  const after = await ticketOf(port)
  expect(await isReused(visit(port, before))).toBe(true)
  const other = await listen()
  expect(await isReused(visit(other.port, after))).toBe(true)
  await Promise.all([stop(), other.stop()])
})

async function listen(): Promise<{ listener: TlsListener; port: number; stop(): Promise<void> }> {
  const limits = createNetworkLimits({ connections: 100, handshakesPerSecond: 100, requestsPerSecond: 100 })
  const listener = createTlsListener({
    certificates: createCertificateIndex({ fallback: certificate, tlsOptions: TLS_OPTIONS }),
    fallback: certificate,
    visitorIps: { isTrusted: () => false, visitorOf: (peer) => peer },
    limits,
    ticketKeys: ticketKeys(secrets, AT),
    onExchange() {},
    onAnswer() {},
    isService: () => false,
    onRefusedConnection() {},
  })
  const port = await listener.listen(0, '127.0.0.1')
  const stop = (): Promise<void> => {
    limits.stop()
    return listener.drain(0)
  }
  return { listener, port, stop }
}

async function serverAt(nowMs: number): Promise<tls.Server> {
  const options = { ...certificate, ticketKeys: ticketKeys(secrets, nowMs), sessionIdContext: 'dropway-edge' }
  const server = tls.createServer(options, (socket) => void socket.on('error', () => {}).resume())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

function portOf(server: tls.Server): number {
  return (server.address() as AddressInfo).port
}

async function ticketOf(port: number): Promise<Buffer> {
  const socket = visit(port)
  const [ticket] = (await once(socket, 'session')) as [Buffer]
  socket.destroy()
  return ticket
}

function visit(port: number, session?: Buffer): tls.TLSSocket {
  return tls.connect({ port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false, session }).resume()
}

async function isReused(socket: tls.TLSSocket): Promise<boolean> {
  await once(socket, 'secureConnect')
  const isSo = socket.isSessionReused()
  socket.destroy()
  return isSo
}
