/**
 * A folder as the edge would serve it: the same look-up, rules and headers, over the files as they are on disk now.
 * Here alone the client imports from the planes, and only their pure decisions: a second copy of them would drift.
 */
import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import type { Server, ServerResponse } from 'node:http'
import path from 'node:path'
import {
  buildManifest,
  type FileFacts,
  type StoredFile,
} from '../../control/drops/publishing/manifest/manifest-builder.ts'
import { nodeHttp } from '../../shared/http/node-http.ts'
import { readSiteRules, ruleFilesOf, type InvalidLine } from '../../control/drops/publishing/manifest/site-rules.ts'
import { decodeText } from '../../control/drops/publishing/files/text-encoding.ts'
import { LANDING_PAGE } from '../../shared/content/upload-kind.ts'
import { decodeCode, encodeCode, htmlLinks } from '../../control/drops/publishing/analysis/links.ts'
import { scanHtml } from '../../control/drops/publishing/html/scan.ts'
import { markdownLanding } from '../../control/drops/publishing/intake/bundle.ts'
import { renderMarkdown } from '../../control/drops/publishing/markdown/markdown.ts'
import type { HeaderList, Intent, SiteIndex } from '../../edge/context.ts'
import { locate } from '../../edge/locate/locate.ts'
import { indexManifest } from '../../edge/locate/site-index.ts'
import { ICON_HEADERS, ICON_PATH, ICON_PNG } from '../../edge/processes/icon.ts'
import { assetHeaders, DROP_METHODS, redirectHeaders } from '../../edge/rewrite/headers.ts'
import { sendFile, type FileExchange } from '../../edge/send/file.ts'
import { describeVariant, type Representation } from '../../edge/send/representation.ts'
import { isLoopbackName } from '../../shared/http/ip.ts'
import type { ReceivedRequest } from '../../shared/http/received-request.ts'
import { pairs } from '../../shared/redis/pairs.ts'
import { digestStream, listFolder } from './folder.ts'

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

/** The folder as a drop: not protected, not a preview, and without a version yet. */
const DROP = { versionNumber: 0, isProtected: false, isPreview: false } as const

export function createDevServer({ root, spaFallback, onRequest }: DevServerOptions): Server {
  const readings: Readings = new Map()
  let latest: Promise<Snapshot> | undefined
  let takenAt = 0
  function current(): Promise<Snapshot> {
    if (latest === undefined || Date.now() - takenAt > FRESH_MS) {
      latest = readSnapshot(root, readings)
      takenAt = Date.now()
    }
    return latest
  }

  async function answer(request: ReceivedRequest, exchange: FileExchange): Promise<void> {
    // A page of a stranger can let its own name lead to this machine (DNS rebinding), and read drafts there.
    if (!isLocalAuthority(request.headers.host)) return say(exchange, 421, 'This server answers under localhost only.')
    if (request.method === 'OPTIONS') return exchange.send(204, ['allow', DROP_METHODS, ...SAFE], undefined)
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return say(exchange, 405, 'Use GET.', ['allow', DROP_METHODS])
    const fetchDest = request.headers['sec-fetch-dest']
    const snapshot = await current()
    const intent = locate(snapshot.index, {
      target: request.url,
      spaFallback,
      fetchDest: typeof fetchDest === 'string' ? fetchDest : undefined,
    })
    await act(root, snapshot, intent, request.url, exchange)
  }

  return nodeHttp.createServer((request, response) => {
    const received = request as ReceivedRequest
    const exchange = exchangeOf(received, response, (status) => onRequest?.(received.method, received.url, status))
    answer(received, exchange).catch((error: unknown) =>
      say(exchange, 500, `The folder cannot be read: ${(error as Error).message}`),
    )
  })
}

/** The names under which browsers reach this machine and no other: `localhost`, what is below it, and loopback addresses. */
function isLocalAuthority(authority: string | undefined): boolean {
  const name = /^(\[[^\]]*\]|[^:]*?)\.?(?::\d{1,5})?$/.exec(authority ?? '')?.[1]
  return name !== undefined && isLoopbackName(name.toLowerCase())
}

/** Mistakes in `_redirects` and `_headers`, as the publish report would tell them. */
export async function ruleMistakes(root: string): Promise<readonly InvalidLine[]> {
  return (await readSnapshot(root, new Map())).invalid
}

interface FileReading {
  readonly stamp: string
  readonly hash: string
  /** What a page loads. */
  readonly code: string | undefined
}

/** By path: a file is read again when its size or its time has changed. */
type Readings = Map<string, FileReading>

async function readFileOnce(root: string, name: string, readings: Readings): Promise<FileReading & { size: number }> {
  const file = path.join(root, name)
  const { size, mtimeMs } = await stat(file)
  const stamp = `${size} ${mtimeMs}`
  const known = readings.get(name)
  if (known?.stamp === stamp) return { ...known, size }
  const { sha256: hash } = await digestStream({ path: name, file })
  const code = isHtml(name) ? encodeCode(htmlLinks(name, scanHtml(await readFile(file)))) : undefined
  const reading = { stamp, hash, code }
  readings.set(name, reading)
  return { ...reading, size }
}

