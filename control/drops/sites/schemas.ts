/** Shapes of the REST API for sites and versions. */
import { z } from 'zod'
import { analyticsSchema } from '../../../shared/contracts/analytics.ts'
import {
  MAX_BUNDLE_FILES,
  MAX_MESSAGE_CHARS,
  MAX_NAME_CHARS,
  MAX_PASSWORD_CHARS,
} from '../../../shared/contracts/limits.ts'
import { isPreviewName, MAX_PREVIEW_NAME_CHARS } from '../../../shared/http/hosts.ts'
import { aiUses, previewAccesses } from './rules.ts'
import { sha256Hex, siteStates } from '../../../shared/contracts/route-record.ts'
import {
  ACCESS_MODES,
  accessFields,
  accessFormFields,
  accessModeSchema,
  accessUntilSchema,
  expiresInSchema,
} from '../viewers/access.ts'
import { guestLinkSchema } from '../viewers/schemas.ts'
import { THREAD_MAILS, THREADS_VISIBLE } from '../threads/rules.ts'
import { resolves } from '../threads/schemas.ts'
import { described } from '../../ground/http/operations/described.ts'

const SAMPLE_TIME = '2026-11-15T09:00:00.000Z'
/** The SHA-256 of `hello`, as an example. */
export const SAMPLE_SHA256 = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824'

const time = (description: string) => described(z.iso.datetime(), description, SAMPLE_TIME)
const timeOrNull = (description: string, example: string | null = SAMPLE_TIME) =>
  described(z.iso.datetime().nullable(), description, example)
const count = (description: string, example: number) => described(z.int(), description, example)

const siteId = described(z.string(), 'Id of the site.', 'st_4f9kq2m7x1')
const siteSlug = described(z.string(), 'The name in its address.', 'my-page')
const siteUrl = described(z.string(), 'Its address.', 'https://my-page.dropway.example')

const keptSchema = z.object({
  files: count('How many files of former versions stay reachable for tabs that were open.', 3),
  bytes: count('Their size.', 48_000),
  until: timeOrNull('When the last of them goes; null where there is none.'),
})
const LLMS_TXT_SAYS = 'Machines find a list of its pages at /llms.txt, where it has no such file of its own.'
const AI_SAYS =
  'What machines may do with it: `allow` everything, `no-training` (Content-Signal: ai-train=no), `none` (ai-train=no, ai-input=no). Said in /robots.txt where it has none of its own.'
const CARD_SAYS =
  'A picture with its title is shown where its address is shared: pages without an og:image of their own name it, and nothing else of them changes. Never while not everyone may see the drop.'
const NOTHING_KEPT_SAMPLE = { files: 0, bytes: 0, until: null }

export const siteSchema = z
  .object({
    id: siteId,
    slug: siteSlug,
    name: described(z.string(), 'Your label; empty when none was given.', 'My page'),
    title: described(z.string(), 'Title of the live page.', 'Hello'),
    url: siteUrl,
    state: described(z.enum(siteStates), 'What visitors meet.', 'live'),
    access_mode: described(z.enum(ACCESS_MODES), 'Who can open it.', 'public'),
    has_password: described(z.boolean(), 'Visitors are asked for a password.', false),
    access_until: timeOrNull('When visitors meet 410, whatever its clock says; null for never.', null),
    access_requests: described(z.boolean(), 'Who is not on the list of viewers may ask you to be let in.', true),
    viewer_admission: described(
      z.string().nullable(),
      'How long a browser is let in; null: as long as the service says.',
      null,
    ),
    branding_enabled: described(z.boolean(), 'The small badge is shown.', false),
    spa_fallback: described(z.boolean(), 'Unknown paths serve index.html.', false),
    gallery: described(z.boolean(), 'May be shown in the gallery.', false),
    stays_live: described(z.boolean(), 'Chosen to stay live when a plan ends.', false),
    analytics: described(analyticsSchema.nullable(), 'Providers that count visits.', null),
    live_version_id: described(z.string().nullable(), 'The version that visitors see.', 'v_8s2kd91mz0'),
    expires_at: timeOrNull('When its clock ends it; null without a clock.', null),
    created_at: time('When the slug was reserved.'),
    updated_at: time('When settings or content last changed.'),
    published_at: timeOrNull('When content last went live.'),
    views_30d: count('Views of the last 30 days.', 128),
    previews: described(
      z.enum(previewAccesses),
      'Who may see versions that are not live: whoever has the `link`, `members` of the organisation, or no one (`off`).',
      'link',
    ),
    threads_visible: described(
      z.enum(THREADS_VISIBLE),
      'Who sees comments besides members: who may comment, or everyone who was let in (`viewers`).',
      'commenters',
    ),
    thread_mails: described(z.enum(THREAD_MAILS), 'How soon the owner is mailed what others wrote.', 'hourly'),
    keep_old_files_days: described(
      z.int().nullable(),
      "How many days files of former versions stay reachable; null: the service's setting, 0: not at all.",
      null,
    ),
    llms_txt: described(z.boolean(), LLMS_TXT_SAYS, true),
    ai: described(z.enum(aiUses), AI_SAYS, 'allow'),
    card: described(z.boolean(), CARD_SAYS, false),
    card_url: described(z.string().nullable(), 'Where that picture is; null while there is none.', null),
    kept: described(keptSchema, 'Files of former versions that are reachable now.', NOTHING_KEPT_SAMPLE),
  })
  .meta({ id: 'Site' })
