/**
 * Messages of DNS UPDATE (RFC 2136) that are signed with a shared key (TSIG, RFC 8945): what a server is sent, and what
 * its answer says. Pure. An answer is foreign input: it is read in one pass, and a pointer in a name only leads back.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { SECOND_MS } from '../../shared/running/clock.ts'
import type { TsigKey } from './settings.ts'

const TYPE = { soa: 6, txt: 16, tsig: 250 } as const
const CLASS = { in: 1, none: 254, any: 255 } as const
const OPCODE_UPDATE = 5 << 11
const HEADER_BYTES = 12
const TTL_S = 60
/** RFC 8945 §10 recommends five minutes. */
const FUDGE_S = 300

export interface RecordChange {
  readonly kind: 'add' | 'remove'
  readonly name: string
  readonly value: string
}

export interface SignedUpdate {
  readonly message: Buffer
  /** The answer is signed together with it. */
  readonly mac: Buffer
}

/** One change of one TXT record. A record is removed by its value, so that those of others stay. */
export function signedUpdate(
  id: number,
  zone: string,
  change: RecordChange,
  key: TsigKey,
  nowMs: number,
): SignedUpdate {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt16BE(id, 0)
  header.writeUInt16BE(OPCODE_UPDATE, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(1, 8)
  const zoneSection = Buffer.concat([encodeName(zone), uint16(TYPE.soa), uint16(CLASS.in)])
  const text = Buffer.from(change.value, 'ascii')
  const data = Buffer.concat([Buffer.from([text.length]), text])
  const isAdded = change.kind === 'add'
  const record = Buffer.concat([
    encodeName(change.name),
    uint16(TYPE.txt),
    uint16(isAdded ? CLASS.in : CLASS.none),
    uint32(isAdded ? TTL_S : 0),
    uint16(data.length),
    data,
  ])
  return sign(Buffer.concat([header, zoneSection, record]), key, nowMs)
}

function sign(message: Buffer, key: TsigKey, nowMs: number): SignedUpdate {
  const signedAt = uint48(Math.floor(nowMs / SECOND_MS))
  const variables = tsigVariables(key, { signedAt, fudge: FUDGE_S, error: 0, other: Buffer.alloc(0) })
  const mac = hmac(key, [message, variables])
  const data = Buffer.concat([
    encodeName(key.algorithm),
    signedAt,
    uint16(FUDGE_S),
    uint16(mac.length),
    mac,
    message.subarray(0, 2),
    uint16(0),
    uint16(0),
  ])
  const record = Buffer.concat([
    encodeName(key.name),
    uint16(TYPE.tsig),
    uint16(CLASS.any),
    uint32(0),
    uint16(data.length),
    data,
  ])
  const signed = Buffer.concat([message, record])
  signed.writeUInt16BE(1, 10)
  return { message: signed, mac }
}

/** What the server did: nothing when it took the change, else a sentence that says what to do. */
export function readAnswer(
  answer: Buffer,
  { id, mac, key, nowMs }: { readonly id: number; readonly mac: Buffer; readonly key: TsigKey; readonly nowMs: number },
): string | undefined {
  const parsed = parseAnswer(answer)
  if (parsed === undefined || parsed.id !== id) return 'its answer is no answer to our update'
  const { code, tsig } = parsed
  const reason = TSIG_ERRORS[tsig?.error ?? 0] ?? CODES[code]
  if (code !== 0) return reason ?? `it answers with code ${code}`
  if (tsig === undefined) return 'its answer is not signed: whoever sent it, it is not believed'
  return isAuthentic(answer, tsig, mac, key, nowMs)
    ? undefined
    : 'the signature of its answer is wrong, so it is not believed'
}

/** RFC 1035 §4.1.1, RFC 2136 §2.2. */
const CODES: Readonly<Record<number, string>> = {
  1: 'it does not understand the update (FORMERR)',
  2: 'it failed (SERVFAIL): look at its log',
  4: 'it takes no updates (NOTIMP): use the primary server of the zone',
  5: 'it refuses (REFUSED): allow this key to change TXT records there (BIND: update-policy)',
  9: 'it is not the server of this zone, or does not accept the key (NOTAUTH)',
  10: 'the name is not in the zone (NOTZONE): correct DNS01_ZONE',
}

/** RFC 8945 §5.2. */
const TSIG_ERRORS: Readonly<Record<number, string>> = {
  16: 'it finds the signature wrong (BADSIG): correct DNS01_TSIG_SECRET or DNS01_TSIG_ALGORITHM',
  17: 'it does not know the key (BADKEY): correct DNS01_TSIG_KEY',
  18: 'its clock and ours are more than five minutes apart (BADTIME): set both by NTP',
}

interface Tsig {
  readonly start: number
  readonly algorithm: string
  readonly keyName: string
  readonly signedAt: Buffer
  readonly fudge: number
  readonly mac: Buffer
  readonly originalId: number
  readonly error: number
  readonly other: Buffer
}

interface Answer {
  readonly id: number
  readonly code: number
  readonly tsig: Tsig | undefined
}

/** Undefined for what is cut off or breaks the rules. */
function parseAnswer(answer: Buffer): Answer | undefined {
  try {
    const flags = answer.readUInt16BE(2)
    if ((flags & 0x8000) === 0) return undefined
    let offset = HEADER_BYTES
    for (let left = answer.readUInt16BE(4); left > 0; left--) offset = readName(answer, offset).end + 4
    const records = answer.readUInt16BE(6) + answer.readUInt16BE(8) + answer.readUInt16BE(10)
    let tsig: Tsig | undefined
    for (let left = records; left > 0; left--) {
      const start = offset
      const name = readName(answer, offset)
      const type = answer.readUInt16BE(name.end)
      const dataStart = name.end + 10
      const dataEnd = dataStart + answer.readUInt16BE(name.end + 8)
      if (dataEnd > answer.length) return undefined
      // It is the last record of all (RFC 8945 §5.1).
      const isPlain = answer.readUInt16BE(name.end + 2) === CLASS.any && answer.readUInt32BE(name.end + 4) === 0
      if (type === TYPE.tsig && left === 1 && isPlain)
        tsig = readTsig(answer, { start, keyName: name.name, dataStart, dataEnd })
      offset = dataEnd
    }
    return { id: answer.readUInt16BE(0), code: flags & 0xf, tsig }
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function readTsig(
  answer: Buffer,
  { start, keyName, dataStart, dataEnd }: { start: number; keyName: string; dataStart: number; dataEnd: number },
): Tsig {
  const algorithm = readName(answer, dataStart)
  const data = answer.subarray(0, dataEnd)
  const times = algorithm.end
  const macLength = data.readUInt16BE(times + 8)
  const afterMac = times + 10 + macLength
  const otherLength = data.readUInt16BE(afterMac + 4)
  if (afterMac + 6 + otherLength !== dataEnd) throw new RangeError('a TSIG record of another length than it says')
  return {
    start,
    keyName,
    algorithm: algorithm.name,
    signedAt: data.subarray(times, times + 6),
    fudge: data.readUInt16BE(times + 6),
    mac: data.subarray(times + 10, afterMac),
    originalId: data.readUInt16BE(afterMac),
    error: data.readUInt16BE(afterMac + 2),
    other: data.subarray(afterMac + 6, dataEnd),
  }
}

/** RFC 8945 §5.3: of the answer as it was before it was signed, after what we had sent. */
function isAuthentic(answer: Buffer, tsig: Tsig, requestMac: Buffer, key: TsigKey, nowMs: number): boolean {
  if (tsig.keyName !== key.name || tsig.algorithm !== key.algorithm) return false
  const unsigned = Buffer.from(answer.subarray(0, tsig.start))
  unsigned.writeUInt16BE(tsig.originalId, 0)
  unsigned.writeUInt16BE(unsigned.readUInt16BE(10) - 1, 10)
  const expected = hmac(key, [uint16(requestMac.length), requestMac, unsigned, tsigVariables(key, tsig)])
  const isSigned = expected.length === tsig.mac.length && timingSafeEqual(expected, tsig.mac)
  const awayS = Math.abs(nowMs / SECOND_MS - tsig.signedAt.readUIntBE(0, 6))
  return isSigned && awayS <= tsig.fudge
}

function tsigVariables(
  key: TsigKey,
  { signedAt, fudge, error, other }: Pick<Tsig, 'signedAt' | 'fudge' | 'error' | 'other'>,
): Buffer {
  return Buffer.concat([
    encodeName(key.name),
    uint16(CLASS.any),
    uint32(0),
    encodeName(key.algorithm),
    signedAt,
    uint16(fudge),
    uint16(error),
    uint16(other.length),
    other,
  ])
}

function hmac({ algorithm, secret }: TsigKey, parts: readonly Buffer[]): Buffer {
  const sum = createHmac(algorithm.replace('hmac-', ''), secret)
  for (const part of parts) sum.update(part)
  return sum.digest()
}

/** Names are settings and hosts of ours; lower case is their form in a signature (RFC 8945 §4.3.3). */
function encodeName(name: string): Buffer {
  const labels = name.toLowerCase().split('.').filter(Boolean)
  return Buffer.concat([
    ...labels.map((label) => Buffer.from([label.length, ...Buffer.from(label, 'ascii')])),
    Buffer.from([0]),
  ])
}

/** Throws a RangeError at the end of the bytes, and for a pointer that does not lead back (RFC 1035 §4.1.4). */
function readName(message: Buffer, start: number): { name: string; end: number } {
  const labels: string[] = []
  let end: number | undefined
  let offset = start
  for (let lowest = start; ;) {
    const length = message.readUInt8(offset)
    if (length === 0) return { name: labels.join('.').toLowerCase(), end: end ?? offset + 1 }
    if (length >= 0xc0) {
      const target = message.readUInt16BE(offset) & 0x3fff
      end ??= offset + 2
      if (target >= lowest) throw new RangeError('a pointer that does not lead back')
      lowest = target
      offset = target
      continue
    }
    if (offset + 1 + length > message.length) throw new RangeError('a label that is cut off')
    labels.push(message.toString('latin1', offset + 1, offset + 1 + length))
    offset += 1 + length
  }
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function uint48(value: number): Buffer {
  const bytes = Buffer.alloc(6)
  bytes.writeUIntBE(value, 0, 6)
  return bytes
}
