/** Writes zip files byte by byte, so that any field can lie. */
import zlib from 'node:zlib'

export interface RawEntry {
  name: string | Buffer
  data?: Buffer | string
  method?: number
  flags?: number
  /** Unix mode, file type bits included. */
  mode?: number
  madeBy?: number
  crc32?: number
  size?: number
  compressedSize?: number
  extra?: Buffer
  comment?: Buffer
  /** Where the directory says that the local header is. */
  headerStart?: number
  /** What the local header says instead. */
  local?: {
    name?: string | Buffer
    method?: number
    flags?: number
    crc32?: number
    size?: number
    compressedSize?: number
    extra?: Buffer
    signature?: number
  }
  /** Bytes as they stand in the archive, instead of `data` compressed. */
  packed?: Buffer
}

export interface RawZipOptions {
  /** Number of entries that the end record announces. */
  count?: number
  directoryStart?: number
  diskNumber?: number
  comment?: Buffer
  commentLength?: number
  /** Directory entries without a local header of their own. */
  onlyListed?: RawEntry[]
  zip64?: { count?: number; directoryStart?: number; signature?: number }
}

const DEFLATED = 8
const UTF8 = 0x0800

interface Placed {
  entry: RawEntry
  start: number
  packed: Buffer
  crc32: number
  size: number
}

export function rawZip(entries: readonly RawEntry[], options: RawZipOptions = {}): Buffer {
  const parts: Buffer[] = []
  const placed: Placed[] = []
  let position = 0
  const push = (part: Buffer): void => {
    parts.push(part)
    position += part.length
  }
  for (const entry of entries) {
    const data = Buffer.from(entry.data ?? '')
    const method = entry.method ?? DEFLATED
    const packed = entry.packed ?? (method === DEFLATED ? zlib.deflateRawSync(data) : data)
    const facts: Placed = {
      entry,
      start: position,
      packed,
      crc32: entry.crc32 ?? zlib.crc32(data),
      size: entry.size ?? data.length,
    }
    placed.push(facts)
    push(localHeader(facts))
    push(packed)
  }
  const directoryStart = position
  for (const facts of placed) push(directoryEntry(facts))
  for (const entry of options.onlyListed ?? []) {
    push(directoryEntry({ entry, start: 0, packed: Buffer.alloc(0), crc32: entry.crc32 ?? 0, size: entry.size ?? 0 }))
  }
  const directorySize = position - directoryStart
  if (options.zip64) push(zip64End(options.zip64, placed.length, directorySize, directoryStart, position))
  push(endRecord(options, placed.length, directorySize, directoryStart))
  return Buffer.concat(parts)
}

function nameBytes(name: string | Buffer): Buffer {
  return typeof name === 'string' ? Buffer.from(name) : name
}

function localHeader({ entry, packed, crc32, size }: Placed): Buffer {
  const local = entry.local ?? {}
  const name = nameBytes(local.name ?? entry.name)
  const extra = local.extra ?? Buffer.alloc(0)
  const header = Buffer.alloc(30)
  header.writeUInt32LE(local.signature ?? 0x04034b50, 0)
  header.writeUInt16LE(20, 4)
  header.writeUInt16LE(local.flags ?? entry.flags ?? UTF8, 6)
  header.writeUInt16LE(local.method ?? entry.method ?? DEFLATED, 8)
  header.writeUInt32LE((local.crc32 ?? crc32) >>> 0, 14)
  header.writeUInt32LE((local.compressedSize ?? entry.compressedSize ?? packed.length) >>> 0, 18)
  header.writeUInt32LE((local.size ?? size) >>> 0, 22)
  header.writeUInt16LE(name.length, 26)
  header.writeUInt16LE(extra.length, 28)
  return Buffer.concat([header, name, extra])
}

function directoryEntry({ entry, start, packed, crc32, size }: Placed): Buffer {
  const name = nameBytes(entry.name)
  const extra = entry.extra ?? Buffer.alloc(0)
  const comment = entry.comment ?? Buffer.alloc(0)
  const header = Buffer.alloc(46)
  header.writeUInt32LE(0x02014b50, 0)
  header.writeUInt16LE(entry.madeBy ?? (3 << 8) | 20, 4)
  header.writeUInt16LE(20, 6)
  header.writeUInt16LE(entry.flags ?? UTF8, 8)
  header.writeUInt16LE(entry.method ?? DEFLATED, 10)
  header.writeUInt32LE(crc32 >>> 0, 16)
  header.writeUInt32LE((entry.compressedSize ?? packed.length) >>> 0, 20)
  header.writeUInt32LE(size >>> 0, 24)
  header.writeUInt16LE(name.length, 28)
  header.writeUInt16LE(extra.length, 30)
  header.writeUInt16LE(comment.length, 32)
  header.writeUInt32LE(((entry.mode ?? 0o100644) << 16) >>> 0, 38)
  header.writeUInt32LE((entry.headerStart ?? start) >>> 0, 42)
  return Buffer.concat([header, name, extra, comment])
}

function endRecord(options: RawZipOptions, count: number, directorySize: number, directoryStart: number): Buffer {
  const comment = options.comment ?? Buffer.alloc(0)
  const end = Buffer.alloc(22)
  const announced = options.count ?? count
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(options.diskNumber ?? 0, 4)
  end.writeUInt16LE(options.diskNumber ?? 0, 6)
  end.writeUInt16LE(announced & 0xffff, 8)
  end.writeUInt16LE(announced & 0xffff, 10)
  end.writeUInt32LE(directorySize, 12)
  end.writeUInt32LE((options.directoryStart ?? directoryStart) >>> 0, 16)
  end.writeUInt16LE(options.commentLength ?? comment.length, 20)
  return Buffer.concat([end, comment])
}

function zip64End(
  zip64: NonNullable<RawZipOptions['zip64']>,
  count: number,
  directorySize: number,
  directoryStart: number,
  position: number,
): Buffer {
  const record = Buffer.alloc(56)
  record.writeUInt32LE(zip64.signature ?? 0x06064b50, 0)
  record.writeBigUInt64LE(44n, 4)
  record.writeUInt16LE(45, 12)
  record.writeUInt16LE(45, 14)
  record.writeBigUInt64LE(BigInt(zip64.count ?? count), 24)
  record.writeBigUInt64LE(BigInt(zip64.count ?? count), 32)
  record.writeBigUInt64LE(BigInt(directorySize), 40)
  record.writeBigUInt64LE(BigInt(zip64.directoryStart ?? directoryStart), 48)
  const locator = Buffer.alloc(20)
  locator.writeUInt32LE(0x07064b50, 0)
  locator.writeBigUInt64LE(BigInt(position), 8)
  locator.writeUInt32LE(1, 16)
  return Buffer.concat([record, locator])
}

/** A zip64 extra field with the given 64-bit values. */
export function zip64Extra(...values: bigint[]): Buffer {
  const extra = Buffer.alloc(4 + 8 * values.length)
  extra.writeUInt16LE(0x0001, 0)
  extra.writeUInt16LE(8 * values.length, 2)
  for (const [index, value] of values.entries()) extra.writeBigUInt64LE(value, 4 + 8 * index)
  return extra
}