export type ApiSite = z.infer<typeof siteSchema>

export const warningSchema = z
  .object({
    code: described(z.string(), 'What kind of remark this is.', 'missing_page'),
    message: described(
      z.string(),
      'The remark in words.',
      'The link to /team leads nowhere: there is no such page in the upload.',
    ),
    path: described(z.string(), 'The file it is about, or the first of them.', 'about.html').optional(),
    line: z.int().optional(),
    count: count('How many files it is about: there is one remark for each code and target.', 1),
  })
  .meta({ id: 'Warning' })
const blockedSchema = z.object({
  path: described(z.string(), 'A file that looked like a secret and was not published.', '.env'),
  what: described(z.string(), 'What it looks like.', 'settings with passwords'),
})
export const reportSchema = z
  .object({
    warnings: described(z.array(warningSchema), 'What should be looked at.', []),
    blocked: described(
      z.array(blockedSchema),
      'Looked like secrets and were not published; `allow_secrets` publishes such files all the same.',
      [],
    ),
    kept: described(
      keptSchema,
      'Files of former versions that stayed reachable when this one went live; `purge` removes them.',
      NOTHING_KEPT_SAMPLE,
    ),
  })
  .meta({ id: 'Report', description: 'What a publish has to say about its content.' })
export type PublishReport = z.infer<typeof reportSchema>

export const versionSchema = z
  .object({
    version_id: described(z.string(), 'Id of the version.', 'v_8s2kd91mz0'),
    version_number: count('Number within its site.', 2),
    byte_size: count('Size of all files.', 2048),
    file_count: count('How many files it has.', 1),
    message: described(z.string(), 'What the publisher said about it.', 'New opening hours'),
    url: siteUrl,
    preview_url: described(
      z.string().nullable(),
      'An address that shows this version, live or not, and that no one guesses; null where previews are off.',
      'https://2-k3j5x7q2m4pa--my-page.dropway.example',
    ),
    preview: described(
      z.string().nullable(),
      'The named preview that it was published to; null where it went live.',
      null,
    ),
    report: reportSchema,
    guest_link: guestLinkSchema.optional(),
  })
  .meta({ id: 'Version' })
export type ApiVersion = z.infer<typeof versionSchema>

export const previewSchema = z
  .object({
    name: described(z.string(), 'Its name.', 'pr-12'),
    url: described(
      z.string().nullable(),
      'Its address; null where previews are off.',
      'https://pr-12--my-page.dropway.example',
    ),
    version_id: described(z.string(), 'The version that it shows.', 'v_8s2kd91mz0'),
    version_number: count('Its number.', 7),
    file_count: count('How many files it has.', 12),
    byte_size: count('Their size.', 20_480),
    message: described(z.string(), 'What the publisher said about it.', 'Try the new header'),
    live: described(z.boolean(), 'Visitors of the drop see the same version.', false),
    published_at: time('When it was last published to.'),
    expires_at: time('When it goes, unless it is published to again.'),
  })
  .meta({ id: 'Preview' })
export type ApiPreview = z.infer<typeof previewSchema>

