/**
 * How a long manifest is laid out: each part of its files has a line of its own, between a first line that opens the list
 * and a last one that closes it and has all else. To a reader of JSON that is white space. One that holds another version
 * finds the unchanged lines by their bytes, and decodes the changed line and the last instead of all.
 *
 *   {"v":1,"files":[
 *   ["a.html",{…}],["b.html",{…}],…,
 *   ["m.html",{…}],["n.html",{…}],…
 *   ],"redirects":[…],…}
 *
 * Where a part ends depends on the names in it, and not on how many files there are before it: a file more or less moves
 * the ends near it only.
 */
import {
  decodeFiles,
  decodeManifest,
  encodeManifest,
  MANIFEST_FORMAT,
  type Manifest,
  type ManifestFiles,
} from '../contracts/manifest.ts'

/** A shorter manifest is written and read in a millisecond or two. */
export const LONG_FILES = 2000
/** Bounds of a part, whatever its publisher calls the files. */
const PART_FILES = { least: 64, most: 1024 }
/** One name in so many ends a part. A part has some hundred kilobytes then, which take a millisecond or two to read. */
const NAMES_PER_END = 256

const OPENING = `{"v":${MANIFEST_FORMAT},"files":[`
const FIRST_LINE = Buffer.from(`${OPENING}\n`)
const BETWEEN = Buffer.from(',\n')
const LINE_END = Buffer.from('\n')
const COMMA = BETWEEN.readUInt8(0)
const NEW_LINE = BETWEEN.readUInt8(1)

export function isLong({ files }: Pick<Manifest, 'files'>): boolean {
  return files.length > LONG_FILES
}

/** The bytes of a long manifest, piece by piece. `textOf` is `encodePart`, or knows what that would give. */
export function* encodeLong(manifest: Manifest, textOf: (files: ManifestFiles) => Buffer): Generator<Buffer> {
  let isFirst = true
  for (const files of filesByPart(manifest.files)) {
    yield isFirst ? FIRST_LINE : BETWEEN
    yield textOf(files)
    isFirst = false
  }
  yield LINE_END
  yield encodeManifest({ ...manifest, files: [] }).subarray(OPENING.length)
}

export function encodePart(files: ManifestFiles): Buffer {
  return Buffer.from(JSON.stringify(files).slice(1, -1))
}

export function decodePart(text: Buffer): ManifestFiles {
  return decodeFiles(`[${text.toString()}]`)
}

/** The texts of the parts, as views into the bytes, and all else; undefined for a manifest that is not laid out so. */
export function splitLong(bytes: Buffer): { readonly texts: readonly Buffer[]; readonly rest: Manifest } | undefined {
  if (!bytes.subarray(0, FIRST_LINE.length).equals(FIRST_LINE)) return undefined
  const texts: Buffer[] = []
  let from = FIRST_LINE.length
  for (let end = bytes.indexOf(NEW_LINE, from); end >= 0; end = bytes.indexOf(NEW_LINE, from)) {
    // The comma before the next part is not its own.
    texts.push(bytes.subarray(from, bytes[end - 1] === COMMA ? end - 1 : end))
    from = end + 1
  }
  return { texts, rest: decodeManifest(Buffer.concat([Buffer.from(OPENING), bytes.subarray(from)])) }
}

/** The files in their order, part by part. Pure. */
export function* filesByPart(files: ManifestFiles): Generator<ManifestFiles> {
  let from = 0
  for (const [index, [name]] of files.entries()) {
    const next = index + 1
    const length = next - from
    const isEnd = length === PART_FILES.most || (length >= PART_FILES.least && endsPart(name))
    if (!isEnd && next < files.length) continue
    yield files.slice(from, next)
    from = next
  }
}

/** FNV-1a, and the last steps of MurmurHash3: by itself the former hardly tells apart names that differ at their ends. */
function endsPart(name: string): boolean {
  let hash = 0x811c9dc5
  for (let index = 0; index < name.length; index++) hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) % NAMES_PER_END === 0
}
