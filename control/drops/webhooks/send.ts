/**
 * Sends one message to an address that an owner named, without being led into our own network: the name is resolved
 * once, every address must be public, and the connection goes to that very address. Redirects are not followed.
 */
import https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { SECOND_MS } from '../../../shared/running/clock.ts'
import { patiently } from '../../../shared/settings/patience.ts'
import { isLoopbackName, isPublicAddress } from '../../../shared/http/ip.ts'
import type { Dns } from '../domains/dns/dns.ts'
import { hookHostOf, PRIVATE_ADDRESS, urlProblem } from './rules.ts'

const TIMEOUT_MS = patiently(10 * SECOND_MS)
/** What is kept of an answer, for its owner to look at. */
const MAX_ANSWER_BYTES = 2000

export interface SentAnswer {
  readonly status: number
  readonly answer: string
}

export interface WebhookSenderDependencies {
  readonly dns: Pick<Dns, 'a' | 'aaaa'>
  readonly allowPrivateAddresses: boolean
}

export interface WebhookSender {
  /** Rejects where no answer came, with what an owner can read. */
  send(url: string, headers: Readonly<Record<string, string>>, body: string): Promise<SentAnswer>
  /** The addresses that the name leads to now; throws where one is not public. Empty: the name leads nowhere. */
  addressesOf(url: string): Promise<readonly string[]>
}

export function createWebhookSender({ dns, allowPrivateAddresses }: WebhookSenderDependencies): WebhookSender {
  async function addressesOf(text: string): Promise<readonly string[]> {
    const problem = urlProblem(text, allowPrivateAddresses)
    if (problem !== undefined) throw new Error(problem)
    const host = hookHostOf(new URL(text))
    if (isIP(host) !== 0) return [host]
    if (isLoopbackName(host)) return ['127.0.0.1']
    const [a, aaaa] = await Promise.all([dns.a(host), dns.aaaa(host)])
    const found = [...a.values, ...aaaa.values]
    if (!allowPrivateAddresses && found.some((address) => !isPublicAddress(address))) throw new Error(PRIVATE_ADDRESS)
    return found
  }

  return {
    addressesOf,
    async send(url, headers, body) {
      const [address] = await addressesOf(url)
      if (address === undefined) throw new Error('the name of the address leads nowhere')
      return post(new URL(url), address, headers, body)
    },
  }
}

/** Answers the one question that a connection asks with the address that was looked at. */
function pinned(address: string): LookupFunction {
  const family = isIP(address)
  return (_host, options, callback) => {
    if (options.all) callback(null, [{ address, family }])
    else callback(null, address, family)
  }
}

function post(url: URL, address: string, headers: Readonly<Record<string, string>>, body: string): Promise<SentAnswer> {
  return new Promise((resolve, reject) => {
    const request = https.request(
      url,
      {
        method: 'POST',
        agent: false,
        lookup: pinned(address),
        headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      },
      (response) => {
        const chunks: Buffer[] = []
        let size = 0
        const finish = (): void => {
          const answer = Buffer.concat(chunks).subarray(0, MAX_ANSWER_BYTES).toString()
          resolve({ status: response.statusCode ?? 0, answer: answer.replaceAll('\0', '') })
        }
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk)
          size += chunk.length
          if (size < MAX_ANSWER_BYTES) return
          finish()
          request.destroy()
        })
        response.on('end', finish)
        response.on('error', reject)
      },
    )
    request.on('error', (error) =>
      reject(error.name === 'TimeoutError' ? new Error(`no answer within ${TIMEOUT_MS / SECOND_MS} seconds`) : error),
    )
    request.end(body)
  })
}