export const passSchema = z.object({
  expires_at: time('Until when it is believed.'),
})

const promotionSchema = z.object({
  at: time('When it was made live again.'),
  by: described(z.string().nullable(), 'Who did it.', 'you@example.com'),
  from_version_number: described(z.number().int().nullable(), 'The version that was live before.', 3),
})

const sourceSchema = z.object({
  provider: described(z.string(), 'The kind of forge.', 'github'),
  repository: described(z.string(), 'Whose workflow it was.', 'example/site'),
  workflow: described(z.string(), "The workflow file's name.", 'deploy.yml'),
  commit: described(z.string(), 'What was built.', '3f2a9c1d5e7b8a90f1e2d3c4b5a697887766554f'),
  actor: described(z.string(), 'Who started it, at the forge.', 'octocat'),
  url: described(
    z.string().nullable(),
    'Where the commit can be looked at.',
    'https://github.com/example/site/commit/3f2a9c1',
  ),
})

export const versionEntrySchema = versionSchema
  .extend({
    source: described(sourceSchema.nullable(), 'The run of a trusted workflow that published it; else null.', null),
    created_at: time('When it was published.'),
    live: described(z.boolean(), 'Visitors see this one.', true),
    created_by: described(z.string().nullable(), 'Who published it.', 'you@example.com'),
    promotions: described(
      z.array(promotionSchema),
      'When it was made live again instead of which version, newest first: going back is a publish too.',
      [],
    ),
  })
  .meta({ id: 'VersionEntry' })
export type VersionEntry = z.infer<typeof versionEntrySchema>

export const changesSchema = z.object({
  added: described(z.array(z.string()), 'Paths that would be new.', ['contact.html']),
  changed: described(z.array(z.string()), 'Paths with other content.', ['index.html']),
  removed: described(z.array(z.string()), 'Paths that would be gone.', []),
})
export type Changes = z.infer<typeof changesSchema>

const slug = described(
  z.string().max(200),
  '3 to 63 characters: lowercase letters, digits and hyphens. Random when left out.',
  'my-page',
)
const name = described(z.string().max(MAX_NAME_CHARS), 'A label for you.', 'My page')

export const createSiteSchema = z.strictObject({ slug: slug.optional(), name: name.optional() })

export const patchSiteSchema = z.strictObject({
  name: name.optional(),
  slug: described(z.string().max(200), 'A new address; the old one redirects for a while.').optional(),
  password: described(
    z.string().min(1, 'must not be empty; send null to remove it').max(MAX_PASSWORD_CHARS).nullable(),
    'What visitors are asked for; null removes it.',
  ).optional(),
  analytics: described(analyticsSchema.nullable(), 'Providers that count visits; null removes them.').optional(),
  spa_fallback: described(z.boolean(), 'Unknown paths serve index.html.', true).optional(),
  gallery: described(z.boolean(), 'May be shown in the gallery.').optional(),
  previews: described(
    z.enum(previewAccesses),
    'Who may see versions that are not live, named previews too: whoever has the `link`, `members`, or no one (`off`).',
  ).optional(),
  threads_visible: described(
    z.enum(THREADS_VISIBLE),
    'Who sees comments besides members: who may comment, or everyone who was let in (`viewers`).',
  ).optional(),
  thread_mails: described(z.enum(THREAD_MAILS), 'How soon the owner is mailed what others wrote.').optional(),
  keep_old_files_days: described(
    z.int().min(0).max(365).nullable(),
    "How many days a file that a new version lacks stays reachable, for tabs that are open; 0: not at all, null: the service's setting.",
  ).optional(),
  llms_txt: described(z.boolean(), LLMS_TXT_SAYS).optional(),
  ai: described(z.enum(aiUses), AI_SAYS).optional(),
  card: described(z.boolean(), CARD_SAYS).optional(),
  access_mode: accessModeSchema.optional(),
  access_until: accessUntilSchema.optional(),
  expires_in: expiresInSchema.optional(),
  access_requests: described(z.boolean(), 'Who is not on the list of viewers may ask you to be let in.').optional(),
  viewer_admission: described(
    z.string().max(40).nullable(),
    'How long a browser is let in, at most as long as the service says; null for that.',
    '7d',
  ).optional(),
})
export type SitePatch = z.infer<typeof patchSiteSchema>

