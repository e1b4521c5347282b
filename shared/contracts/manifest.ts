/**
 * Contract 2: an immutable version. Everything that can be decided at publish time is in here;
 * a hit at the edge is a look-up. The manifest is itself a blob, named by its sha256.
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

export const manifestSchema = z.strictObject({
  v: z.literal(MANIFEST_FORMAT),
  /** Path without leading slash → file. Entries, not an object: `__proto__` is a legal file name. */
  files: z.array(z.tuple([z.string(), fileSchema])),
  redirects: z.array(redirectRuleSchema),
  headers: z.array(headerRuleSchema),
  /** `_redirects` and `_headers` as uploaded: not served, but exported. */
  unserved: z.array(z.tuple([z.string(), variant])),
  /** What former versions had. In the manifest of the live version alone, and only where there is something. */
  kept: keptFiles.optional(),
})

export type Manifest = z.infer<typeof manifestSchema>
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

export function encodeManifest(manifest: Manifest): Buffer {
  return Buffer.from(JSON.stringify(manifest))
}

export function decodeManifest(bytes: Uint8Array): Manifest {
  return manifestSchema.parse(JSON.parse(Buffer.from(bytes).toString()))
}
