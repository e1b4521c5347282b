/** Writes a zip of many small files, one after the other: what libraries hold for each entry grows with their number. */
import { closeSync, openSync, writeSync } from 'node:fs'
import { crc32, deflateRawSync } from 'node:zlib'

const LOCAL = 0x04_03_4b_50
const CENTRAL = 0x02_01_4b_50
const END_64 = 0x06_06_4b_50
const LOCATOR_64 = 0x07_06_4b_50
const END = 0x06_05_4b_50
/** Zip64, for more than 65,535 entries; names are UTF-8; the bytes are deflated. */
const VERSION = 45
const UTF8 = 0x08_00
const DEFLATED = 8
/** The first of January 1980. */
const DATE = 0x21

/** APPNOTE.TXT 4.3. */
export function writeZip(
  file: string,
  count: number,
  nameOf: (index: number) => string,
  contentOf: (index: number) => Buffer,
): void {
  const descriptor = openSync(file, 'w')
  const directory: Buffer[] = []
  let offset = 0
  for (let index = 0; index < count; index++) {
    const [name, content] = [Buffer.from(nameOf(index)), contentOf(index)]
    const packed = deflateRawSync(content)
    const common = fields([2, VERSION, 2, UTF8, 2, DEFLATED, 2, 0, 2, DATE, 4, crc32(content), 4, packed.length])
    const rest = fields([4, content.length, 2, name.length, 2, 0])
    directory.push(fields([4, CENTRAL, 2, VERSION]), common, rest, fields([2, 0, 2, 0, 2, 0, 4, 0, 4, offset]), name)
    offset += writeSync(descriptor, Buffer.concat([fields([4, LOCAL]), common, rest, name, packed]))
  }
  const central = Buffer.concat(directory)
  const end64 = fields([
    4,
    END_64,
    8,
    44,
    2,
    VERSION,
    2,
    VERSION,
    4,
    0,
    4,
    0,
    8,
    count,
    8,
    count,
    8,
    central.length,
    8,
    offset,
  ])
  const locator = fields([4, LOCATOR_64, 4, 0, 8, offset + central.length, 4, 1])
  const end = fields([4, END, 2, 0, 2, 0, 2, 0xffff, 2, 0xffff, 4, 0xffff_ffff, 4, 0xffff_ffff, 2, 0])
  writeSync(descriptor, Buffer.concat([central, end64, locator, end]))
  closeSync(descriptor)
}

/** Numbers, each behind its width in bytes, with the lowest byte first. */
function fields(widthsAndValues: readonly number[]): Buffer {
  const written: Buffer[] = []
  for (let at = 0; at < widthsAndValues.length; at += 2) {
    const [width = 0, value = 0] = widthsAndValues.slice(at, at + 2)
    const field = Buffer.alloc(width)
    field.writeUIntLE(value, 0, Math.min(width, 6))
    written.push(field)
  }
  return Buffer.concat(written)
}
