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
} from '../../control/drops/publishing/manifest/manifest-builder.ts'
import { readSiteRules, ruleFilesOf, type InvalidLine } from '../../control/drops/publishing/manifest/site-rules.ts'
import { decodeText } from '../../control/drops/publishing/files/text-encoding.ts'
import { LANDING_PAGE } from '../../shared/content/upload-kind.ts'
import { markdownLanding } from '../../control/drops/publishing/intake/bundle.ts'
import { renderMarkdown } from '../../control/drops/publishing/markdown/markdown.ts'
import type { Intent, SiteIndex } from '../../edge/context.ts'
import { locate } from '../../edge/locate/locate.ts'
import { indexManifest } from '../../edge/locate/site-index.ts'
import { assetHeaders, redirectHeaders, type HeaderPairs } from '../../edge/rewrite/headers.ts'
import { evaluate } from '../../edge/send/preconditions.ts'
import type { ReceivedRequest } from '../../shared/http/received-request.ts'
import { listFolder } from './folder.ts'

/** A page asks for dozens of files at once, for which the folder is read once; no new file stays unseen for longer. */
const FRESH_MS = 300

interface Snapshot {
  readonly index: SiteIndex
  /** Rendered to the landing page, where there is no index.html. */
  readonly markdown: string | undefined
  readonly invalid: readonly InvalidLine[]
}

export interface DevServerOptions {
  readonly root: string
  readonly spaFallback: boolean
  onRequest?(method: string, target: string, status: number): void
}

interface DevAnswer {
  readonly status: number
  readonly headers: HeaderPairs
  readonly body: Buffer
}

/** The folder as a drop: not protected, not a preview, and without a version yet. */
const DROP = { versionNumber: 0, isProtected: false, isPreview: false } as const

export function createDevServer({ root, spaFallback, onRequest }: DevServerOptions): http.Server {
  let latest: Promise<Snapshot> | undefined
  let takenAt = 0
  function current(): Promise<Snapshot> {
    if (latest === undefined || Date.now() - takenAt > FRESH_MS) {
      latest = readSnapshot(root)
      takenAt = Date.now()
    }
    return latest
  }

  async function answer(request: ReceivedRequest): Promise<DevAnswer> {
    if (request.method !== 'GET' && request.method !== 'HEAD') return text(405, 'Use GET.', [['allow', 'GET, HEAD']])
    const fetchDest = request.headers['sec-fetch-dest']
    const snapshot = await current()
    const { index } = snapshot
    const intent = locate(index, {
      target: request.url,
      spaFallback,
      fetchDest: typeof fetchDest === 'string' ? fetchDest : undefined,
    })
    return act(root, snapshot, intent, request)
  }

  async function respond(request: ReceivedRequest, response: http.ServerResponse): Promise<void> {
    const { status, headers, body } = await answer(request).catch((error: unknown) =>
      text(500, `The folder cannot be read: ${(error as Error).message}`),
    )
    onRequest?.(request.method, request.url, status)
    for (const [name, value] of headers) response.setHeader(name, value)
    response.writeHead(status, { 'content-length': body.length })
    response.end(request.method === 'HEAD' ? undefined : body)
  }

  return http.createServer((request, response) => void respond(request as ReceivedRequest, response))
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
    // A hash of name, size and time stands for the content in its ETag.
    const file = { path: name, size, hash: createHash('sha256').update(`${name} ${size} ${mtimeMs}`).digest('hex') }
    files.push(file)
    facts.set(factsKey(file), { charset: 'utf-8' })
  }
  const landing = markdownLanding(files)
  if (landing) {
    files[files.indexOf(landing)] = { ...landing, path: LANDING_PAGE, source: landing }
    facts.set(factsKey({ ...landing, path: LANDING_PAGE }), { charset: 'utf-8' })
  }
  const names = new Map(files.map(({ hash, path: name }) => [hash, name]))
  const blobs = { read: (hash: string) => readFile(path.join(root, names.get(hash) ?? '')) }
  const rules = await readSiteRules(blobs, ruleFilesOf(files))
  const index = indexManifest(buildManifest({ files, facts, ...rules }))
  return { index, markdown: landing?.path, invalid: rules.invalid }
}

async function act(root: string, { markdown }: Snapshot, intent: Intent, request: ReceivedRequest): Promise<DevAnswer> {
  switch (intent.kind) {
    case 'malformed':
      return text(400, 'The address is malformed.')
    case 'missing':
      return text(404, 'There is nothing at this address, and no 404.html.')
    case 'redirect':
      return {
        status: intent.status,
        headers: local([['location', intent.location], ...redirectHeaders(DROP)]),
        body: Buffer.alloc(0),
      }
    case 'asset': {
      const { file, status } = intent
      const custom = intent.custom.list
      const isRendered = markdown !== undefined && intent.path === LANDING_PAGE
      const body = isRendered ? await renderPage(root, markdown) : await readFile(path.join(root, intent.path))
      const type = isUtf8(body) ? file.type : file.type.replace(/; charset=utf-8$/, '')
      const facts = {
        ...DROP,
        file: { ...file, type },
        status,
        custom,
        encoding: 'identity',
        snippets: undefined,
      } as const
      return asAsked(request, { status, headers: local(assetHeaders(facts)), body })
    }
    default:
      return intent satisfies never
  }
}

async function renderPage(root: string, source: string): Promise<Buffer> {
  return Buffer.from(renderMarkdown(decodeText(await readFile(path.join(root, source))), { filename: source }).html)
}

/** Conditions and a range, by the edge's own judgement. Several ranges get the whole, which is always a right answer. */
function asAsked({ headers: asked, method }: ReceivedRequest, whole: DevAnswer): DevAnswer {
  const { headers, body } = whole
  const etag = headers.find(([name]) => name === 'etag')?.[1]
  if (etag === undefined) return whole
  const ifRange = asked['if-range']
  const outcome = evaluate(
    {
      method,
      ifMatch: asked['if-match'],
      ifNoneMatch: asked['if-none-match'],
      ifRange: typeof ifRange === 'string' ? ifRange : undefined,
      range: asked.range,
    },
    { etag, size: body.length },
  )
  const empty = Buffer.alloc(0)
  switch (outcome.kind) {
    case 'whole':
      return whole
    case 'not-modified':
      return { status: 304, headers, body: empty }
    case 'precondition-failed':
      return { status: 412, headers: [], body: empty }
    case 'unsatisfiable':
      return { status: 416, headers: [['content-range', `bytes */${body.length}`]], body: empty }
    case 'ranges': {
      const [range, ...others] = outcome.ranges
      if (range === undefined || others.length > 0) return whole
      const contentRange = `bytes ${range.start}-${range.end}/${body.length}`
      return {
        status: 206,
        headers: [...headers, ['content-range', contentRange]],
        body: body.subarray(range.start, range.end + 1),
      }
    }
    default:
      return outcome satisfies never
  }
}

/** Plain http on this machine: a browser that learnt otherwise would not open it again, nor what it should not keep. */
function local(headers: HeaderPairs): HeaderPairs {
  return headers
    .filter(([name]) => name !== 'strict-transport-security' && name !== 'dropway-version')
    .map(([name, value]) => [name, name === 'cache-control' ? 'no-cache' : value])
}

function text(status: number, message: string, headers: HeaderPairs = []): DevAnswer {
  return {
    status,
    headers: [['content-type', 'text/plain; charset=utf-8'], ...headers],
    body: Buffer.from(`${message}\n`),
  }
}
