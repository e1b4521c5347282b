/** The tools that an assistant sees. Each is one call to a service; errors say what to do next. */
import { McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { clockNotices } from '../../shared/clock-notice.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import type { Manifest } from '../../shared/manifest.ts'
import type { Actor } from '../accounts/actor.ts'
import { toApiError } from '../http/failure.ts'
import type { Publishing } from '../publishing/contract.ts'
import { decodeText } from '../publishing/text-encoding.ts'
import type { QuickPublish, QuickPublished } from '../sites/quick-publish.ts'
import { siteSchema, type SiteView, versionEntrySchema, versionSchema, warningSchema } from '../sites/schemas.ts'
import type { Sites } from '../sites/sites.ts'
import type { Versions } from '../sites/versions.ts'

export interface ToolServices {
  sites: Pick<Sites, 'list' | 'get' | 'delete'>
  versions: Pick<Versions, 'list' | 'promote' | 'liveManifest'>
  quickPublish: QuickPublish
  publishing: Pick<Publishing, 'readBlob'>
  clock: Clock
  log: Log
  baseUrl: string
}

const INSTRUCTIONS = `Dropway publishes static pages at public HTTPS addresses and keeps every upload as a version.
Use service_publish for one HTML or Markdown document and service_publish_files for a site of several files.
Publish again with the same slug to update a drop: the address stays, the version number grows, older versions can be promoted again.`

/** Text files are read back up to this size, so that an answer stays readable for a model. */
const MAX_READ_BYTES = 200_000

const slug = z
  .string()
  .describe(
    'Address of the drop: 3 to 63 lower-case letters, digits and hyphens. An existing slug of yours is updated; omit it for a random one.',
  )
const id = z.string().describe('Id of the drop, begins with st_. service_list shows it.')

/** Sentences for the person: clocks that run out soon. */
const notices = z.array(z.string()).optional()

const publishedSchema = z.object({
  url: z.string(),
  id: z.string(),
  slug: z.string(),
  created: z.boolean(),
  version: versionSchema.omit({ report: true, url: true }),
  warnings: z.array(warningSchema),
  notices,
})

/** A fresh server per request, bound to who is calling. */
export function createToolServer(actor: Actor, services: ToolServices): McpServer {
  const { sites, versions, quickPublish, publishing } = services
  const answer = createAnswer(services)

  const aboutClocks = (drops: readonly SiteView[]): { notices?: string[] } => {
    const sentences = clockNotices(drops, services.baseUrl, services.clock.now())
    return sentences.length > 0 ? { notices: sentences } : {}
  }

  async function published({ site, version, created }: QuickPublished): Promise<z.infer<typeof publishedSchema>> {
    const { report, url: _, ...rest } = version
    const { url, id: siteId, slug: published } = site
    return {
      url,
      id: siteId,
      slug: published,
      created,
      version: rest,
      warnings: report.warnings,
      ...aboutClocks(await sites.list(actor)),
    }
  }
  const server = new McpServer({ name: 'dropway', title: 'Dropway', version: '1.0.0' }, { instructions: INSTRUCTIONS })

  server.registerTool(
    'service_publish',
    {
      title: 'Publish a page',
      description:
        'Publishes one HTML or Markdown document and returns its live address. With the slug of an existing drop it updates that drop and keeps the address.',
      inputSchema: z.object({
        content: z.string().min(1).describe('The whole document.'),
        format: z.enum(['html', 'markdown']).optional().describe('Guessed from the content when omitted.'),
        slug: slug.optional(),
        title: z.string().max(120).optional().describe('Title of a Markdown page and label in the dashboard.'),
        password: z.string().min(1).max(256).optional().describe('Visitors must enter it. Needs a paid plan.'),
      }),
      outputSchema: publishedSchema,
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
    },
    ({ content, format, ...rest }) =>
      answer(async () =>
        published(
          (
            await quickPublish(actor, {
              ...rest,
              content: { kind: 'text', format: format ?? guessFormat(content), content },
            })
          ).value,
        ),
      ),
  )

  server.registerTool(
    'service_publish_files',
    {
      title: 'Publish a site of several files',
      description: 'Publishes several files at once as one version. index.html must be at the root.',
      inputSchema: z.object({
        files: z
          .array(
            z.object({
              path: z.string().describe('Relative path, e.g. css/site.css'),
              content: z.string(),
              encoding: z.enum(['utf8', 'base64']).optional().describe('base64 for binary files'),
            }),
          )
          .min(1)
          .max(500),
        slug: slug.optional(),
        title: z.string().max(120).optional(),
        password: z.string().min(1).max(256).optional(),
      }),
      outputSchema: publishedSchema,
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
    },
    ({ files, ...rest }) =>
      answer(async () => {
        const content = {
          kind: 'files' as const,
          files: files.map((file) => ({ path: file.path, bytes: Buffer.from(file.content, file.encoding ?? 'utf8') })),
        }
        return published((await quickPublish(actor, { ...rest, content })).value)
      }),
  )

  server.registerTool(
    'service_list',
    {
      title: 'List drops',
      description: 'Lists the drops of the account with their address, state and views.',
      inputSchema: z.object({}),
      outputSchema: z.object({ drops: z.array(siteSchema), notices }),
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    () =>
      answer(async () => {
        const drops = await sites.list(actor)
        return { drops, ...aboutClocks(drops) }
      }),
  )

  server.registerTool(
    'service_read',
    {
      title: 'Read a drop',
      description: 'Shows a drop, the files of its live version and, for one path, the text as it was uploaded.',
      inputSchema: z.object({ id, path: z.string().optional().describe('File to read; omit it to list the files.') }),
      outputSchema: z.object({
        drop: siteSchema,
        files: z.array(z.object({ path: z.string(), size: z.int(), type: z.string() })),
        content: z.string().optional(),
      }),
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    ({ id: siteId, path }) =>
      answer(async () => {
        const drop = await sites.get(actor, siteId)
        const manifest = await versions.liveManifest(drop.id, drop.live_version_id)
        const files = (manifest?.files ?? []).map(([name, file]) => ({ path: name, size: file.size, type: file.type }))
        return { drop, files, ...(path === undefined ? {} : { content: await readText(publishing, manifest, path) }) }
      }),
  )

  server.registerTool(
    'service_versions',
    {
      title: 'List versions',
      description: 'Lists the retained versions of a drop, newest first.',
      inputSchema: z.object({ id }),
      outputSchema: z.object({ versions: z.array(versionEntrySchema) }),
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    ({ id: siteId }) => answer(async () => ({ versions: await versions.list(actor, siteId) })),
  )

  server.registerTool(
    'service_promote',
    {
      title: 'Promote a version',
      description: 'Makes a retained version live again at the same address (roll back or forward).',
      inputSchema: z.object({ id, version_id: z.string().describe('Begins with v_. service_versions shows it.') }),
      outputSchema: z.object({ version: versionSchema }),
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true },
    },
    ({ id: siteId, version_id }) =>
      answer(async () => ({ version: (await versions.promote(actor, siteId, version_id)).value })),
  )

  server.registerTool(
    'service_delete',
    {
      title: 'Delete a drop',
      description:
        'Deletes a drop for good, with all its versions. Its address says "gone" from then on. Ask the person first.',
      inputSchema: z.object({ id }),
      outputSchema: z.object({ deleted: z.boolean(), id: z.string() }),
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: true },
    },
    ({ id: siteId }) =>
      answer(async () => {
        await sites.delete(actor, siteId)
        return { deleted: true, id: siteId }
      }),
  )

  return server
}

/**
 * Structured result, and the same as text for clients that show only that. What the caller can mend is said in words;
 * what is our fault is logged, and named by an id alone.
 */
function createAnswer({ clock, log }: Pick<ToolServices, 'clock' | 'log'>) {
  return async <Result extends Record<string, unknown>>(run: () => Promise<Result>) => {
    try {
      const structuredContent = await run()
      return { structuredContent, content: [textOf(JSON.stringify(structuredContent, undefined, 2))] }
    } catch (error) {
      const problem = toApiError(error, log, { method: 'POST', path: '/mcp', now: clock.now() })
      const id = problem.fields['id']
      const text = `${problem.code}: ${problem.message}${typeof id === 'string' ? ` ${id}` : ''}`
      return { isError: true, content: [textOf(text)] }
    }
  }
}

function textOf(text: string): { type: 'text'; text: string } {
  return { type: 'text', text }
}

/** HTML begins with markup; everything else reads best as Markdown. */
function guessFormat(content: string): 'html' | 'markdown' {
  return /^\s*(?:<!doctype|<html|<head|<body|<!--|<[a-z][a-z0-9-]*[\s>])/i.test(content) ? 'html' : 'markdown'
}

async function readText(
  publishing: Pick<Publishing, 'readBlob'>,
  manifest: Manifest | undefined,
  path: string,
): Promise<string> {
  const entry = manifest?.files.find(([name, file]) => name === path || file.source?.path === path)
  if (!entry) throw new ApiError(404, 'not_found', `There is no file "${path}" in the live version.`)
  const [name, file] = entry
  const source = file.source ?? { hash: file.hash, size: file.size }
  if (source.size > MAX_READ_BYTES)
    throw new ApiError(
      400,
      'invalid_request',
      `"${name}" is larger than ${MAX_READ_BYTES} bytes; fetch it from its address instead.`,
    )
  return decodeText(await publishing.readBlob(source.hash))
}
