/** Archives that must be refused, by kind. Each has an index.html, so that nothing but its trick can be the reason. */
import zlib from 'node:zlib'
import { rawZip, zip64Extra, type RawEntry, type RawZipOptions } from './raw-zip.ts'

export interface HostileArchive {
  readonly kind: string
  readonly bytes: Buffer
  /** What the refusal must name: the entry where there is one. */
  readonly names: string | RegExp
}

const INDEX: RawEntry = { name: 'index.html', data: '<!doctype html><title>x</title><p>hello' }
const EVIL = 'evil'

function kind(
  name: string,
  entries: RawEntry[],
  names: string | RegExp = EVIL,
  options: RawZipOptions = {},
): HostileArchive {
  return { kind: name, bytes: rawZip([INDEX, ...entries], options), names }
}

/** Whole in itself, with a header of its own: only its place gives it away. */
function nested(): HostileArchive {
  const inner: RawEntry = { name: 'evil', data: 'x', method: 0 }
  const cover: RawEntry = { name: 'cover', data: rawZip([inner]).subarray(0, 30 + 4 + 1), method: 0 }
  const bytes = rawZip([cover, { ...inner, headerStart: 30 + 5 }, INDEX])
  return { kind: 'an entry inside the bytes of another', bytes, names: /"evil" overlaps entry "cover"/ }
}

/** An entry with a bad name is named as far as it can be printed. */
function named(name: string | Buffer, what: string, names: string | RegExp = EVIL): HostileArchive {
  return kind(`name: ${what}`, [{ name, data: 'x' }], names)
}

export function hostileArchives(): HostileArchive[] {
  return [
    ...badNames(),
    ...badKinds(),
    ...disagreements(),
    ...badContent(),
    ...badDirectories(),
    ...bombs(),
    ...noArchives(),
  ]
}

function badNames(): HostileArchive[] {
  return [
    named('../evil.txt', 'parent folder'),
    named('a/../../evil.txt', 'parent folder inside'),
    named('a/../evil.txt', 'parent folder that stays inside'),
    named('./evil.txt', 'current folder'),
    named('/evil.txt', 'absolute'),
    named('//host/evil.txt', 'network path'),
    named('C:/evil.txt', 'drive letter'),
    named('c:evil.txt', 'drive letter without slash'),
    named('a\\evil.txt', 'backslash'),
    named('..\\evil.txt', 'parent folder with backslash'),
    named('\\\\host\\evil.txt', 'network path with backslashes'),
    named('evil\0.txt', 'NUL'),
    named('evil.html\0.png', 'NUL behind an extension'),
    named('evil\r\nx-header: 1', 'line break'),
    named('evil\u001b[31m', 'escape sequence'),
    named('evil\u007f', 'delete character'),
    named('a//evil.txt', 'empty folder name'),
    named('', 'empty', 'no name'),
    named(`evil-${'x'.repeat(260)}`, 'segment too long'),
    named(`${'a/'.repeat(40)}evil.txt`, 'too deep', 'a/a/'),
    named(
      `evil/${'b'.repeat(200)}/${'c'.repeat(200)}/${'d'.repeat(200)}/${'e'.repeat(200)}/${'f'.repeat(250)}`,
      'path too long',
    ),
    named(Buffer.from([0x65, 0x76, 0x69, 0x6c, 0xff, 0xfe]), 'UTF-8 announced but not given'),
    named('evil\ufffd', 'replacement character'),
    kind('name: twice', [
      { name: 'evil.txt', data: '1' },
      { name: 'evil.txt', data: '2' },
    ]),
    kind('name: landing page twice', [{ name: 'index.html', data: 'other' }], 'index.html'),
    kind('name: same accent composed twice', [
      { name: 'evil-\u00e9', data: '1' },
      { name: 'evil-e\u0301', data: '2' },
    ]),
    kind('name: file and folder', [
      { name: 'evil', data: '1' },
      { name: 'evil/a.txt', data: '2' },
    ]),
    kind('name: folder and file', [
      { name: 'evil/a.txt', data: '1' },
      { name: 'evil', data: '2' },
    ]),
    kind('name: folder entry and file', [
      { name: 'evil/', mode: 0o040755 },
      { name: 'evil', data: '2' },
    ]),
    kind('name: parent folder as a folder', [{ name: '../evil/', mode: 0o040755 }]),
  ]
}

