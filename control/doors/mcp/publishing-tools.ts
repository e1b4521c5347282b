/** Tools that publish: a page, a site, single files of one, and content that is sent ahead. */
import { z } from 'zod'
import { errors } from '../../../shared/contracts/errors.ts'
import { MAX_MESSAGE_CHARS, MAX_NAME_CHARS, MAX_PASSWORD_CHARS } from '../../../shared/contracts/limits.ts'
import { formatOfText } from '../../drops/publishing/files/pasted-text.ts'
import type { QuickContent, QuickFile, QuickPublished } from '../../drops/sites/versions/quick-publish.ts'
import type { Propagated } from '../../drops/sites/sites.ts'
import { parse } from '../../ground/http/api.ts'
import { previewName, purge as purgeField } from '../../drops/sites/schemas.ts'
import { MAX_THREADS_AT_ONCE } from '../../drops/threads/rules.ts'
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
/** Without its words for people: a model pays for them at each tool. */
const preview = previewName.optional().meta({ description: undefined })

const resolves = z.array(z.string()).max(MAX_THREADS_AT_ONCE).optional()

const placeFields = {
  slug: z.string().optional(),
  title: z.string().max(MAX_NAME_CHARS).optional(),
  password: z.string().min(1).max(MAX_PASSWORD_CHARS).optional(),
  ...sharingFields,
  if_version: ifVersion,
  replace: z.boolean().optional(),
}

const publishedFacts = { url: z.string(), version: z.int() }

const publish = defineTool({
  name: 'service_publish',
  title: 'Publish',
  description:
    'Publish one page (content), a site (files, index.html at the root) or an upload (page, .zip, PDF, image, video, text). The slug of a drop of yours updates it at the same address.',
  needs: 'publish',
  hints: 'publishes',
  hasCard: true,
  input: {
    content: z.string().min(1).optional(),
    format: z.enum(['html', 'markdown']).optional(),
    files: files.min(1).optional(),
    upload: z.string().optional().describe('Id from service_upload'),
    ...placeFields,
    // Said once, at the tool that a model meets first; the same names mean the same at the others.
    slug: placeFields.slug.describe('a-z, 0-9, hyphen; random if omitted'),
    if_version: ifVersion.describe('Must be live'),
    replace: placeFields.replace.describe('Other files may go'),
    allow_secrets: allowSecrets.describe('Also keys and credentials'),
    message,
    purge: purge.describe('Remove all older; all: previews too'),
    preview: preview.describe('Named preview, not live'),
    resolves: resolves.describe('Threads it mends'),
  },
  output: publishedFacts,
  run: ({ content, format, upload, files: sent, ...place }, call) =>
    publishTo(call, { content, format, upload, files: sent }, place),
})

/** The name from before service_publish took files. */
const publishFiles = defineTool({
  name: 'service_publish_files',
  title: 'Publish a site',
  description: 'Publish a whole site as one version: service_publish with files.',
  needs: 'publish',
  hints: 'publishes',
  isListed: false,
  input: { files: files.min(1), ...placeFields, allow_secrets: allowSecrets, message, purge, preview, resolves },
  output: publishedFacts,
  run: ({ files: sent, ...place }, call) => publishTo(call, { files: sent }, place),
})

/** What is published: exactly one of content, files and upload. */
interface Sent {
  readonly content?: string | undefined
  readonly format?: 'html' | 'markdown' | undefined
  readonly files?: z.infer<typeof files> | undefined
  readonly upload?: string | undefined
}

const placeSchema = z.object({ ...placeFields, allow_secrets: allowSecrets, message, purge, preview, resolves })

async function publishTo(
  call: Call,
  { files: sent, ...page }: Sent,
  {
    if_version,
    allow_secrets,
    slug,
    title,
    password,
    replace,
    message: said,
    purge: ends,
    preview: named,
    resolves: mended,
    ...access
  }: z.infer<typeof placeSchema>,
): Promise<Answer> {
  const isPage = page.content !== undefined || page.upload !== undefined
  if ((sent !== undefined) === isPage) throw errors.invalidRequest('Send exactly one of content, files and upload.')
  const wanted = {
    slug,
    title,
    password,
    replace,
    message: said,
    preview: named,
    resolves: mended,
    access,
    purge: parse(purgeField, ends),
    ifVersion: if_version,
    allowSecrets: allow_secrets,
  }
  const { quickPublish } = call.services
  return published(call, sent?.length ?? 1, (progress) =>
    sent === undefined
      ? withContent(page, call, (content) => quickPublish.publish(call.actor, { ...wanted, content, progress }))
      : withFiles(sent, call, (taken) =>
          quickPublish.publish(call.actor, { ...wanted, content: { kind: 'files', files: taken }, progress }),
        ),
  )
}

const editFiles = defineTool({
  name: 'service_edit_files',
  title: 'Edit files',
  description: 'Put or delete single files of a drop as a new version; the others stay.',
  needs: 'publish',
  hints: 'publishes',
  input: {
    id: z.string().describe('Slug or id'),
    put: files.optional(),
    delete: z.array(z.string()).max(MAX_FILES).optional(),
    if_version: ifVersion,
    allow_secrets: allowSecrets,
    message,
    purge,
    preview,
    resolves,
  },
  output: publishedFacts,
  async run(
    {
      id,
      put = [],
      delete: remove = [],
      if_version,
      allow_secrets,
      message: said,
      purge: ends,
      preview: named,
      resolves: mended,
    },
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
          resolves: mended,
          progress,
        }),
      ),
    )
  },
})

const upload = defineTool({
  name: 'service_upload',
  title: 'Upload',
  description: 'Address for a file too large for a message: curl -T file "put_url", then publish the upload id.',
  needs: 'publish',
  hints: 'adds',
  input: { name: z.string().min(1).max(MAX_NAME_CHARS) },
  async run({ name }, { actor, services }) {
    const { id, putUrl, maxBytes, expiresAt } = await services.contentUploads.create(actor, name)
    return { facts: { upload: id, put_url: putUrl, max_bytes: maxBytes, expires_at: expiresAt.toISOString() } }
  },
})

export const publishingTools: readonly Tool[] = [publish, publishFiles, editFiles, upload]

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