function isHtml(name: string): boolean {
  return /\.html?$/i.test(name)
}

/** What is said of every file, without a look at its bytes. */
const UTF8: FileFacts = { charset: 'utf-8' }

async function readSnapshot(root: string, readings: Readings): Promise<Snapshot> {
  const { found } = await listFolder(root)
  const files: StoredFile[] = []
  const codes = new Set<string>()
  for (const name of found) {
    const { hash, size, code } = await readFileOnce(root, name, readings)
    files.push({ path: name, size, hash })
    if (code !== undefined) codes.add(code)
  }
  const landing = markdownLanding(files)
  if (landing) files[files.indexOf(landing)] = { ...landing, path: LANDING_PAGE, source: landing }
  const names = new Map(files.map(({ hash, path: name }) => [hash, name]))
  const blobs = { read: (hash: string) => readFile(path.join(root, names.get(hash) ?? '')) }
  const rules = await readSiteRules(blobs, ruleFilesOf(files))
  const index = indexManifest(buildManifest({ files, factsOf: () => UTF8, loaded: decodeCode(codes), ...rules }))
  return { index, markdown: landing?.path, invalid: rules.invalid }
}

async function act(
  root: string,
  { markdown }: Snapshot,
  intent: Intent,
  target: string,
  exchange: FileExchange,
): Promise<void> {
  switch (intent.kind) {
    case 'malformed':
      return say(exchange, 400, 'The address is malformed.')
    case 'missing':
      if (target === ICON_PATH) return exchange.send(200, ICON_HEADERS, ICON_PNG)
      return say(exchange, 404, 'There is nothing at this address, and no 404.html.')
    case 'redirect': {
      const headers = ['location', intent.location, ...redirectHeaders(DROP).flat(), 'content-length', '0']
      return exchange.send(intent.status, headers, undefined)
    }
    case 'asset': {
      // A folder's own page for what is missing is no icon.
      if (intent.status === 404 && target === ICON_PATH) return exchange.send(200, ICON_HEADERS, ICON_PNG)
      const isRendered = markdown !== undefined && intent.path === LANDING_PAGE
      const body = isRendered ? await renderPage(root, markdown) : await readFile(path.join(root, intent.path))
      await sendFile(exchange, intent.status, variantOf(intent, body))
      return
    }
    default:
      return intent satisfies never
  }
}

/** The file as it is now: its ETag is that of these bytes, even where the folder was listed before they changed. */
function variantOf({ file, status, custom }: Extract<Intent, { kind: 'asset' }>, body: Buffer): Representation {
  const type = isUtf8(body) ? file.type : file.type.replace(/; charset=utf-8$/, '')
  const hash = createHash('sha256').update(body).digest('hex')
  const facts = {
    ...DROP,
    file: { ...file, type, hash },
    status,
    custom: custom.list,
    encoding: 'identity',
    snippets: undefined,
  } as const
  const headers = [...(status === 200 ? ['accept-ranges', 'bytes'] : []), ...assetHeaders(facts).flat()]
  return describeVariant(headers, body.length, false, { bytes: () => body, load: async () => body })
}

async function renderPage(root: string, source: string): Promise<Buffer> {
  return Buffer.from(renderMarkdown(decodeText(await readFile(path.join(root, source))), { filename: source }).html)
}

/** Plain http on this machine: a browser that learnt otherwise would not open it again. There is no version either. */
const NOT_HERE: ReadonlySet<string> = new Set(['strict-transport-security', 'dropway-version'])

function exchangeOf(
  request: ReceivedRequest,
  response: ServerResponse,
  onAnswer: (status: number) => void,
): FileExchange {
  function begin(status: number, headers: HeaderList): void {
    onAnswer(status)
    for (const [name, value] of pairs(headers)) if (!NOT_HERE.has(name)) response.setHeader(name, value)
    response.writeHead(status)
  }
  return {
    method: request.method,
    header(name) {
      const value = request.headers[name]
      return typeof value === 'string' ? value : undefined
    },
    send(status, headers, body) {
      begin(status, headers)
      response.end(request.method === 'HEAD' ? undefined : body)
    },
    stream(status, headers, source) {
      begin(status, headers)
      source.pipe(response)
    },
  }
}

const SAFE: HeaderList = ['x-content-type-options', 'nosniff']

function say(exchange: FileExchange, status: number, message: string, headers: HeaderList = []): void {
  const body = Buffer.from(`${message}\n`)
  const about = ['content-type', 'text/plain; charset=utf-8', 'content-length', String(body.length)]
  exchange.send(status, [...about, ...SAFE, ...headers], body)
}