export const chooseSchema = z.strictObject({
  site_ids: described(z.array(z.string()), 'At most as many as stay live when the plan ends.', ['st_4f9kq2m7x1']),
})

export const message = described(
  z.string().max(MAX_MESSAGE_CHARS),
  'What changed; shown with the version.',
  'New opening hours',
)
/** A field of a form: `true` publishes files that look like secrets. */
export const allowSecrets = z
  .enum(['true', 'false'])
  .optional()
  .transform((value) => value === 'true')
/** Number of the version that the publisher believes to be live; 0 for none yet. */
export const ifVersion = z.int().nonnegative()

/** `true`: older versions and what is kept of them go; `all`: named previews too. */
export const PURGES = ['true', 'false', 'all'] as const
const PURGE_SAYS =
  'Removes everything older with this publish: former versions, their previews and their kept files. `all`: named previews too.'
/** A field of a form, or a value of JSON. */
export const purge = z
  .union([z.boolean(), z.enum(PURGES)], 'send true, false or "all".')
  .optional()
  .transform((value): Purge | undefined =>
    value === 'all' ? 'all' : value === true || value === 'true' ? 'older' : undefined,
  )
export type Purge = 'older' | 'all'

const PREVIEW_RULE = `use lower-case letters, digits and single hyphens, beginning with a letter, at most ${MAX_PREVIEW_NAME_CHARS} characters.`
/** The name of a preview. */
export const previewName = described(
  z.string().refine(isPreviewName, PREVIEW_RULE),
  'Publishes to the preview of this name instead of going live; publishing again moves the name.',
  'pr-12',
)

const publishFields = {
  title: described(z.string(), 'Title of a page made from Markdown.').optional(),
  message: described(z.string().max(MAX_MESSAGE_CHARS), 'What changed; shown with the version.').optional(),
  if_version: described(
    z.int().nonnegative(),
    'Refuses (412) unless this version is live: another publish is not overwritten. 0 for none yet.',
  ).optional(),
  allow_secrets: described(z.enum(['true', 'false']), 'Publishes files that look like secrets too.').optional(),
  purge: described(z.enum(PURGES), PURGE_SAYS).optional(),
  preview: previewName.optional(),
  resolves: resolves.optional(),
  ...accessFormFields,
}

/** Read by receive.ts as they arrive; here for readers of the API. */
export const pageFormSchema = z.object({
  as: described(
    z.enum(['page', 'document']),
    'Comes before the file, or in the query. Without it, or with `page`, the file is .html, .htm, .md or .markdown; `document` takes what a small page shows: a PDF, an image, a video, a sound or a text.',
  ).optional(),
  file: described(z.file(), 'The page, or the document that a page shows. Its filename says what it is.'),
  ...publishFields,
})

export const bundleFormSchema = z.object({
  file: described(z.file(), 'A .zip with index.html at its root; instead of `files` and `paths`.').optional(),
  files: described(z.array(z.file()), 'The files of a folder, one field each.').optional(),
  paths: described(z.array(z.string()), 'The path of each file within the folder, in the order of `files`.').optional(),
  ...publishFields,
})

const fileList = described(
  z
    .array(
      z.strictObject({
        path: described(z.string(), 'Path within the site.', 'index.html'),
        sha256: described(sha256Hex, 'Of its content.', SAMPLE_SHA256),
        size: described(z.int().nonnegative(), 'In bytes.', 5),
      }),
    )
    .min(1)
    .max(MAX_BUNDLE_FILES),
  'All files of the site, changed or not.',
  [{ path: 'index.html', sha256: SAMPLE_SHA256, size: 5 }],
)

export const startUploadSchema = z.strictObject({
  files: fileList,
  message: message.optional(),
  if_version: described(ifVersion, 'Refuses (412) unless this version is live.').optional(),
  spa_fallback: described(z.boolean(), 'Unknown paths serve index.html.').optional(),
  allow_secrets: described(z.boolean(), 'Publishes files that look like secrets too.').optional(),
  purge: described(z.union([z.boolean(), z.literal('all')]), PURGE_SAYS).optional(),
  preview: previewName.optional(),
  resolves: resolves.optional(),
  ...accessFields,
})
export type StartUpload = z.infer<typeof startUploadSchema>

