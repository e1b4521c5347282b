/** Keys of session tickets: the same at every edge, others in every period and for every SECRET_KEY. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import tls from 'node:tls'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { openLocalCa } from '../../../certs/local/local-ca.ts'
import { rotateTicketKeys, ticketKeys } from '../../../edge/accept/tickets.ts'
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
  const first = visit(one)
  const [ticket] = (await once(first, 'session')) as [Buffer]
  first.destroy()
  expect(await isReused(visit(other, ticket))).toBe(true)
  other.setTicketKeys(ticketKeys(secrets, AT + PERIOD_MS))
  expect(await isReused(visit(other, ticket))).toBe(false)
  for (const server of [one, other]) server.close()
})

async function serverAt(nowMs: number): Promise<tls.Server> {
  const options = { ...certificate, ticketKeys: ticketKeys(secrets, nowMs), sessionIdContext: 'dropway-edge' }
  const server = tls.createServer(options, (socket) => void socket.on('error', () => {}).resume())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

function visit(server: tls.Server, session?: Buffer): tls.TLSSocket {
  const { port } = server.address() as AddressInfo
  return tls.connect({ port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false, session }).resume()
}

async function isReused(socket: tls.TLSSocket): Promise<boolean> {
  await once(socket, 'secureConnect')
  const isSo = socket.isSessionReused()
  socket.destroy()
  return isSo
}
