/**
 * Looks at a domain as a CA would: a token that every edge knows must come back from
 * http://<domain>/.well-known/acme-challenge/<token>. The address comes from the owner's DNS, so this connects only
 * to public addresses, sends one fixed request, follows nothing and reads next to nothing.
 */
import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { announceChallenge, withdrawChallenge } from '../../../../shared/certificates/challenges.ts'
import { nodeHttp } from '../../../../shared/http/node-http.ts'
import { SECOND_MS } from '../../../../shared/running/clock.ts'
import { patiently } from '../../../../shared/settings/patience.ts'
import { isLoopback, isPublicAddress } from '../../../../shared/http/ip.ts'

const WAIT_FOR_EDGES_MS = patiently(2 * SECOND_MS)
const REQUEST_TIMEOUT_MS = patiently(5 * SECOND_MS)
/** A few of many addresses tell enough. */
const MAX_ADDRESSES = 4
const MAX_BODY_BYTES = 1024
/** What another server says about itself is quoted up to this length. */
const MAX_SERVER_CHARS = 40

export interface ProbeDependencies {
  readonly redis: Redis
  readonly challengePort: number
  /** Private networks may be looked at: only where there is no one to attack. */
  readonly allowPrivateAddresses: boolean
  /** This machine itself may be looked at: the service is at home on it. */
  readonly allowLoopback: boolean
}

export interface AddressProbe {
  readonly address: string
  /** `stranger`: another server answered · `silent`: none did · `private`: it was not looked at. */
  readonly outcome: 'ours' | 'stranger' | 'silent' | 'private'
  /** What the stranger calls itself, and answered. */
  readonly server?: string | undefined
  readonly status?: number | undefined
}

export interface Probe {
  probe(domain: string, addresses: readonly string[]): Promise<AddressProbe[]>
}

export function createProbe({ redis, challengePort, allowPrivateAddresses, allowLoopback }: ProbeDependencies): Probe {
  const mayLook = (address: string): boolean =>
    allowPrivateAddresses || isPublicAddress(address) || (allowLoopback && isLoopback(address))

  async function withToken<Result>(look: (token: string, answer: string) => Promise<Result>): Promise<Result> {
    const token = `probe-${randomBytes(16).toString('base64url')}`
    const answer = randomBytes(16).toString('base64url')
    try {
      // A slow edge is no fault of the domain: what comes back tells.
      await announceChallenge(redis, token, answer, WAIT_FOR_EDGES_MS)
      return await look(token, answer)
    } finally {
      await withdrawChallenge(redis, token).catch(() => {})
    }
  }

  return {
    async probe(domain, addresses) {
      const refused = addresses.filter((address) => !mayLook(address))
      const usable = addresses.filter(mayLook).slice(0, MAX_ADDRESSES)
      const left = refused.map((address): AddressProbe => ({ address, outcome: 'private' }))
      if (usable.length === 0) return left
      const looked = await withToken((token, answer) => {
        const path = `/.well-known/acme-challenge/${token}`
        return Promise.all(
          usable.map(async (address) =>
            outcomeOf(address, answer, await fetchBody(address, challengePort, domain, path)),
          ),
        )
      })
      return [...looked, ...left]
    },
  }
}

function outcomeOf(address: string, answer: string, reply: Reply | undefined): AddressProbe {
  if (!reply) return { address, outcome: 'silent' }
  if (reply.status === 200 && reply.body === answer) return { address, outcome: 'ours' }
  return { address, outcome: 'stranger', server: reply.server, status: reply.status }
}

interface Reply {
  readonly status: number | undefined
  readonly server: string | undefined
  readonly body: string
}

/** Undefined without an answer. A redirect is an answer, and the wrong one. */
function fetchBody(address: string, port: number, domain: string, path: string): Promise<Reply | undefined> {
  return new Promise((resolve) => {
    const request = nodeHttp.get(
      {
        host: address,
        port,
        path,
        headers: { host: domain },
        agent: false,
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      },
      (response) => {
        let body = ''
        response.setEncoding('latin1')
        response.on('data', (chunk: string) => {
          body += chunk
          if (body.length > MAX_BODY_BYTES) request.destroy()
        })
        response.once('close', () =>
          resolve({ status: response.statusCode, server: plainServer(response.headers.server), body: body.trim() }),
        )
      },
    )
    request.once('error', () => resolve(undefined))
  })
}

/** Printable ASCII only: it ends up in pages, terminals and mails. */
function plainServer(server: string | string[] | undefined): string | undefined {
  const plain = [server]
    .flat()[0]
    ?.replace(/[^\x20-\x7e]/g, '')
    .slice(0, MAX_SERVER_CHARS)
    .trim()
  return plain === '' ? undefined : plain
}
