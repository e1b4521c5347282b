/**
 * Contract 2: an immutable version. Everything that can be decided at publish time is in here;
 * a hit at the edge is a look-up. The manifest is itself a blob, named by its sha256. How a long one is laid out in its
 * bytes is in shared/content/manifest-parts.ts; it reads like any other.
 */
import { z } from 'zod'
import { sha256Hex } from './route-record.ts'

export const MANIFEST_FORMAT = 1

export const encodings = ['br', 'zstd', 'gzip'] as const
export type Encoding = (typeof encodings)[number]

const variant = z.strictObject({ hash: sha256Hex, size: z.int().nonnegative() })

/** A `<meta http-equiv=content-security-policy>`: its policy, and where its content value starts and ends. */
const metaPolicy = z.strictObject({ policy: z.string(), start: z.int().nonnegative(), end: z.int().nonnegative() })

/** Byte offsets into the identity bytes where the edge may insert its snippets. */
const injection = z.strictObject({
  /** The place just before the end of the head; in a page of frames, just before its `<frameset>`. */
  head: z.int().nonnegative(),
  /** The place just before the end of the body; null in a frameset page, which has no body. */
  body: z.int().nonnegative().nullable(),
  /** All of them hold at once, so each must allow the snippets. The first manifests knew of one, without a list. */
  csp: z.preprocess((value) => (isPlainObject(value) ? [value] : value), z.array(metaPolicy).optional()),
})

export const fileSchema = z.strictObject({
  hash: sha256Hex,
  size: z.int().nonnegative(),
  /** Value of content-type. */
  type: z.string(),
  /** The name is known to change with the content: browsers may keep the file for ever. */
  immutable: z.boolean().optional(),
  encodings: z.strictObject({ br: variant.optional(), zstd: variant.optional(), gzip: variant.optional() }).optional(),
  /** HTML pages have it, unless they were too large to be read at publish. */
  injection: injection.optional(),
  /** What was uploaded, when it is not what is served (Markdown, a page in UTF-16): its path and bytes, for export. */
  source: z.strictObject({ path: z.string(), hash: sha256Hex, size: z.int().nonnegative() }).optional(),
})

/** One `_redirects` line. `from` segments: literal, `:name` placeholder, or a final `*` splat. */
export const redirectRuleSchema = z.strictObject({
  from: z.string(),
  to: z.string(),
  status: z.union([
    z.literal(200),
    z.literal(301),
    z.literal(302),
    z.literal(303),
    z.literal(307),
    z.literal(308),
    z.literal(404),
  ]),
  /** `!`: wins over a real file. */
  force: z.boolean(),
  line: z.int().positive(),
})

export const headerRuleSchema = z.strictObject({
  from: z.string(),
  /** Header name in lower case → value; null removes a header that an earlier rule or the default set. */
  set: z.array(z.tuple([z.string(), z.string().nullable()])),
  line: z.int().positive(),
})

/** A file that a former version had and this one has not: it stays reachable for a while, for tabs that were open. */
const keptFile = z.strictObject({
  file: fileSchema,
  /** When the version that had it was replaced, in milliseconds since the epoch. */
  since: z.int().nonnegative(),
  /** The number of the last live version that had it. */
  version: z.int().positive(),
  /** Which of `kept.headers` its own version's `_headers` says about it. */
  headers: z.int().nonnegative().optional(),
})

const keptFiles = z.strictObject({
  /** Path without leading slash → file, newest first. Never a page. */
  files: z.array(z.tuple([z.string(), keptFile])),
  /** Lists of headers, each once: lower-case name → value; null removes. */
  headers: z.array(z.array(z.tuple([z.string(), z.string().nullable()]))),
})

/** Path without leading slash → file. Entries, not an object: `__proto__` is a legal file name. */
const fileList = z.array(z.tuple([z.string(), fileSchema]))

export const manifestSchema = z.strictObject({
  v: z.literal(MANIFEST_FORMAT),
  files: fileList,
  redirects: z.array(redirectRuleSchema),
  headers: z.array(headerRuleSchema),
  /** `_redirects` and `_headers` as uploaded: not served, but exported. */
  unserved: z.array(z.tuple([z.string(), variant])),
  /** What former versions had. In the manifest of the live version alone, and only where there is something. */
  kept: keptFiles.optional(),
})

export type Manifest = z.infer<typeof manifestSchema>
export type ManifestFiles = Manifest['files']
export type KeptFiles = z.infer<typeof keptFiles>
export type ManifestFile = z.infer<typeof fileSchema>
export type RedirectRule = z.infer<typeof redirectRuleSchema>
export type HeaderRule = z.infer<typeof headerRuleSchema>

