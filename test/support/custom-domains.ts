/** Custom domains on real edges with control played by the test: how one is wanted, and what a handshake gets. */
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'
import { keys } from '../../shared/redis/keys.ts'
import type { EdgeFixture, EdgeProcess } from './edge-fixture.ts'
import type { Pebble } from './pebble.ts'

/** The public port 80: passes what arrives on to one edge, or holds it. */
export interface ChallengeGate {
  readonly port: number
  forwardTo: Pick<EdgeProcess, 'httpPort'> | undefined
  isHeld: boolean
  readonly arrivals: () => number
  stop(): void
}

export async function startChallengeGate(): Promise<ChallengeGate> {
  let arrivals = 0
  const server = http.createServer(async (request, response) => {
    arrivals += 1
    while (gate.isHeld) await sleep(50)
    const answer = await fetch(`http://127.0.0.1:${gate.forwardTo?.httpPort}${request.url}`).catch(() => undefined)
    response.writeHead(answer?.status ?? 502).end(await answer?.text())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const gate: ChallengeGate = {
    port: (server.address() as AddressInfo).port,
    forwardTo: undefined,
    isHeld: false,
    arrivals: () => arrivals,
    stop() {
      gate.isHeld = false
      server.closeAllConnections()
      server.close()
    },
  }
  return gate
}

/** What control publishes when a domain is to have a certificate. */
export async function wantDomain(fixture: EdgeFixture, pebble: Pebble, name: string): Promise<void> {
  const value = JSON.stringify({ wanted: true })
  await pebble.dns.a(name, '127.0.0.1')
  await fixture.redis.hset(keys.domains, name, value)
  await fixture.log({ kind: 'domain', name, value })
}

export const isIssued = async ({ redis }: EdgeFixture, name: string): Promise<boolean> =>
  (await redis.hexists(keys.certificates, name)) === 1

/** Forgets the shared copy of a certificate and asks again: the edges serve theirs until the new one is there. */
export async function reissue(fixture: EdgeFixture, pebble: Pebble, name: string): Promise<void> {
  await fixture.redis.hdel(keys.certificates, name)
  await wantDomain(fixture, pebble, name)
}

/** Resolves when every edge has worked through everything that was ever said. */
export async function allHeard({ redis, reached }: EdgeFixture): Promise<boolean> {
  const [last] = await redis.xrevrange(keys.log, '+', '-', 'COUNT', 1)
  return last === undefined || reached(last[0])
}

export interface PeerCertificate {
  readonly names: string
  readonly serial: string
}

/** The certificate that a full handshake gets; rejects when there is none. `from` is the visitor's loopback address. */
export async function certificateAt(port: number, servername: string, from = '127.0.0.1'): Promise<PeerCertificate> {
  const target: tls.ConnectionOptions & { localAddress: string } = {
    port,
    host: '127.0.0.1',
    localAddress: from,
    servername,
    rejectUnauthorized: false,
  }
  const socket = tls.connect(target)
  try {
    await Promise.race([
      once(socket, 'secureConnect'),
      once(socket, 'close').then(() => Promise.reject(new Error('closed'))),
    ])
    const { subjectaltname, serialNumber } = socket.getPeerCertificate()
    return { names: subjectaltname ?? '', serial: serialNumber }
  } finally {
    socket.destroy()
  }
}
