/**
 * The part of the API that the client's deploys use, in memory and over plain HTTP, for what the real service cannot be
 * made to do on cue: to lose an answer, to time out, to refuse. It takes every token and checks nothing that a test
 * does not ask for.
 */
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'

export interface StandInSite {
  readonly id: string
  readonly slug: string
  live_version_id: string | null
}

/** What happens to a call instead of its answer; `after` means that the service has done it before. */
export type Trouble =
  | { readonly kind: 'answer'; readonly status: number; readonly error: string; readonly after?: boolean }
  | { readonly kind: 'cut'; readonly after?: boolean }

export interface ServiceStandIn {
  readonly url: string
  /** `POST /sites/x/uploads`, in the order of arrival. */
  readonly calls: readonly string[]
  readonly sites: Map<string, StandInSite>
  /** Hashes of the files that have arrived, as often as they did. */
  readonly arrivals: readonly string[]
  /** Versions that were published, by site. */
  readonly published: readonly string[]
  uploadCapBytes: number
  exported: Buffer
  /** Asked for every call; undefined lets it pass. */
  trouble: (call: string) => Trouble | undefined
  /** Waited for before a call is looked at. */
  before: (call: string) => Promise<void>
  /** Of the next batch so many files are kept; then its connection breaks. */
  keepsOfNextBatch: number | undefined
  /** The token may publish and not delete. */
  keepsDrops: boolean
  /** A new upload misses what another has brought. */
  forgetsBlobs: boolean
  /** Calls that are not answered. */
  holds: (call: string) => boolean
  /** Holds nothing any more, and ends the connections of what it held. */
  letGo(): void
  /** Puts a drop there, as if it had been made before. */
  add(slug: string, live: boolean): StandInSite
  close(): Promise<void>
}

interface Upload {
  readonly siteId: string
  readonly wanted: ReadonlyMap<string, number>
  readonly stored: Set<string>
  readonly preview?: string | undefined
}

