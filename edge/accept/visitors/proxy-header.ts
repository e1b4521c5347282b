/**
 * The PROXY protocol, versions 1 and 2: a balancer in front says in a header before the first byte of the visitor who the
 * visitor is. Read only from peers that TRUSTED_PROXIES names.
 */
import { isIPv4, isIPv6 } from 'node:net'
import { normaliseIp } from '../../../shared/http/ip.ts'

export type ProxyHeader =
  /** The bytes begin like a header and do not tell yet. */
  | { readonly kind: 'unfinished' }
  /** The visitor's own bytes begin at once. */
  | { readonly kind: 'none' }
  /** A balancer that speaks this protocol would not write it. */
  | { readonly kind: 'broken' }
  /** `visitor` is undefined where the balancer speaks for itself: its health checks. */
  | { readonly kind: 'read'; readonly visitor: string | undefined; readonly length: number }

const V1_SIGNATURE = Buffer.from('PROXY ')
const V2_SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
/** The longest line of version 1, with its end. */
const MAX_V1_BYTES = 107
/** Signature, version and command, family, length. */
const V2_HEAD_BYTES = 16
/** Balancers add a few facts of their own; certificates of visitors are the largest. */
const MAX_V2_BODY_BYTES = 8192

const UNFINISHED: ProxyHeader = { kind: 'unfinished' }
const NONE: ProxyHeader = { kind: 'none' }
const BROKEN: ProxyHeader = { kind: 'broken' }

export function readProxyHeader(bytes: Buffer): ProxyHeader {
  if (beginsLike(bytes, V1_SIGNATURE)) return bytes.length < V1_SIGNATURE.length ? UNFINISHED : readLine(bytes)
  if (beginsLike(bytes, V2_SIGNATURE)) return bytes.length < V2_HEAD_BYTES ? UNFINISHED : readBinary(bytes)
  return NONE
}

/** Also true while too little has come to tell them apart. */
function beginsLike(bytes: Buffer, signature: Buffer): boolean {
  const length = Math.min(bytes.length, signature.length)
  return bytes.subarray(0, length).equals(signature.subarray(0, length))
}

/** `PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n`. */
function readLine(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, MAX_V1_BYTES).indexOf('\r\n')
  if (end < 0) return bytes.length < MAX_V1_BYTES ? UNFINISHED : BROKEN
  const [, protocol, source = '', destination = '', ...ports] = bytes.toString('latin1', 0, end).split(' ')
  const length = end + 2
  if (protocol === 'UNKNOWN') return { kind: 'read', visitor: undefined, length }
  const isAddress = protocol === 'TCP4' ? isIPv4 : protocol === 'TCP6' ? isIPv6 : () => false
  if (!isAddress(source) || !isAddress(destination) || ports.length !== 2 || !ports.every(isPort)) return BROKEN
  return { kind: 'read', visitor: normaliseIp(source), length }
}

function isPort(text: string): boolean {
  return /^(?:0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535
}

const VERSION_2 = 2
const COMMANDS = { local: 0, proxy: 1 } as const
/** The families that a TCP connection from elsewhere can have, and the length of their addresses; the low half says that it is a stream. */
const STREAMS = { 0x11: 4, 0x21: 16 } as const
const TWO_PORTS_BYTES = 4

function readBinary(bytes: Buffer): ProxyHeader {
  const [version, command] = [bytes.readUInt8(12) >> 4, bytes.readUInt8(12) & 0x0f]
  const [family, body] = [bytes.readUInt8(13), bytes.readUInt16BE(14)]
  const length = V2_HEAD_BYTES + body
  if (version !== VERSION_2 || body > MAX_V2_BODY_BYTES) return BROKEN
  if (bytes.length < length) return UNFINISHED
  // What a balancer says about itself is to be skipped, whatever it is.
  if (command === COMMANDS.local) return { kind: 'read', visitor: undefined, length }
  const addressBytes = STREAMS[family as keyof typeof STREAMS] as (typeof STREAMS)[keyof typeof STREAMS] | undefined
  if (command !== COMMANDS.proxy || addressBytes === undefined || body < 2 * addressBytes + TWO_PORTS_BYTES)
    return BROKEN
  return { kind: 'read', visitor: addressOf(bytes.subarray(V2_HEAD_BYTES, V2_HEAD_BYTES + addressBytes)), length }
}

function addressOf(bytes: Buffer): string {
  if (bytes.length === STREAMS[0x11]) return bytes.join('.')
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(2 * index).toString(16))
  const isMapped = bytes.subarray(0, 10).every((byte) => byte === 0) && bytes.readUInt16BE(10) === 0xffff
  return isMapped ? bytes.subarray(12).join('.') : groups.join(':')
}
