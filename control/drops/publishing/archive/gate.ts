/**
 * The gate in front of every archive. yauzl finds and reads the directory; what it accepts is judged here, entry by
 * entry, before a single byte is inflated:
 *
 * 1. the directory holds exactly the entries it announces, and not too many;
 * 2. a name is one that we would publish (paths.ts), and appears once;
 * 3. an entry is a plain file or a folder: no links, devices, encryption or unusual compression;
 * 4. the local header says the same as the directory, and no two entries share bytes;
 * 5. the announced sizes fit the plan. extract.ts holds every entry to its announced size and checksum before it stores one.
 */
import yauzl, { type Entry, type LocalFileHeader, type ZipFile } from 'yauzl'
import { ApiError, errors } from '../../../../shared/contracts/errors.ts'
import { ArchiveFile } from './archive-file.ts'
import { quotePath } from '../../../../shared/values/quoted-path.ts'
import { isSystemClutter } from '../../../../shared/content/upload-kind.ts'
import { pathProblem, PathSet } from '../files/paths.ts'

export interface ArchiveEntry {
  readonly path: string
  readonly size: number
  readonly crc32: number
  readonly method: 'stored' | 'deflated'
  /** Where the data of the entry starts in the archive, and its length there. */
  readonly start: number
  readonly length: number
}

const STORED = 0
const DEFLATED = 8
const FLAG_ENCRYPTED = 0x0001
const FLAG_SIZES_FOLLOW = 0x0008
const FLAG_PATCH = 0x0020
const FLAG_STRONG_ENCRYPTION = 0x0040
const FLAG_UTF8 = 0x0800
const FLAG_MASKED_HEADERS = 0x2000
/** In a 32-bit field: see the zip64 extra field. */
const SEE_ZIP64 = 0xffffffff
const FILE_TYPE_MASK = 0o170000
const REGULAR_FILE = 0o100000
const FOLDER = 0o040000
/** A folder is an entry too, but costs nothing; a directory of nothing else is still no reason to read for minutes. */
const ENTRIES_PER_FILE = 2
/** What yauzl knows of an entry takes a kilobyte and more: so many are held at once. */
const PART_ENTRIES = 1000
const DIRECTORY_ENTRY_SIGNATURE = 0x02014b50
const EXTRA_ZIP64 = 0x0001

export interface InspectedArchive {
  readonly entries: readonly ArchiveEntry[]
  /** Paths of files that operating systems added. */
  readonly unserved: readonly string[]
}

/** What an archive may hold, unpacked. */
export interface ArchiveLimits {
  readonly capBytes: number
  readonly maxFiles: number
}

export async function inspectArchive(file: string, { capBytes, maxFiles }: ArchiveLimits): Promise<InspectedArchive> {
  const archive = new ArchiveFile(file)
  try {
    const zip = await openDirectory(archive)
    const entries = await readEntries(zip, archive, maxFiles)
    refuseOverlap(entries)
    refuseOversize(entries, capBytes)
    return {
      entries: entries.filter((entry) => entry.isPublished),
      unserved: entries.filter((entry) => !entry.isPublished && !entry.isFolder).map((entry) => entry.path),
    }
  } catch (error) {
    throw asRejection(error)
  } finally {
    archive.closeFile()
  }
}

/** Whatever goes wrong while reading an archive is the archive's fault: the disk was read before this point. */
function asRejection(error: unknown): unknown {
  if (error instanceof ApiError || (error as NodeJS.ErrnoException).syscall !== undefined) return error
  return errors.archiveRejected(`The archive cannot be read: ${sentence((error as Error).message)}`)
}

function sentence(text: string): string {
  return text.endsWith('.') ? text : `${text}.`
}

function openDirectory(archive: ArchiveFile): Promise<ZipFile> {
  // Names and sizes are judged here, by rules that say which entry is wrong.
  const options = { decodeStrings: false, validateEntrySizes: false, autoClose: false }
  return yauzl.fromRandomAccessReaderPromise(archive, archive.size, options)
}

interface JudgedEntry extends ArchiveEntry {
  readonly headerStart: number
  readonly isFolder: boolean
  readonly isPublished: boolean
}

