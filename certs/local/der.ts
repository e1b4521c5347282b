/** The few DER constructions (X.690) that a certificate needs. */

export function sequence(...parts: Uint8Array[]): Buffer {
  return tagged(0x30, ...parts)
}

export function set(...parts: Uint8Array[]): Buffer {
  return tagged(0x31, ...parts)
}

/** Context-specific, constructed: `[n] EXPLICIT`. */
export function explicit(number: number, ...parts: Uint8Array[]): Buffer {
  return tagged(0xa0 | number, ...parts)
}

/** Context-specific, primitive: `[n] IMPLICIT`. */
export function implicit(number: number, content: Uint8Array): Buffer {
  return tagged(0x80 | number, content)
}

export function boolean(value: boolean): Buffer {
  return tagged(0x01, Buffer.from([value ? 0xff : 0]))
}

/** An unsigned integer, big-endian; leading zeros are made minimal, a high bit gets the sign byte it needs. */
export function integer(bytes: Uint8Array): Buffer {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start++
  const minimal = bytes.subarray(start)
  const [highest = 0] = minimal
  return tagged(0x02, highest >= 0x80 ? Buffer.concat([Buffer.from([0]), minimal]) : minimal)
}

export function octets(content: Uint8Array): Buffer {
  return tagged(0x04, content)
}

export function bits(content: Uint8Array, unused = 0): Buffer {
  return tagged(0x03, Buffer.from([unused]), content)
}

export function text(value: string): Buffer {
  return tagged(0x0c, Buffer.from(value, 'utf8'))
}

export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]))
}

/** UTCTime until 2049, GeneralizedTime from 2050 on (RFC 5280 §4.1.2.5). */
export function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/\.\d+/, '').replace(/[-:T]/g, '')
  return digits < '2050' ? tagged(0x17, Buffer.from(digits.slice(2))) : tagged(0x18, Buffer.from(digits))
}

function base128(value: number): number[] {
  const groups = [value & 0x7f]
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) groups.unshift((rest & 0x7f) | 0x80)
  return groups
}

function tagged(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([tag, ...length(content.length)]), content])
}

function length(bytes: number): number[] {
  if (bytes < 0x80) return [bytes]
  const groups: number[] = []
  for (let rest = bytes; rest > 0; rest = Math.floor(rest / 256)) groups.unshift(rest & 0xff)
  return [0x80 | groups.length, ...groups]
}
