/** Shapes of the REST API for sites and versions. */
import { z } from 'zod'
import { analyticsSchema } from '../../../shared/analytics.ts'
import { MAX_BUNDLE_FILES, MAX_MESSAGE_CHARS, MAX_NAME_CHARS, MAX_PASSWORD_CHARS } from '../../../shared/limits.ts'
import { sha256Hex, siteStates } from '../../../shared/route-record.ts'

const time = z.iso.datetime()

export const siteSchema = z.object({
  id: z.string(),
  slug: z.string(),
  name: z.string(),
  title: z.string(),
  url: z.string(),
  state: z.enum(siteStates),
  access_mode: z.enum(['public', 'password']),
  has_password: z.boolean(),
  branding_enabled: z.boolean(),
  spa_fallback: z.boolean(),
  gallery: z.boolean(),
  /** Chosen to stay live when a plan ends. */
  stays_live: z.boolean(),
  analytics: analyticsSchema.nullable(),
  live_version_id: z.string().nullable(),
  expires_at: time.nullable(),
  created_at: time,
  updated_at: time,
  published_at: time.nullable(),
  views_30d: z.int(),
})
export type ApiSite = z.infer<typeof siteSchema>

export const warningSchema = z.object({
  code: z.string(),
  message: z.string(),
  path: z.string().optional(),
  line: z.int().optional(),
})
/** Looked like a secret and was not published; `allow_secrets` publishes such files all the same. */
const blockedSchema = z.object({ path: z.string(), what: z.string() })
export const reportSchema = z.object({ warnings: z.array(warningSchema), blocked: z.array(blockedSchema) })
export type PublishReport = z.infer<typeof reportSchema>

export const versionSchema = z.object({
  version_id: z.string(),
  version_number: z.int(),
  byte_size: z.int(),
  file_count: z.int(),
  message: z.string(),
  url: z.string(),
  preview_url: z.string().nullable(),
  report: reportSchema,
})
export type ApiVersion = z.infer<typeof versionSchema>

export const versionEntrySchema = versionSchema.extend({
  created_at: time,
  live: z.boolean(),
  created_by: z.string().nullable(),
  /** When it was made live again instead of which version, newest first: going back is a publish too. */
  promotions: z.array(
    z.object({ at: time, by: z.string().nullable(), from_version_number: z.number().int().nullable() }),
  ),
})
export type VersionEntry = z.infer<typeof versionEntrySchema>

export const changesSchema = z.object({
  added: z.array(z.string()),
  changed: z.array(z.string()),
  removed: z.array(z.string()),
})
export type Changes = z.infer<typeof changesSchema>

const slug = z.string().max(200)
const name = z.string().max(MAX_NAME_CHARS)

export const createSiteSchema = z.strictObject({ slug: slug.optional(), name: name.optional() })

export const patchSiteSchema = z.strictObject({
  name: name.optional(),
  slug: slug.optional(),
  password: z
    .string()
    .min(1, 'must not be empty; send null to remove it')
    .max(MAX_PASSWORD_CHARS)
    .nullable()
    .optional(),
  analytics: analyticsSchema.nullable().optional(),
  spa_fallback: z.boolean().optional(),
  gallery: z.boolean().optional(),
})
export type SitePatch = z.infer<typeof patchSiteSchema>

export const chooseSchema = z.strictObject({ site_ids: z.array(z.string()) })

export const message = z.string().max(MAX_MESSAGE_CHARS)
/** A field of a form: `true` publishes files that look like secrets. */
export const allowSecrets = z
  .enum(['true', 'false'])
  .optional()
  .transform((value) => value === 'true')
/** Number of the version that the publisher believes to be live; 0 for none yet. */
export const ifVersion = z.int().nonnegative()

const fileList = z
  .array(z.strictObject({ path: z.string(), sha256: sha256Hex, size: z.int().nonnegative() }))
  .min(1)
  .max(MAX_BUNDLE_FILES)

export const startUploadSchema = z.strictObject({
  files: fileList,
  message: message.optional(),
  if_version: ifVersion.optional(),
  spa_fallback: z.boolean().optional(),
  allow_secrets: z.boolean().optional(),
})
export type StartUpload = z.infer<typeof startUploadSchema>

export const uploadSchema = z.object({
  upload_id: z.string(),
  missing: z.array(sha256Hex),
  unchanged: z.boolean(),
  expires_at: time,
})

export type StartedUpload = z.infer<typeof uploadSchema>

/** What is not there yet; `arrived` tells the bytes of files that came in part. */
export const uploadProgressSchema = z.object({
  upload_id: z.string(),
  missing: z.array(sha256Hex),
  arrived: z.record(sha256Hex, z.int()),
  expires_at: time,
})

export type UploadProgress = z.infer<typeof uploadProgressSchema>

export const storedBlobsSchema = z.object({ stored: z.array(sha256Hex) })

/** `slug` of a drop that you have, or of one that would be made; `site_id` wins; without both a new drop. */
export const checkUploadSchema = z.strictObject({
  site_id: z.string().optional(),
  slug: slug.optional(),
  files: fileList,
})
export type CheckUpload = z.infer<typeof checkUploadSchema>

export const uploadCheckSchema = changesSchema.extend({
  /** Null when the drop would be made. */
  site: z.object({ id: z.string(), slug: z.string() }).nullable(),
  unchanged: z.boolean(),
  /** What would have to be sent. */
  missing: z.object({ file_count: z.int(), byte_size: z.int() }),
})

export type UploadCheck = z.infer<typeof uploadCheckSchema>

export const usageSchema = z.object({
  plan: z.string(),
  drops: z.object({ used: z.int(), limit: z.int() }),
  storage_bytes: z.object({ used: z.int(), limit: z.int() }),
  custom_domains: z.object({ used: z.int(), limit: z.int() }),
  upload_bytes: z.object({ limit: z.int() }),
  versions_per_drop: z.object({ limit: z.int() }),
  paused_drops: z.int(),
  views_30d: z.int(),
})

export const dailyViewsSchema = z.object({
  days: z.array(z.object({ day: z.string(), count: z.int() })),
  total: z.int(),
})