function badKinds(): HostileArchive[] {
  const special = (mode: number): RawEntry[] => [{ name: 'evil', data: '/etc/passwd', mode }]
  return [
    kind('symbolic link', special(0o120777)),
    kind('symbolic link that claims to come from DOS', [
      { name: 'evil', data: '/etc/passwd', mode: 0o120777, madeBy: 20 },
    ]),
    kind('character device', special(0o020666)),
    kind('block device', special(0o060666)),
    kind('pipe', special(0o010666)),
    kind('socket', special(0o140666)),
    kind('folder mode on a file', [{ name: 'evil', data: 'x', mode: 0o040755 }]),
    kind('file mode on a folder', [{ name: 'evil/', mode: 0o100644 }]),
    kind('folder with content', [{ name: 'evil/', data: 'hidden', mode: 0o040755 }]),
    kind('encrypted', [{ name: 'evil', data: 'x', flags: 0x0801 }]),
    kind('encrypted in the local header only', [{ name: 'evil', data: 'x', local: { flags: 0x0801 } }]),
    kind('strong encryption', [{ name: 'evil', data: 'x', flags: 0x0841 }], /number 2|evil/),
    kind('masked headers', [{ name: 'evil', data: 'x', flags: 0x2800 }]),
    kind('patched data', [{ name: 'evil', data: 'x', flags: 0x0820 }]),
    ...[1, 6, 9, 12, 14, 93, 99].map((method) =>
      kind(`compression method ${method}`, [{ name: 'evil', data: 'x', method }]),
    ),
  ]
}

function disagreements(): HostileArchive[] {
  return [
    kind('another name in the local header', [{ name: 'evil', data: 'x', local: { name: 'good' } }]),
    kind('a longer name in the local header', [{ name: 'evil', data: 'x', local: { name: '../evil' } }]),
    kind('another method in the local header', [{ name: 'evil', data: 'x', local: { method: 0 } }]),
    kind('another checksum in the local header', [{ name: 'evil', data: 'x', local: { crc32: 1 } }]),
    kind('another size in the local header', [{ name: 'evil', data: 'x', local: { size: 999 } }]),
    kind('another packed size in the local header', [{ name: 'evil', data: 'x', local: { compressedSize: 999 } }]),
    kind('another zip64 size in the local header', [
      { name: 'evil', data: 'x', local: { size: 0xffffffff, compressedSize: 0xffffffff, extra: zip64Extra(5n, 5n) } },
    ]),
    kind('zip64 promised but missing in the local header', [
      { name: 'evil', data: 'x', local: { size: 0xffffffff, compressedSize: 0xffffffff } },
    ]),
    kind('no local header', [{ name: 'evil', data: 'x', local: { signature: 0x12345678 } }]),
    kind('local header beyond the end', [{ name: 'evil', data: 'x', headerStart: 1_000_000 }]),
    kind('two entries over the same bytes', [{ name: 'evil', data: 'x', headerStart: 0, local: {} }], /evil|index/),
    nested(),
    kind('data that reaches into the directory', [{ name: 'evil', data: 'x', compressedSize: 60, size: 500 }]),
    kind('overlapping data', [
      { name: 'evil-a', packed: Buffer.alloc(40), method: 0, size: 90, compressedSize: 90, crc32: 0 },
      { name: 'evil-b', data: Buffer.alloc(300), method: 0 },
    ]),
  ]
}

