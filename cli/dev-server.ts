/**
 * A folder as the edge would serve it: the same look-up, rules and headers, over the files as they are on disk now.
 * Here alone the client imports from the planes, and only their pure decisions: a second copy of them would drift.
 */
import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import {
  buildManifest,
  factsKey,
  type FileFacts,
  type StoredFile,
} from '../control/drops/publishing/manifest/manifest-builder.ts'
import { parseSiteRules, type InvalidLine } from '../control/drops/publishing/manifest/site-rules.ts'
import { decodeText } from '../control/drops/publishing/files/text-encoding.ts'
import type { Intent, SiteIndex } from '../edge/context.ts'
import { locate } from '../edge/locate/locate.ts'
import { indexManifest } from '../edge/locate/site-index.ts'
import { assetHeaders, redirectHeaders, type HeaderList } from '../edge/rewrite/headers.ts'
import { listFolder } from './folder.ts'

/** A page asks for dozens of files at once, for which the folder is read once; no new file stays unseen for longer. */
const FRESH_MS = 300

interface Snapshot {
  readonly index: SiteIndex
  readonly invalid: readonly InvalidLine[]
}

export interface DevServerOptions {
  readonly root: string
  readonly spaFallback: boolean
  onRequest?(method: string, target: string, status: number): void
}

interface DevAnswer {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Buffer
}

/** Not protected, not a preview, and of no version yet. */
const DROP = { versionNumber: 0, isProtected: false, isPreview: false } as const

export function createDevServer({ root, spaFallback, onRequest }: DevServerOptions): http.Server {
  let snapshot: Promise<Snapshot> | undefined
  let takenAt = 0
  function current(): Promise<Snapshot> {
    if (snapshot === undefined || Date.now() - takenAt > FRESH_MS) {
      snapshot = readSnapshot(root)
      takenAt = Date.now()
    }
    return snapshot
  }

  async function answer(request: http.IncomingMessage): Promise<DevAnswer> {
    if (request.method !== 'GET' && request.method !== 'HEAD') return text(405, 'Use GET.', [['allow', 'GET, HEAD']])
    const fetchDest = request.headers['sec-fetch-dest']
    const { index } = await current()
    const intent = locate(index, {
      target: request.url!,
      spaFallback,
      fetchDest: typeof fetchDest === 'string' ? fetchDest : undefined,
    })
    return act(root, intent)
  }

  async function respond(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { status, headers, body } = await answer(request).catch((error: unknown) =>
      text(500, `The folder cannot be read: ${(error as Error).message}`),
    )
    onRequest?.(request.method!, request.url!, status)
    for (const [name, value] of headers) response.setHeader(name, value)
    response.writeHead(status, { 'content-length': body.length })
    response.end(request.method === 'HEAD' ? undefined : body)
  }

  return http.createServer((request, response) => void respond(request, response))
}

/** Mistakes in `_redirects` and `_headers`, as the publish report would tell them. */
export async function ruleMistakes(root: string): Promise<readonly InvalidLine[]> {
  return (await readSnapshot(root)).invalid
}

async function readSnapshot(root: string): Promise<Snapshot> {
  const { found } = await listFolder(root)
  const files: StoredFile[] = []
  const facts = new Map<string, FileFacts>()
  for (const name of found) {
    const { size, mtimeMs } = await stat(path.join(root, ...name.split('/')))
    // Stands for the content in its ETag.
    const file = { path: name, size, hash: createHash('sha256').update(`${name} ${size} ${mtimeMs}`).digest('hex') }
    files.push(file)
    facts.set(factsKey(file), { charset: 'utf-8' })
  }
  const read = async (name: string): Promise<string> =>
    found.includes(name) ? decodeText(await readFile(path.join(root, name))) : ''
  const rules = parseSiteRules({ redirects: await read('_redirects'), headers: await read('_headers') })
  return { index: indexManifest(buildManifest({ files, facts, ...rules })), invalid: rules.invalid }
}

async function act(root: string, intent: Intent): Promise<DevAnswer> {
  switch (intent.kind) {
    case 'malformed':
      return text(400, 'The address is malformed.')
    case 'missing':
      return text(404, 'There is nothing at this address, and no 404.html.')
    case 'redirect':
      return { status: intent.status, headers: local(redirectHeaders(intent.location, DROP)), body: Buffer.alloc(0) }
    case 'asset': {
      const { file, status } = intent
      const custom = intent.custom.list
      const body = await readFile(path.join(root, ...intent.path.split('/')))
      const type = isUtf8(body) ? file.type : file.type.replace(/; charset=utf-8$/, '')
      const facts = {
        ...DROP,
        file: { ...file, type },
        status,
        custom,
        encoding: 'identity',
        snippets: undefined,
      } as const
      return { status, headers: local(assetHeaders(facts)), body }
    }
    default:
      return intent satisfies never
  }
}

/** Plain http on this machine: a browser that learnt otherwise would not open it again, nor what it should not keep. */
function local(headers: HeaderList): HeaderList {
  return headers
    .filter(([name]) => name !== 'strict-transport-security' && name !== 'dropway-version')
    .map(([name, value]) => [name, name === 'cache-control' ? 'no-cache' : value])
}

function text(status: number, message: string, headers: HeaderList = []): DevAnswer {
  return {
    status,
    headers: [['content-type', 'text/plain; charset=utf-8'], ...headers],
    body: Buffer.from(`${message}\n`),
  }
}
