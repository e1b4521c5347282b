/** Tools that publish: a page, a site, single files of one, and content that is sent ahead. */
import { z } from 'zod'
import { errors } from '../../../shared/contracts/errors.ts'
import {
  MAX_MESSAGE_CHARS,
  MAX_NAME_CHARS,
  MAX_PASSWORD_CHARS,
  MAX_SLUG_CHARS,
  MIN_SLUG_CHARS,
} from '../../../shared/contracts/limits.ts'
import { formatOfText } from '../../drops/publishing/files/pasted-text.ts'
import type { QuickContent, QuickFile, QuickPublished } from '../../drops/sites/versions/quick-publish.ts'
import type { Propagated } from '../../drops/sites/sites.ts'
import { parse } from '../../ground/http/api.ts'
import { previewName, purge as purgeField } from '../../drops/sites/schemas.ts'
import { sideBySide } from '../../../shared/values/side-by-side.ts'
import { decodeContent } from './arguments.ts'
import { aboutClocks, sharingFields } from './drop-tools.ts'
import { defineTool, type Answer, type Call, type Tool } from './tool.ts'

/** A message of more files is better sent as a .zip. */
const MAX_FILES = 500
/** What a model reads; the report resource holds the rest. */
const MAX_SHOWN_WARNINGS = 10

const file = z.strictObject({
  path: z.string(),
  content: z.string().optional(),
  encoding: z.enum(['utf8', 'base64']).optional(),
  upload: z.string().optional(),
})
const files = z.array(file).max(MAX_FILES)

const ifVersion = z.int().nonnegative().optional()
const allowSecrets = z.boolean().optional()
const message = z.string().max(MAX_MESSAGE_CHARS).optional()
const purge = z.literal([true, 'all']).optional()
const preview = previewName.optional()

const placeFields = {
  slug: z.string().optional(),
  title: z.string().max(MAX_NAME_CHARS).optional(),
  password: z.string().min(1).max(MAX_PASSWORD_CHARS).optional(),
  ...sharingFields,
  if_version: ifVersion,
  replace: z.boolean().optional(),
}

const publishedFacts = { slug: z.string(), url: z.string(), version: z.int() }

const publishPage = defineTool({
  name: 'service_publish',
  description:
    'Publish one HTML or Markdown page, or an upload: page, .zip, PDF, image, video, text. The slug of a drop of yours updates it at the same address.',
  needs: 'publish',
  hints: 'changes',
  input: {
    content: z.string().min(1).optional(),
    format: z.enum(['html', 'markdown']).optional(),
    upload: z.string().optional().describe('Id from service_upload, instead of content'),
    ...placeFields,
    // Said once, at the tool that a model meets first; the same names mean the same at the others.
    slug: placeFields.slug.describe(`${MIN_SLUG_CHARS}-${MAX_SLUG_CHARS} of a-z, 0-9, hyphen; random if omitted`),
    if_version: ifVersion.describe('Must be live'),
    replace: placeFields.replace.describe('Other files may go'),
    allow_secrets: allowSecrets.describe('Also keys and credentials'),
    message,
    purge: purge.describe('Remove all older; all: previews too'),
    preview: preview.describe('Named preview, not live'),
  },
  output: publishedFacts,
  async run(
    {
      content,
      format,
      upload,
      if_version,
      allow_secrets,
      slug,
      title,
      password,
      replace,
      message: said,
      purge: ends,
      preview: named,
      ...access
    },
    call,
  ) {
    const rest = { slug, title, password, replace, message: said, preview: named, access }
    return published(call, 1, (progress) =>
      withContent({ content, format, upload }, call, (taken) =>
        call.services.quickPublish.publish(call.actor, {
          ...rest,
          purge: parse(purgeField, ends),
          ifVersion: if_version,
          allowSecrets: allow_secrets,
          content: taken,
          progress,
        }),
      ),
    )
  },
})

const publishFiles = defineTool({
  name: 'service_publish_files',
  description: 'Publish a whole site as one version. index.html must be at the root.',
  needs: 'publish',
  hints: 'changes',
  input: { files: files.min(1), ...placeFields, allow_secrets: allowSecrets, message, purge, preview },
  output: publishedFacts,
  async run(
    {
      files: sent,
      if_version,
      allow_secrets,
      slug,
      title,
      password,
      replace,
      message: said,
      purge: ends,
      preview: named,
      ...access
    },
    call,
  ) {
    const rest = { slug, title, password, replace, message: said, preview: named, access }
    return published(call, sent.length, (progress) =>
      withFiles(sent, call, (taken) =>
        call.services.quickPublish.publish(call.actor, {
          ...rest,
          purge: parse(purgeField, ends),
          ifVersion: if_version,
          allowSecrets: allow_secrets,
          content: { kind: 'files', files: taken },
          progress,
        }),
      ),
    )
  },
})

