/** Addresses: which callers may speak for others, how they are counted in limits, and which ones are public. */
import { BlockList, isIP } from 'node:net'
import { before } from '../values/before.ts'

/** `::ffff:192.0.2.1`, an IPv4 caller on a dual-stack socket, counts as 192.0.2.1. */
export function normaliseIp(ip: string): string {
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip)?.[1] ?? ip
}

export function isLoopback(ip: string): boolean {
  const address = normaliseIp(ip)
  return address === '::1' || (isIP(address) === 4 && address.startsWith('127.'))
}

/** A name that leads to the machine itself wherever it is asked for (RFC 6761 §6.3): it cannot mean another machine. */
export function isLoopbackName(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost') || isLoopback(host.replace(/^\[(.*)\]$/, '$1'))
}

/** Addresses and networks (`10.0.0.0/8`, `2001:db8::/32`) of proxies whose word we take. Wrong entries are left out. */
export function trustedNetworks(entries: readonly string[]): BlockList {
  return blockListOf(entries)
}

function blockListOf(entries: readonly string[]): BlockList {
  const list = new BlockList()
  for (const entry of entries) addEntry(list, entry)
  return list
}

export function isNetwork(entry: string): boolean {
  const list = new BlockList()
  addEntry(list, entry)
  return list.rules.length > 0
}

function addEntry(list: BlockList, entry: string): void {
  const [address = '', bits] = entry.split('/')
  const version = isIP(address)
  if (version === 0) return
  const family = version === 4 ? 'ipv4' : 'ipv6'
  if (bits === undefined) return list.addAddress(address, family)
  const prefix = Number(bits)
  if (Number.isInteger(prefix) && prefix >= 0 && prefix <= (version === 4 ? 32 : 128))
    list.addSubnet(address, prefix, family)
}

export function isTrusted(ip: string, trusted: BlockList): boolean {
  const address = normaliseIp(ip)
  const version = isIP(address)
  return version !== 0 && trusted.check(address, version === 4 ? 'ipv4' : 'ipv6')
}

/**
 * Who is calling: the socket's peer, unless that peer is loopback (our own edge) or a trusted proxy.
 * Then the last entry of X-Forwarded-For, which that peer wrote, and so on while the entry itself is a trusted proxy.
 */
export function callerIp(peer: string, forwardedFor: string | undefined, trusted: BlockList): string {
  let ip = normaliseIp(peer)
  if (forwardedFor === undefined || !(isLoopback(ip) || isTrusted(ip, trusted))) return ip
  for (const hop of forwardedFor.split(',').toReversed()) {
    const address = normaliseIp(hop.trim())
    if (isIP(address) === 0) return ip
    ip = address
    if (!isTrusted(ip, trusted)) return ip
  }
  return ip
}

/** One caller in a limit: an IPv4 address, or the /64 that one IPv6 subscriber owns whole. */
export function limitKeyOfIp(ip: string): string {
  const address = normaliseIp(ip)
  if (isIP(address) !== 6) return address
  return `${expandIpv6(address).slice(0, 4).join(':')}::/64`
}

function expandIpv6(address: string): string[] {
  const [head = '', tail] = before(address, '%').split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  // A dotted quad at the end stands for two groups.
  const groups = left.length + right.length + (address.includes('.') ? 1 : 0)
  const zeros = tail === undefined ? [] : Array.from({ length: Math.max(0, 8 - groups) }, () => '0')
  return [...left, ...zeros, ...right].map((group) => group.toLowerCase().replace(/^0+(?=.)/, ''))
}

/** Everything that is not the public internet: RFC 6890 and its successors, and what embeds IPv4. */
const SPECIAL_NETWORKS: readonly string[] = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '::/96',
  '::ffff:0:0/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'ff00::/8',
]

/** An address of the public internet: a stranger may send us there. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 0) return false
  // A list of its own per family: Node would compare an IPv4 address with ::ffff:0:0/96, too.
  const ofFamily = SPECIAL_NETWORKS.filter((network) => network.includes(':') === (family === 6))
  return !blockListOf(ofFamily).check(address, family === 6 ? 'ipv6' : 'ipv4')
}
