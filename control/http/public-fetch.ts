/**
 * Fetches a document from an address that a stranger named, without being led into our own network:
 * https only, no redirect, public addresses only (checked on the address that is connected to), bounded in size and time.
 */
import { lookup as resolve } from 'node:dns'
import { request } from 'node:https'
import { BlockList, isIP, type LookupFunction } from 'node:net'

const hidden = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const)
  hidden.addSubnet(network, bits, 'ipv4')
for (const [network, bits] of [
  ['::', 96],
  ['::ffff:0:0', 96],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  hidden.addSubnet(network, bits, 'ipv6')

/** An address of the public internet: not private, loopback, link-local, reserved or an embedding of IPv4. */
export function isPublicAddress(ip: string): boolean {
  const version = isIP(ip)
  return version !== 0 && !hidden.check(ip, version === 4 ? 'ipv4' : 'ipv6')
}

/** Resolves a name and refuses it when any of its addresses is not public. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  resolve(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, '')
    const refused = addresses.length === 0 || addresses.some(({ address }) => !isPublicAddress(address))
    if (refused) return callback(new Error(`${hostname} is not a public address`), '')
    return options.all
      ? callback(null, addresses as never)
      : callback(null, addresses[0]!.address, addresses[0]!.family)
  })
}

export function fetchPublic(address: string, limits: { maxBytes: number; timeoutMs: number }): Promise<Buffer> {
  const url = new URL(address)
  if (url.protocol !== 'https:') return Promise.reject(new Error('only https addresses are fetched'))
  const literal = url.hostname.replace(/^\[|\]$/g, '')
  if (isIP(literal) !== 0 && !isPublicAddress(literal))
    return Promise.reject(new Error(`${literal} is not a public address`))
  return new Promise((settle, reject) => {
    const outgoing = request(
      url,
      { lookup: publicLookup, headers: { accept: 'application/json' }, signal: AbortSignal.timeout(limits.timeoutMs) },
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
