/**
 * What a client can read without a tool: guides, and of every drop its facts, its report and its files.
 *   dropway://guides/<name>   dropway://drops/<slug>   dropway://drops/<slug>/report   dropway://drops/<slug>/files/<path>
 */
import { ResourceNotFoundError, type ReadResourceResult, type Resource } from '@modelcontextprotocol/server'
import { ApiError } from '../../../shared/contracts/errors.ts'
import type { Actor } from '../../ground/actor.ts'
import { decodeText } from '../../drops/publishing/files/text-encoding.ts'
import { uploadedFiles } from '../../drops/sites/versions/uploaded-files.ts'
import { CARD_URI, cardResource, readCard } from './card/result-card.ts'
import { dropFacts } from './drop-tools.ts'
import { TOOL_GUIDES, type Guide } from './guides.ts'
import type { ToolServices } from './tool.ts'

const DROPS_PER_PAGE = 50
/** As base64 in one message; larger files are fetched from their address. */
const MAX_FILE_BYTES = 5_000_000
const JSON_TYPE = 'application/json'

export const RESOURCE_TEMPLATES = [
  {
    name: 'drop',
    uriTemplate: 'dropway://drops/{slug}',
    description: 'Facts and files of a drop',
    mimeType: JSON_TYPE,
  },
  {
    name: 'report',
    uriTemplate: 'dropway://drops/{slug}/report',
    description: 'What the last publish found',
    mimeType: JSON_TYPE,
  },
  { name: 'file', uriTemplate: 'dropway://drops/{slug}/files/{+path}', description: 'A file as it was uploaded' },
]

export interface Resources {
  list(cursor: string | undefined): Promise<{ resources: Resource[]; nextCursor?: string }>
  /** Throws the protocol's own error when there is no such resource. */
  read(uri: string): Promise<ReadResourceResult>
}

export function createResources(actor: Actor, services: ToolServices): Resources {
  const { sites, versions, publishing } = services
  const guides = [...TOOL_GUIDES, ...services.guides]

  async function findDrop(uri: string, slug: string) {
    try {
      return await sites.get(actor, await sites.findId(actor, slug))
    } catch (error) {
      throw error instanceof ApiError && error.status === 404 ? new ResourceNotFoundError(uri) : error
    }
  }

  const textOf = (uri: string, mimeType: string, text: string): ReadResourceResult => ({
    contents: [{ uri, mimeType, text }],
  })

  async function readDrop(uri: string, slug: string, part: string | undefined): Promise<ReadResourceResult> {
    const drop = await findDrop(uri, slug)
    const manifest = await versions.liveManifest(drop.id, drop.live_version_id)
    if (part === undefined) {
      const files = [...uploadedFiles(manifest)].map(([path, { size }]) => ({ path, size }))
      return textOf(uri, JSON_TYPE, JSON.stringify({ ...dropFacts(drop), files }))
    }
    if (part === 'report') {
      const live = (await versions.list(actor, drop.id)).find((version) => version.live)
      return textOf(uri, JSON_TYPE, JSON.stringify(live?.report ?? { warnings: [], blocked: [] }))
    }
    const path = /^files\/(.+)$/s.exec(part)?.[1]
    const file = path === undefined ? undefined : uploadedFiles(manifest).get(path)
    if (!file || file.size > MAX_FILE_BYTES) throw new ResourceNotFoundError(uri)
    const bytes = await publishing.readBlob(file.hash)
    const mimeType = manifest?.files.find(([name]) => name === path)?.[1].type ?? 'text/plain'
    return bytes.subarray(0, 8000).includes(0)
      ? { contents: [{ uri, mimeType, blob: bytes.toString('base64') }] }
      : textOf(uri, mimeType, decodeText(bytes))
  }

  return {
    async list(cursor) {
      const from = Number(cursor ?? 0)
      const all = await sites.list(actor)
      const end = from + DROPS_PER_PAGE
      const told = from === 0 ? [cardResource(services.config), ...guides.map(guideResource)] : []
      const drops = all.slice(from, end).flatMap(({ slug, name, title }): Resource[] => [
        { uri: `dropway://drops/${slug}`, name: slug, title: name || title || slug, mimeType: JSON_TYPE },
        { uri: `dropway://drops/${slug}/report`, name: `${slug} report`, mimeType: JSON_TYPE },
      ])
      return { resources: [...told, ...drops], ...(all.length > end ? { nextCursor: String(end) } : {}) }
    },

    async read(uri) {
      if (uri === CARD_URI) return readCard(services.config)
      const [, kind, name = '', part] = /^dropway:\/\/(guides|drops)\/([^/]+)(?:\/(.+))?$/s.exec(uri) ?? []
      if (kind === 'drops') return readDrop(uri, decoded(uri, name), part && decoded(uri, part))
      const guide = guides.find((candidate) => candidate.name === name)
      if (kind === undefined || !guide || part !== undefined) throw new ResourceNotFoundError(uri)
      return textOf(uri, 'text/markdown', guide.text)
    },
  }
}

function guideResource({ name, title }: Guide): Resource {
  return { uri: `dropway://guides/${name}`, name, title, mimeType: 'text/markdown' }
}

function decoded(uri: string, text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new ResourceNotFoundError(uri)
  }
}