/** A part of the directory, then the local headers of that part: each is read in order, and little is held of either. */
async function readEntries(zip: ZipFile, archive: ArchiveFile, maxFiles: number): Promise<JudgedEntry[]> {
  if (zip.entryCount > ENTRIES_PER_FILE * maxFiles)
    throw tooMany(`The archive lists ${zip.entryCount} entries`, maxFiles)
  const directoryStart = Number(zip.readEntryCursor)
  const judged: JudgedEntry[] = []
  let files = 0
  for (let first = 1; first <= zip.entryCount; first += PART_ENTRIES) {
    const part = await readDirectory(zip, first, Math.min(zip.entryCount, first + PART_ENTRIES - 1))
    for (const { name } of part) {
      if (!isFolderName(name)) files++
      if (files > maxFiles) throw tooMany(`Entry ${quotePath(name)} is one too many`, maxFiles)
    }
    for (const { name, entry } of part) judged.push(await judgeHeader(zip, name, entry, directoryStart))
  }
  refuseUnlisted(zip, archive)
  refuseClashes(judged)
  return judged
}

/** The entries of these numbers, which come next. */
async function readDirectory(zip: ZipFile, first: number, last: number): Promise<{ name: string; entry: Entry }[]> {
  const listed: { name: string; entry: Entry }[] = []
  for (let number = first; number <= last; number++) {
    const entry = await nextEntry(zip, number)
    const name = nameOf(entry, number)
    const problem = pathProblem(withoutSlash(name)) ?? entryProblem(entry, isFolderName(name))
    if (problem) throw rejected(name, problem)
    listed.push({ name, entry })
  }
  return listed
}

async function judgeHeader(zip: ZipFile, name: string, entry: Entry, directoryStart: number): Promise<JudgedEntry> {
  const header = await localHeader(zip, name, entry)
  const problem = headerProblem(entry, header) ?? boundsProblem(entry, header, directoryStart)
  if (problem) throw rejected(name, problem)
  const path = withoutSlash(name)
  return {
    path,
    size: entry.uncompressedSize,
    crc32: entry.crc32,
    method: entry.compressionMethod === STORED ? 'stored' : 'deflated',
    start: header.fileDataStart,
    length: entry.compressedSize,
    headerStart: entry.relativeOffsetOfLocalHeader,
    isFolder: isFolderName(name),
    isPublished: !isFolderName(name) && !isSystemClutter(path),
  }
}

function rejected(name: string, problem: string): ApiError {
  return errors.archiveRejected(`Entry ${quotePath(name)} ${problem}.`)
}

function tooMany(what: string, maxFiles: number): ApiError {
  return errors.archiveRejected(`${what}; a bundle holds at most ${maxFiles} files.`)
}

function isFolderName(name: string): boolean {
  return name.endsWith('/')
}

function withoutSlash(name: string): string {
  return isFolderName(name) ? name.slice(0, -1) : name
}

/** yauzl reports the first unreadable entry as an event; without a name, its number must do. */
function nextEntry(zip: ZipFile, number: number): Promise<Entry> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error): void => {
      zip.off('entry', onEntry)
      reject(errors.archiveRejected(`Entry number ${number} cannot be read: ${sentence(error.message)}`))
    }
    const onEntry = (entry: Entry): void => {
      zip.off('error', onError)
      resolve(entry)
    }
    zip.once('entry', onEntry)
    zip.once('error', onError)
    zip.readEntry()
  })
}

/** Most archivers write UTF-8, many without saying so; what is not UTF-8 is read as the format's historic code page. */
function nameOf(entry: Entry, number: number): string {
  const raw = entry.fileNameRaw
  const utf8 = decodeUtf8(raw)
  if (utf8 !== undefined) return utf8
  if (entry.generalPurposeBitFlag & FLAG_UTF8) {
    throw errors.archiveRejected(
      `Entry number ${number}, ${quotePath(raw.toString('latin1'))}, has a name that is not valid UTF-8.`,
    )
  }
  return yauzl.getFileNameLowLevel(entry.generalPurposeBitFlag, raw, entry.extraFields, false)
}

function decodeUtf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function entryProblem(entry: Entry, isFolder: boolean): string | undefined {
  const { generalPurposeBitFlag: flags, compressionMethod: method } = entry
  if (flags & (FLAG_ENCRYPTED | FLAG_STRONG_ENCRYPTION | FLAG_MASKED_HEADERS))
    return 'is encrypted; publish an archive without a password'
  if (flags & FLAG_PATCH) return 'is a patch, not a file'
  if (method !== STORED && method !== DEFLATED)
    return `is compressed with method ${method}; use ordinary zip compression (deflate)`
  const isSized = entry.uncompressedSize > 0 || entry.compressedSize > 0
  if (isFolder && entry.uncompressedSize > 0) return 'is a folder with content'
  if (method === STORED && isSized && entry.compressedSize !== entry.uncompressedSize)
    return 'is stored with two different sizes'
  return kindProblem(entry, isFolder)
}