const editFiles = defineTool({
  name: 'service_edit_files',
  description: 'Put or delete single files of a drop as a new version; the others stay.',
  needs: 'publish',
  hints: 'changes',
  input: {
    id: z.string().describe('Slug or id'),
    put: files.optional(),
    delete: z.array(z.string()).max(MAX_FILES).optional(),
    if_version: ifVersion,
    allow_secrets: allowSecrets,
    message,
    purge,
    preview,
  },
  output: publishedFacts,
  async run(
    { id, put = [], delete: remove = [], if_version, allow_secrets, message: said, purge: ends, preview: named },
    call,
  ) {
    if (put.length + remove.length === 0) throw errors.invalidRequest('Send files to put, or paths to delete.')
    const siteId = await call.services.sites.findId(call.actor, id)
    return published(call, put.length, (progress) =>
      withFiles(put, call, (changed) =>
        call.services.quickPublish.edit(call.actor, siteId, {
          put: changed,
          remove,
          ifVersion: if_version,
          allowSecrets: allow_secrets,
          message: said,
          purge: parse(purgeField, ends),
          preview: named,
          progress,
        }),
      ),
    )
  },
})

const upload = defineTool({
  name: 'service_upload',
  description:
    'Address for a file too large for a message. PUT it there (curl -T file "put_url"), then pass the upload id to a publishing tool.',
  needs: 'publish',
  hints: 'adds',
  input: { name: z.string().min(1).max(MAX_NAME_CHARS).describe('File name') },
  output: { upload: z.string(), put_url: z.string() },
  async run({ name }, { actor, services }) {
    const { id, putUrl, maxBytes, expiresAt } = await services.contentUploads.create(actor, name)
    return { facts: { upload: id, put_url: putUrl, max_bytes: maxBytes, expires_at: expiresAt.toISOString() } }
  },
})

export const publishingTools: readonly Tool[] = [publishPage, publishFiles, editFiles, upload]

type PublishWith<Content> = (content: Content) => Promise<Propagated<QuickPublished>>

async function withContent(
  {
    content,
    format,
    upload: id,
  }: { content?: string | undefined; format?: 'html' | 'markdown' | undefined; upload?: string | undefined },
  { actor, services }: Call,
  publish: PublishWith<QuickContent>,
): Promise<Propagated<QuickPublished>> {
  if (content !== undefined && id === undefined)
    return publish({ kind: 'text', format: format ?? formatOfText(content), content })
  if (content !== undefined || id === undefined) throw errors.invalidRequest('Send either content or upload.')
  return services.contentUploads.use(actor, [id], ([sent]) => {
    if (!sent) throw errors.notFound('upload')
    return publish({ kind: 'sent', ...sent })
  })
}

async function withFiles(
  sent: z.infer<typeof files>,
  { actor, services }: Call,
  publish: PublishWith<readonly QuickFile[]>,
): Promise<Propagated<QuickPublished>> {
  const inHand = new Map<string, Buffer>()
  const ids: string[] = []
  for (const { path, content, encoding, upload: id } of sent) {
    if (content !== undefined && id === undefined) inHand.set(path, decodeContent(path, content, encoding))
    else if (content !== undefined || id === undefined)
      throw errors.invalidRequest(`"${path}": send either content or upload.`)
    else ids.push(id)
  }
  return services.contentUploads.use(actor, ids, (ahead) => {
    const byId = new Map(sideBySide(ids, ahead))
    return publish(
      sent.flatMap(({ path, upload: id }): QuickFile[] => {
        const bytes = id === undefined ? inHand.get(path) : byId.get(id)
        return bytes === undefined ? [] : [{ path, bytes }]
      }),
    )
  })
}

async function published(
  call: Call,
  total: number,
  publish: (progress: (done: number) => void) => Promise<Propagated<QuickPublished>>,
): Promise<Answer> {
  const { value, pending } = await publish((done) => call.progress(done, total + 1, 'Stored'))
  call.progress(total + 1, total + 1, 'Live')
  const { site, version, created } = value
  const { warnings } = version.report
  const drops = await call.services.sites.list(call.actor)
  return {
    facts: {
      url: version.preview === null ? site.url : (version.preview_url ?? site.url),
      ...(version.preview === null ? {} : { preview: version.preview, live: false }),
      slug: site.slug,
      id: site.id,
      version: version.version_number,
      created,
      files: version.file_count,
      ...(version.report.kept.files > 0 ? { kept: version.report.kept } : {}),
      ...(site.access_mode === 'public' ? {} : { access_mode: site.access_mode }),
      ...(version.guest_link?.url === undefined ? {} : { guest_link: version.guest_link.url }),
      warnings: warnings.slice(0, MAX_SHOWN_WARNINGS).map(({ path, line, message: words, count }) => ({
        ...(path === undefined ? {} : { path }),
        ...(line === undefined ? {} : { line }),
        message: words,
        ...(count > 1 ? { count } : {}),
      })),
      ...(warnings.length > MAX_SHOWN_WARNINGS ? { more_warnings: warnings.length - MAX_SHOWN_WARNINGS } : {}),
      ...aboutClocks(drops, call.services),
      ...(pending ? { note: 'Visible everywhere within seconds.' } : {}),
    },
  }
}
