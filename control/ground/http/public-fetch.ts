/**
 * Fetches a document from an address that a stranger named, without being led into our own network:
 * https only, no redirect, public addresses only (checked on the address that is connected to), bounded in size and time.
 */
import { lookup as resolve } from 'node:dns'
import { request } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { isLoopbackName, isPublicAddress } from '../../../shared/http/ip.ts'
import { nodeHttp } from '../../../shared/http/node-http.ts'

/** Resolves a name and refuses it when any of its addresses is not public. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  resolve(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, '')
    const [first] = addresses
    if (!first || addresses.some(({ address }) => !isPublicAddress(address)))
      return callback(new Error(`${hostname} is not a public address`), '')
    return options.all ? callback(null, addresses) : callback(null, first.address, first.family)
  })
}

export interface FetchLimits {
  readonly maxBytes: number
  readonly timeoutMs: number
}

export function fetchPublic(address: string, limits: FetchLimits): Promise<Buffer> {
  const url = new URL(address)
  if (url.protocol !== 'https:') return Promise.reject(new Error('only https addresses are fetched'))
  const literal = url.hostname.replace(/^\[|\]$/g, '')
  if (isIP(literal) !== 0 && !isPublicAddress(literal))
    return Promise.reject(new Error(`${literal} is not a public address`))
  return read(url, limits, publicLookup)
}

/**
 * The same of an address that the operator named: it may be private, and plain http on this machine. Still no redirect,
 * and bounded.
 */
export function fetchNamedByOperator(address: string, limits: FetchLimits): Promise<Buffer> {
  const url = new URL(address)
  const isAllowed = url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackName(url.hostname))
  return isAllowed ? read(url, limits, undefined) : Promise.reject(new Error('only https addresses are fetched'))
}

function read(url: URL, limits: FetchLimits, lookup: LookupFunction | undefined): Promise<Buffer> {
  const send = url.protocol === 'https:' ? request : nodeHttp.request
  return new Promise((settle, reject) => {
    const outgoing = send(
      url,
      {
        agent: false,
        ...(lookup ? { lookup } : {}),
        headers: { accept: 'application/json' },
        signal: AbortSignal.timeout(limits.timeoutMs),
      },
      (response) => {
        if (response.statusCode !== 200) return outgoing.destroy(new Error(`answered ${response.statusCode}`))
        const chunks: Buffer[] = []
        let size = 0
        response.on('data', (chunk: Buffer) => {
          size += chunk.length
          if (size > limits.maxBytes) outgoing.destroy(new Error(`larger than ${limits.maxBytes} bytes`))
          else chunks.push(chunk)
        })
        response.on('end', () => settle(Buffer.concat(chunks)))
        response.on('error', reject)
      },
    )
    outgoing.on('error', reject)
    outgoing.end()
  })
}