/** The upper half of the external attributes is a Unix mode in archives made on Unix, and zero in others. */
function kindProblem(entry: Entry, isFolder: boolean): string | undefined {
  const kind = (entry.externalFileAttributes >>> 16) & FILE_TYPE_MASK
  if (kind === 0) return undefined
  if (kind === 0o120000) return 'is a symbolic link; replace it by the file it points to'
  if (kind !== REGULAR_FILE && kind !== FOLDER) return 'is a device, pipe or socket, not a file'
  return (kind === FOLDER) === isFolder ? undefined : 'is marked as a folder but named as a file, or the reverse'
}

async function localHeader(zip: ZipFile, name: string, entry: Entry): Promise<LocalFileHeader> {
  try {
    return await zip.readLocalFileHeaderPromise(entry)
  } catch (error) {
    throw rejected(name, `has no valid local header: ${(error as Error).message}`)
  }
}

/** Two readers of one archive must see the same files: what the local header says has to agree with the directory. */
function headerProblem(entry: Entry, header: LocalFileHeader): string | undefined {
  if (!header.fileName.equals(entry.fileNameRaw))
    return `is called ${quotePath(header.fileName.toString())} in its local header`
  if (header.compressionMethod !== entry.compressionMethod) return 'has another compression method in its local header'
  const securityFlags = FLAG_ENCRYPTED | FLAG_STRONG_ENCRYPTION | FLAG_MASKED_HEADERS
  if (header.generalPurposeBitFlag & securityFlags) return 'is encrypted according to its local header'
  if (header.generalPurposeBitFlag & FLAG_SIZES_FOLLOW) return undefined
  if (header.crc32 !== entry.crc32) return 'has another checksum in its local header'
  const sizes = localSizes(header)
  if (!sizes) return 'has a damaged zip64 field in its local header'
  const isSame = sizes.size === entry.uncompressedSize && sizes.length === entry.compressedSize
  return isSame ? undefined : 'has another size in its local header'
}

function localSizes(header: LocalFileHeader): { size: number; length: number } | undefined {
  let { uncompressedSize: size, compressedSize: length } = header
  if (size !== SEE_ZIP64 && length !== SEE_ZIP64) return { size, length }
  let zip64: Buffer | undefined
  try {
    zip64 = yauzl.parseExtraFields(header.extraField).find((field) => field.id === EXTRA_ZIP64)?.data
  } catch {
    return undefined
  }
  if (!zip64 || zip64.length < 16) return undefined
  if (size === SEE_ZIP64) size = Number(zip64.readBigUInt64LE(0))
  if (length === SEE_ZIP64) length = Number(zip64.readBigUInt64LE(8))
  return { size, length }
}

function boundsProblem(entry: Entry, header: LocalFileHeader, directoryStart: number): string | undefined {
  return header.fileDataStart + entry.compressedSize > directoryStart
    ? 'reaches into the directory of the archive'
    : undefined
}

/** More entries than announced: another reader would see files that were never checked here. */
function refuseUnlisted(zip: ZipFile, archive: ArchiveFile): void {
  const next = archive.bytes(Number(zip.readEntryCursor), 4)
  if (next.length === 4 && next.readUInt32LE(0) === DIRECTORY_ENTRY_SIGNATURE) {
    throw errors.archiveRejected(`The archive announces ${zip.entryCount} entries but lists more.`)
  }
}

/** Two files of one name, or a file where another entry has a folder: one of them would silently win. */
function refuseClashes(entries: readonly JudgedEntry[]): void {
  const paths = new PathSet()
  const folders = new Set(entries.filter((entry) => entry.isFolder).map((entry) => entry.path))
  for (const entry of entries) {
    if (!entry.isPublished) continue
    const problem = folders.has(entry.path) ? 'is both a file and a folder' : paths.add(entry.path)
    if (problem) throw rejected(entry.path, problem)
  }
}

/** Shared bytes make a small archive unpack to a huge one, and mean that the directory lies. */
function refuseOverlap(entries: readonly JudgedEntry[]): void {
  let before: JudgedEntry | undefined
  for (const entry of entries.toSorted((a, b) => a.headerStart - b.headerStart)) {
    if (before && entry.headerStart < before.start + before.length) {
      throw errors.archiveRejected(`Entry ${quotePath(entry.path)} overlaps entry ${quotePath(before.path)}.`)
    }
    before = entry
  }
}

function refuseOversize(entries: readonly JudgedEntry[], capBytes: number): void {
  const total = entries.reduce((sum, entry) => sum + (entry.isPublished ? entry.size : 0), 0)
  if (total > capBytes) throw errors.uploadTooLarge(capBytes)
}