interface Answer {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

const notFound: Answer = { status: 404, body: { error: 'not_found', detail: 'It is not there.' } }

/** The field of a form. */
function previewIn(form: Buffer): string | undefined {
  return /name="preview"\r\n\r\n([^\r]*)/.exec(form.toString('latin1'))?.[1]
}

export async function startServiceStandIn(): Promise<ServiceStandIn> {
  const calls: string[] = []
  const arrivals: string[] = []
  const published: string[] = []
  const sites = new Map<string, StandInSite>()
  const uploads = new Map<string, Upload>()
  const blobs = new Set<string>()
  const previews = new Map<string, object>()
  let ids = 0

  function add(slug: string, live: boolean): StandInSite {
    const site = { id: `site_${++ids}`, slug, live_version_id: live ? `ver_${++ids}` : null }
    sites.set(site.id, site)
    return site
  }
  const shown = (site: StandInSite) => ({ ...site, name: '', url: `https://${site.slug}.example`, spa_fallback: false })
  const missingOf = ({ wanted, stored }: Upload): string[] => [...wanted.keys()].filter((hash) => !stored.has(hash))

  function store(upload: Upload, hash: string): void {
    upload.stored.add(hash)
    blobs.add(hash)
    arrivals.push(hash)
  }

  function begin(siteId: string, body: Buffer): Answer {
    const { files, preview } = JSON.parse(body.toString()) as {
      files: { path: string; sha256: string; size: number }[]
      preview?: string
    }
    const total = files.reduce((sum, { size }) => sum + size, 0)
    if (total > standIn.uploadCapBytes)
      return { status: 413, body: { error: 'upload_too_large', detail: 'The upload is too large.' } }
    const id = `upl_${++ids}`
    const wanted = new Map(files.map(({ sha256, size }) => [sha256, size]))
    uploads.set(id, {
      siteId,
      wanted,
      preview,
      stored: new Set([...wanted.keys()].filter((hash) => !standIn.forgetsBlobs && blobs.has(hash))),
    })
    const missing = missingOf(uploads.get(id)!)
    const isShown = preview === undefined ? sites.get(siteId)?.live_version_id !== null : previews.has(preview)
    const unchanged = missing.length === 0 && isShown
    return { status: 201, body: { upload_id: id, missing, unchanged, expires_at: '2999-01-01T00:00:00.000Z' } }
  }

  function finish(id: string, upload: Pick<Upload, 'siteId' | 'preview'>): Answer {
    const site = sites.get(upload.siteId)!
    uploads.delete(id)
    published.push(site.slug)
    const version = { version_id: `ver_${++ids}`, version_number: published.length, byte_size: 1, file_count: 1 }
    const { preview } = upload
    if (preview === undefined) {
      site.live_version_id = version.version_id
      return { status: 201, body: version }
    }
    const url = `https://${preview}--${site.slug}.example`
    previews.set(preview, { ...version, name: preview, url })
    return { status: 201, body: { ...version, preview, preview_url: url } }
  }

  function ofUpload(
    method: string,
    [siteId, id, , hash]: readonly string[],
    body: Buffer,
    action: string,
  ): Answer | 'cut' {
    const upload = uploads.get(id!)
    if (upload === undefined || upload.siteId !== siteId) return notFound
    if (action === 'finish') return finish(id!, upload)
    if (action === undefined)
      return {
        status: 200,
        body: { upload_id: id, missing: missingOf(upload), expires_at: '2999-01-01T00:00:00.000Z' },
      }
    if (hash !== undefined && method !== 'PUT') {
      const offset = upload.stored.has(hash) ? (upload.wanted.get(hash) ?? 0) : 0
      return { status: 200, headers: { 'upload-offset': String(offset) } }
    }
    if (hash !== undefined) return (store(upload, hash), { status: 204 })
    const names = [...body.toString('latin1').matchAll(/name="([0-9a-f]{64})"/g)].map(([, name]) => name!)
    const kept = standIn.keepsOfNextBatch
    standIn.keepsOfNextBatch = undefined
    for (const name of names.slice(0, kept)) store(upload, name)
    if (kept !== undefined) return 'cut'
    return { status: 200, body: { stored: [] } }
  }

  function ofSites(method: string, rest: readonly string[], body: Buffer): Answer | 'cut' {
    const [id, what, ...further] = rest
    if (id === undefined && method === 'GET') return { status: 200, body: [...sites.values()].map(shown) }
    if (id === undefined) {
      const { slug } = JSON.parse(body.toString()) as { slug: string }
      const isTaken = [...sites.values()].some((site) => site.slug === slug)
      if (isTaken) return { status: 409, body: { error: 'slug_taken', detail: 'The slug is taken.' } }
      return { status: 201, body: shown(add(slug, false)) }
    }
    if (id === 'check') return check(body)
    if (id === 'export') return { status: 200, body: standIn.exported }
    const site = sites.get(id)
    if (site === undefined) return notFound
    if (what === 'uploads' && further.length > 0) return ofUpload(method, [id, ...further], body, further[1]!)
    if (what === 'uploads') return begin(id, body)
    if (what === 'upload' || what === 'upload-bundle') return finish('', { siteId: id, preview: previewIn(body) })
    if (method === 'DELETE' && standIn.keepsDrops)
      return { status: 403, body: { error: 'forbidden', detail: 'This token may only publish.' } }
    if (method === 'DELETE') return (sites.delete(id), { status: 204 })
    if (what === 'previews') return { status: 200, body: [...previews.values()] }
    return { status: 200, body: what === 'versions' ? [] : shown(site) }
  }

  function check(body: Buffer): Answer {
    const { files } = JSON.parse(body.toString()) as { files: { size: number }[] }
    if (files.reduce((sum, { size }) => sum + size, 0) > standIn.uploadCapBytes)
      return { status: 413, body: { error: 'upload_too_large', detail: 'The upload is too large.' } }
    const none = { added: [], changed: [], removed: [], unchanged: false, missing: { file_count: 0, byte_size: 0 } }
    return { status: 200, body: { site: null, ...none } }
  }

  function answer(method: string, path: string, body: Buffer): Answer | 'cut' {
    const [first, ...rest] = path.replace('/api/v1/', '').split('/').map(decodeURIComponent)
    if (first === 'sites') return ofSites(method, rest, body)
    const limits = { upload_bytes: { limit: standIn.uploadCapBytes } }
    return first === 'usage' ? { status: 200, body: limits } : notFound
  }

  const held = new Set<Socket>()
  const server = http.createServer(async (request, response) => {
    const { method = '', url = '' } = request
    const call = `${method} ${url.replace('/api/v1', '')}`
    calls.push(call)
    const body = await buffer(request).catch(() => undefined)
    if (body === undefined) return
    const trouble = standIn.trouble(call)
    if (standIn.holds(call)) return void held.add(request.socket)
    await standIn.before(call)
    const answered = trouble === undefined || trouble.after ? answer(method, url, body) : undefined
    if (trouble?.kind === 'cut' || answered === 'cut') return void request.socket.destroy()
    const {
      status,
      body: content,
      headers,
    } = trouble === undefined
      ? answered!
      : { status: trouble.status, body: { error: trouble.error, detail: 'So it was asked for.' }, headers: {} }
    response.writeHead(status, headers)
    response.end(
      method === 'HEAD' || content === undefined ? '' : Buffer.isBuffer(content) ? content : JSON.stringify(content),
    )
  })
  const standIn: ServiceStandIn = {
    url: '',
    calls,
    sites,
    arrivals,
    published,
    uploadCapBytes: 1_000_000_000,
    exported: Buffer.from('PK\u0005\u0006'.padEnd(22, '\0'), 'latin1'),
    trouble: () => undefined,
    holds: () => false,
    letGo() {
      standIn.holds = () => false
      for (const socket of held) socket.destroy()
      held.clear()
    },
    before: async () => {},
    keepsOfNextBatch: undefined,
    keepsDrops: false,
    forgetsBlobs: false,
    add,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return Object.assign(standIn, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
}