function badContent(): HostileArchive[] {
  const text = Buffer.from('some text that is long enough to be compressed, compressed, compressed')
  const packed = zlib.deflateRawSync(text)
  const crc32 = zlib.crc32(text)
  return [
    kind('wrong checksum', [{ name: 'evil', data: text, crc32: 1 }]),
    kind('wrong checksum of a stored entry', [{ name: 'evil', data: text, method: 0, crc32: 1 }]),
    kind('shorter than announced', [{ name: 'evil', packed, crc32, size: text.length + 10 }]),
    kind('longer than announced', [{ name: 'evil', packed, crc32, size: 3 }]),
    kind('announced as empty', [{ name: 'evil', packed, crc32: 0, size: 0 }]),
    kind('stored with two sizes', [{ name: 'evil', packed: text, method: 0, crc32, size: 3 }]),
    kind('garbage instead of compressed data', [
      { name: 'evil', packed: Buffer.alloc(50, 0xff), crc32, size: text.length },
    ]),
    kind('compressed data cut off', [{ name: 'evil', packed: packed.subarray(0, 20), crc32, size: text.length }]),
  ]
}

function badDirectories(): HostileArchive[] {
  const evil = { name: 'evil', data: 'x' }
  return [
    kind('more entries than announced', [evil], /lists more/, { count: 1 }),
    kind('fewer entries than announced', [evil], /number 3/, { count: 3 }),
    kind('directory somewhere else', [evil], /number 1/, { directoryStart: 0 }),
    kind('directory beyond the end', [evil], /number 1|cannot be read/, { directoryStart: 0x7fffffff }),
    kind('several disks', [evil], /disk/, { diskNumber: 1 }),
    kind('comment longer than the file', [evil], /comment/, { commentLength: 500 }),
    kind('zip64 count that lies', [evil], /number 3/, { zip64: { count: 5 } }),
    kind('zip64 count beyond all bounds', [evil], /20000 files/, { zip64: { count: 4_000_000_000 } }),
    kind('zip64 end record damaged', [evil], /zip64/, { zip64: { signature: 1 } }),
    kind('zip64 directory beyond the end', [evil], /number 1|cannot be read/, { zip64: { directoryStart: 2 ** 40 } }),
    kind('zip64 size without its field', [{ ...evil, size: 0xffffffff, extra: zip64Extra() }], /number 2|evil/),
    kind('extra field longer than it is', [{ ...evil, extra: Buffer.from([1, 0, 0xff, 0xff]) }], /number 2|evil/),
    kind('an entry that is only listed', [], EVIL, {
      count: 2,
      onlyListed: [{ name: 'evil', size: 1, compressedSize: 1, crc32: 1 }],
    }),
    {
      kind: 'too many files',
      bytes: rawZip([INDEX, ...Array.from({ length: 20_001 }, (_, index) => ({ name: `${index}`, method: 0 }))]),
      names: /20000 files/,
    },
  ]
}

/** A megabyte of zeros packs to a kilobyte. The announced size lies, or every entry shares one body. */
function bombs(): HostileArchive[] {
  const zeros = zlib.deflateRawSync(Buffer.alloc(50_000_000))
  const crc32 = zlib.crc32(Buffer.alloc(50_000_000))
  const shared = Array.from({ length: 200 }, (_, index) => ({
    name: `evil-${index}`,
    size: 50_000_000,
    compressedSize: zeros.length,
    crc32,
  }))
  return [
    kind('bomb that announces little', [{ name: 'evil', packed: zeros, crc32, size: 1000 }]),
    kind('bomb that announces a medium size', [{ name: 'evil', packed: zeros, crc32, size: 5_000_000 }]),
    kind('bomb of entries over one body', [{ name: 'evil', packed: zeros, crc32, size: 10_000 }], /evil|index/, {
      count: 202,
      onlyListed: shared.map((entry) => ({ ...entry, size: 10_000 })),
    }),
  ]
}

function noArchives(): HostileArchive[] {
  const whole = rawZip([INDEX])
  return [
    { kind: 'no archive at all', bytes: Buffer.from('<!doctype html>'), names: /cannot be read/ },
    { kind: 'nothing', bytes: Buffer.alloc(0), names: /cannot be read/ },
    { kind: 'cut off', bytes: whole.subarray(0, whole.length - 30), names: /cannot be read/ },
    { kind: 'bytes after the end', bytes: Buffer.concat([whole, Buffer.from('trailing')]), names: /cannot be read/ },
    { kind: 'gzip', bytes: zlib.gzipSync('index.html'), names: /cannot be read/ },
  ]
}