const uploadId = described(z.string(), 'Id of the upload.', 'up_6hd82kq0s3')
const missing = described(z.array(sha256Hex), 'What the service does not have yet.', [SAMPLE_SHA256])

export const uploadSchema = z
  .object({
    upload_id: uploadId,
    missing,
    unchanged: described(
      z.boolean(),
      'The live version, or the preview that is named, has exactly these files.',
      false,
    ),
    expires_at: time('Until when it can be finished.'),
  })
  .meta({ id: 'Upload' })

export type StartedUpload = z.infer<typeof uploadSchema>

export const uploadProgressSchema = z
  .object({
    upload_id: uploadId,
    missing,
    arrived: described(z.record(sha256Hex, z.int()), 'Bytes of files that came in part.', {}),
    expires_at: time('Until when it can be finished.'),
  })
  .meta({ id: 'UploadProgress' })

export type UploadProgress = z.infer<typeof uploadProgressSchema>

export const storedBlobsSchema = z.object({
  stored: described(z.array(sha256Hex), 'What has arrived whole.', [SAMPLE_SHA256]),
})

/**
 * `slug` of a drop that you have, or of one that would be made; `site_id` wins; without both a new drop. `alone`: the one
 * file is published by itself, as `upload` does. With `preview`, compares with that one instead of with what is live, if
 * it is there.
 */
export const checkUploadSchema = z.strictObject({
  site_id: described(z.string(), 'The site to publish to; wins over `slug`.').optional(),
  slug: described(z.string().max(200), 'Of a site that you have, or that would be made.', 'my-page').optional(),
  files: fileList,
  alone: z.boolean().optional(),
  purge: described(z.union([z.boolean(), z.literal('all')]), PURGE_SAYS).optional(),
  preview: previewName.optional(),
})
export type CheckUpload = z.infer<typeof checkUploadSchema>

export const uploadCheckSchema = changesSchema.extend({
  site: described(z.object({ id: z.string(), slug: z.string() }).nullable(), 'Null when the site would be made.', {
    id: 'st_4f9kq2m7x1',
    slug: 'my-page',
  }),
  unchanged: described(z.boolean(), 'The live version, or the preview that is named, has exactly these files.', false),
  compared_with: described(
    z.enum(['live', 'preview']).nullable(),
    'What the paths are compared with: a preview that the publish would make is compared with what is live; null when nothing is.',
    'live',
  ),
  missing: described(z.object({ file_count: z.int(), byte_size: z.int() }), 'What would have to be sent.', {
    file_count: 1,
    byte_size: 5,
  }),
})

export type UploadCheck = z.infer<typeof uploadCheckSchema>

const used = (description: string, example: { used: number; limit: number }) =>
  described(z.object({ used: z.int(), limit: z.int() }), description, example)

export const usageSchema = z.object({
  plan: described(z.string(), 'The plan of the organisation.', 'plus'),
  drops: used('Active drops; where a plan is one per person, those of all organisations that share it.', {
    used: 4,
    limit: 25,
  }),
  storage_bytes: used(
    'What all kept versions store, and uploads under way; where a plan is one per person, in all organisations that share it.',
    {
      used: 1_240_000,
      limit: 2_000_000_000,
    },
  ),
  uploads_under_way: described(
    z.object({ used: z.int(), limit: z.int(), bytes: z.int() }),
    'Uploads that are started and not published yet. Each ends 12 hours after its start; one more than the limit is refused with plan_limit.',
    { used: 1, limit: 20, bytes: 240_000 },
  ),
  custom_domains: used('Custom domains.', { used: 1, limit: 1 }),
  upload_bytes: described(z.object({ limit: z.int() }), 'The largest upload.', { limit: 100_000_000 }),
  versions_per_drop: described(z.object({ limit: z.int() }), 'Versions kept of each drop.', { limit: 10 }),
  previews_per_drop: described(z.object({ limit: z.int() }), 'Named previews of each drop.', { limit: 10 }),
  paused_drops: count('Drops that the plan does not allow at present.', 0),
  views_30d: count('Views of the last 30 days, of all drops.', 512),
})

export const dailyViewsSchema = z.object({
  days: described(z.array(z.object({ day: z.string(), count: z.int() })), 'Oldest first.', [
    { day: '2026-11-15', count: 12 },
  ]),
  total: count('Of these days.', 12),
})
