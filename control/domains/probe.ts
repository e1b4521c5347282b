/**
 * Looks at a domain as a CA would: a token that every edge knows must come back from
 * http://<domain>/.well-known/acme-challenge/<token>. The address comes from the owner's DNS, so this connects only
 * to public addresses, sends one fixed request, follows nothing and reads next to nothing.
 */
import { randomBytes } from 'node:crypto'
import http from 'node:http'
import type { Redis } from 'ioredis'
import { announceChallenge, withdrawChallenge } from '../../shared/challenges.ts'
import { SECOND_MS } from '../../shared/clock.ts'
import { isPublicAddress } from '../../shared/ip.ts'
import type { ProbeResult } from './rules.ts'

const WAIT_FOR_EDGES_MS = 2 * SECOND_MS
const REQUEST_TIMEOUT_MS = 5 * SECOND_MS
/** A few of many addresses tell enough. */
const MAX_ADDRESSES = 4
const MAX_BODY_BYTES = 1024

export interface ProbeDeps {
  readonly redis: Redis
  readonly challengePort: number
  readonly allowPrivateAddresses: boolean
}

export interface Probe {
  probe(domain: string, addresses: readonly string[]): Promise<ProbeResult>
}

export function createProbe({ redis, challengePort, allowPrivateAddresses }: ProbeDeps): Probe {
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
      const usable = addresses
        .filter((address) => allowPrivateAddresses || isPublicAddress(address))
        .slice(0, MAX_ADDRESSES)
      if (usable.length === 0) return addresses.length === 0 ? 'challenge_unreachable' : 'private_address'
      return withToken(async (token, answer) => {
        const path = `/.well-known/acme-challenge/${token}`
        const bodies = await Promise.all(usable.map((address) => fetchBody(address, challengePort, domain, path)))
        if (bodies.includes(answer)) return 'reachable'
        return bodies.every((body) => body === undefined) ? 'challenge_unreachable' : 'challenge_wrong'
      })
    },
  }
}

/** Undefined when nobody answers. A redirect is an answer, and the wrong one. */
function fetchBody(address: string, port: number, domain: string, path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const request = http.get(
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
        response.once('close', () => resolve(response.statusCode === 200 ? body.trim() : ''))
      },
    )
    request.once('error', () => resolve(undefined))
  })
}