/** HTML by its type. What was too large to be read, or was published before all encodings were, has no offsets. */
export function isPage({ type, injection: offsets }: Pick<ManifestFile, 'type' | 'injection'>): boolean {
  return offsets !== undefined || type.startsWith('text/html')
}

function isPlainObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Its files before all else, wherever the manifest comes from. */
export function encodeManifest({ v, files, ...rest }: Manifest): Buffer {
  return Buffer.from(JSON.stringify({ v, files, ...rest }))
}

/** Lists of files are most of a manifest: the common ones are checked by hand, in a tenth of the time that the schema takes. */
export function decodeManifest(bytes: Uint8Array): Manifest {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
  const value: unknown = JSON.parse(text)
  if (!isPlainObject(value)) return manifestSchema.parse(value)
  const { files, kept } = value as Partial<Manifest>
  const isFilesPlain = arePlainEntries(files)
  const isKeptPlain = isPlainObject(kept) && arePlainKept(kept?.files)
  const rest = manifestSchema.parse({
    ...(value as Partial<Manifest>),
    ...(isFilesPlain && { files: [] }),
    ...(isKeptPlain && { kept: { ...kept, files: [] } }),
  })
  return {
    ...rest,
    ...(isFilesPlain && { files }),
    ...(isKeptPlain && rest.kept && { kept: { ...rest.kept, files: kept!.files } }),
  }
}

/** The list of files of a manifest, or a part of it. */
export function decodeFiles(text: string): ManifestFiles {
  const files: unknown = JSON.parse(text)
  return arePlainEntries(files) ? files : fileList.parse(files)
}

function arePlainEntries(files: unknown): files is ManifestFiles {
  return Array.isArray(files) && files.every(isPlainEntry)
}

/** Whether the schema would take this entry and leave it as it is. False says nothing: the schema decides then. */
function isPlainEntry(entry: unknown): boolean {
  return Array.isArray(entry) && entry.length === 2 && typeof entry[0] === 'string' && isPlainFile(entry[1])
}

function arePlainKept(files: unknown): boolean {
  return Array.isArray(files) && files.every(isPlainKeptEntry)
}

function isPlainKeptEntry(entry: unknown): boolean {
  if (!Array.isArray(entry) || entry.length !== 2 || typeof entry[0] !== 'string' || !isPlainObject(entry[1]))
    return false
  const kept = entry[1] as Readonly<Record<string, unknown>>
  const { file, since, version, headers } = kept
  const hasHeaders = 'headers' in kept
  return (
    isPlainFile(file) &&
    isCount(since) &&
    isCount(version) &&
    version !== 0 &&
    (!hasHeaders || isCount(headers)) &&
    fieldsOf(kept) === (hasHeaders ? 4 : 3)
  )
}

function isPlainFile(value: unknown): boolean {
  if (!isPlainObject(value)) return false
  const file = value as Readonly<Record<string, unknown>>
  if (!isBytes(file) || typeof file['type'] !== 'string') return false
  // JSON has made it: all that is enumerable is its own.
  for (const key in file) if (!isPlainField(key, file[key])) return false
  return true
}

function isPlainField(key: string, value: unknown): boolean {
  switch (key) {
    case 'hash':
    case 'size':
    case 'type':
      return true
    case 'immutable':
      return typeof value === 'boolean'
    case 'encodings':
      return arePlainVariants(value)
    case 'injection':
      return isPlainInjection(value)
    default:
      return false
  }
}

function arePlainVariants(value: unknown): boolean {
  if (!isPlainObject(value)) return false
  const variants = value as Readonly<Record<string, Readonly<Record<string, unknown>>>>
  for (const encoding in variants) {
    const bytes = variants[encoding]
    const isKnown = encoding === 'br' || encoding === 'zstd' || encoding === 'gzip'
    if (!isKnown || !isPlainObject(bytes) || !isBytes(bytes!) || fieldsOf(bytes!) !== 2) return false
  }
  return true
}

/** One without policies. */
function isPlainInjection(value: unknown): boolean {
  if (!isPlainObject(value)) return false
  const injected = value as Readonly<Record<string, unknown>>
  const { head, body } = injected
  return isCount(head) && (body === null || isCount(body)) && fieldsOf(injected) === 2
}

function isBytes({ hash, size }: Readonly<Record<string, unknown>>): boolean {
  return typeof hash === 'string' && isHash(hash) && isCount(size)
}

function fieldsOf(value: object): number {
  let count = 0
  for (const _ in value) count++
  return count
}

/** A pattern would take as long as all else together. */
function isHash(text: string): boolean {
  if (text.length !== 64) return false
  for (let index = 0; index < 64; index++) {
    const code = text.charCodeAt(index)
    const isDigit = (code >= 48 && code <= 57) || (code >= 97 && code <= 102)
    if (!isDigit) return false
  }
  return true
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
