/**
 * What a file is for one visitor: which variant, with which snippets and headers. Made once per combination and kept, so
 * that a hot request finds everything ready.
 *
 *   hit:     headers and (mostly) bytes are in memory; nothing is computed
 *   miss:    headers are composed; a page with snippets is also built and compressed, once, off the event loop
 *   evicted: bytes are read or built again under the same name; the headers stay right, names are immutable
 */
import { addAbortSignal, type Readable } from 'node:stream'
import { LRUCache } from 'lru-cache'
import { pacedStream, type BlobStore } from '../../shared/blobs/blob-store.ts'
import type { Encoding, ManifestFile } from '../../shared/contracts/manifest.ts'
import type { Drop, Exchange, HeaderList, Intent, Markup, ServedSite, Snippets } from '../context.ts'
import { chooseEncoding, prefersMarkdown } from '../rewrite/negotiate.ts'
import { cutPieces, inject, injectedPieces, sizeOf, type Piece } from '../rewrite/inject.ts'
import { assetHeaders, entityTag, markupOf } from '../rewrite/headers.ts'
import { MAX_CACHED_BYTES, MAX_ENTRY_BYTES, bytesOfRecord, type BlobCache } from '../store/blob-cache.ts'
import { describeVariant, type Representation } from '../send/representation.ts'
import { compressLive } from './compression.ts'
import type { Machines } from './machines/machines.ts'

/** Names, header lists and all. An ordinary one has some 2 kB; with a long `_headers` it has thirty. */
const MAX_PREPARED_BYTES = 32_000_000
/** What an entry costs besides its texts: four lists, a source, the cache's own books. */
const PREPARED_OVERHEAD_BYTES = 1000
/** All headers of an answer together. Common clients and proxies take no more; HTTP/2 would end the stream without a word. */
const MAX_ANSWER_HEADER_BYTES = 49_152
/** What comes out here is by experience no larger than this share of the variant that was made at publish with more effort. */
const LIVE_SIZE_FACTOR = 4 / 3

export type Asset = Extract<Intent, { kind: 'asset' }>

export interface Representations {
  /** At once when it is prepared already; a promise when it must be made. */
  of(drop: Drop, asset: Asset, exchange: Exchange): Representation | Promise<Representation>
}

export interface RepresentationDependencies {
  readonly blobs: Pick<BlobStore, 'read' | 'stream'>
  readonly cache: BlobCache
  readonly snippets: {
    for(route: ServedSite, markup: Markup, acceptLanguage: string | undefined): Snippets | undefined
    framed(markup: Markup): Snippets
    live(markup: Markup, version: number): Snippets
  }
  readonly machines: Pick<Machines, 'markdown'>
}

export function createRepresentations({
  blobs,
  cache,
  snippets,
  machines,
}: RepresentationDependencies): Representations {
  const prepared = new LRUCache<string, Representation>({
    maxSize: MAX_PREPARED_BYTES,
    sizeCalculation: ({ headers }, key) => PREPARED_OVERHEAD_BYTES + 2 * key.length + 2 * charsOf(headers),
  })
  const keyOf = createKeys()
  const blob = (hash: string): Promise<Buffer> => cache.load(hash, () => blobs.read(hash))

  async function page(file: ManifestFile, encoding: Encoding | 'identity', inserted: Snippets): Promise<Buffer> {
    const bytes = inject(cache.get(file.hash) ?? (await blob(file.hash)), file.injection, inserted)
    return encoding === 'identity' ? bytes : compressLive(bytes, encoding)
  }

  async function makePage(
    file: ManifestFile,
    encoding: Encoding | 'identity',
    inserted: Snippets,
    headers: HeaderList,
  ): Promise<Representation> {
    const name = entityTag(file, encoding, inserted)
    const load = (): Promise<Buffer> => cache.load(name, () => page(file, encoding, inserted))
    const { length } = cache.get(name) ?? (await load())
    return describeVariant(headers, length, true, { bytes: () => cache.get(name), load })
  }

  /** Too large to be kept: built while it is sent, from the stored bytes and the snippets between them. */
  async function makeStreamedPage(
    file: ManifestFile,
    inserted: Snippets,
    headers: HeaderList,
  ): Promise<Representation> {
    const read = async (start: number, end: number): Promise<Buffer> =>
      start === end ? Buffer.alloc(0) : Buffer.concat(await blobs.stream(file.hash, { start, end: end - 1 }).toArray())
    const pieces = await injectedPieces(file.size, file.injection, inserted, read)
    const stream = (range?: { start: number; end: number }): Readable =>
      pacedStream((left) =>
        chunksOf(range ? cutPieces(pieces, range) : pieces, ({ start, end }) =>
          addAbortSignal(left, blobs.stream(file.hash, { start, end: end - 1 })),
        ),
      )
    return describeVariant(headers, sizeOf(pieces), true, { stream })
  }

  function makeFile(
    file: ManifestFile,
    encoding: Encoding | 'identity',
    isPage: boolean,
    headers: HeaderList,
  ): Representation {
    const variant = encoding === 'identity' ? file : file.encodings?.[encoding]
    if (variant === undefined) throw new Error(`the manifest has no ${encoding} of ${file.hash}`)
    const { hash, size } = variant
    if (size > MAX_CACHED_BYTES)
      return describeVariant(headers, size, isPage, { stream: (range) => blobs.stream(hash, range) })
    return describeVariant(headers, size, isPage, bytesOfRecord({ blobs, cache }, variant))
  }

  function asPublished(
    drop: Drop,
    asset: Asset,
    exchange: Exchange,
    markup: Markup | undefined,
  ): Representation | Promise<Representation> {
    const { route } = drop
    const { file, status } = asset
    const custom = asset.custom.list
    const inserted = markup && snippetsFor(drop, markup, exchange)
    // Byte positions are those of the identity bytes (a range of a compressed variant is no use).
    const encoding =
      exchange.header('range') === undefined
        ? chooseEncoding(exchange.header('accept-encoding'), inserted ? keptEncodings(file) : file.encodings)
        : 'identity'
    const key = keyOf(route, asset, encoding, inserted?.key ?? '')
    const ready = prepared.get(key)
    if (ready !== undefined) return ready
    const hasMarkdown = markup !== undefined && status === 200
    const headers = [
      ...(status === 200 ? ['accept-ranges', 'bytes'] : []),
      ...assetHeaders({ ...drop, file, status, custom, encoding, snippets: inserted, hasMarkdown }).flat(),
    ]
    requireSendable(headers)
    if (inserted === undefined) {
      const made = makeFile(file, encoding, markup !== undefined, headers)
      prepared.set(key, made)
      return made
    }
    const isStreamed = encoding === 'identity' && file.size > MAX_CACHED_BYTES
    const making = isStreamed ? makeStreamedPage(file, inserted, headers) : makePage(file, encoding, inserted, headers)
    return making.then((made) => {
      prepared.set(key, made)
      return made
    })
  }

  function snippetsFor(drop: Drop, markup: Markup, exchange: Exchange): Snippets | undefined {
    if (drop.isFramed && isFrame(drop, exchange)) return snippets.framed(markup)
    if (drop.previewName !== undefined && (drop.isMember || drop.viewer !== undefined))
      return snippets.live(markup, drop.versionNumber)
    return snippets.for(drop.route, markup, exchange.header('accept-language'))
  }

  return {
    of(drop, asset, exchange) {
      const markup = markupOf({ file: asset.file, custom: asset.custom.list, isProtected: drop.isProtected })
      const isWanted = markup !== undefined && asset.status === 200 && prefersMarkdown(exchange.header('accept'))
      const markdown = isWanted ? machines.markdown(drop, asset, exchange) : undefined
      if (markdown === undefined) return asPublished(drop, asset, exchange, markup)
      if (!(markdown instanceof Promise)) return markdown
      return markdown.then((made) => made ?? asPublished(drop, asset, exchange, markup))
    },
  }
}

/** The frame by its own address, or a page that a link inside it leads to; its cookie comes with more than that. */
function isFrame(drop: Drop, exchange: Exchange): boolean {
  return drop.frameCookie !== undefined || exchange.header('sec-fetch-dest') === 'iframe'
}

/** Writes the names of prepared answers. */
function createKeys(): (
  route: ServedSite,
  asset: Asset,
  encoding: Encoding | 'identity',
  snippetsKey: string,
) => string {
  const ids = new WeakMap<ServedSite, number>()
  let nextId = 0
  /** Mostly a file is asked for as it was before: then its key need not be written again. */
  const keys = new WeakMap<ManifestFile, Key>()

  /** A route object is replaced, never changed: its identity stands for all of its settings. */
  function idOf(route: ServedSite): number {
    let id = ids.get(route)
    if (id === undefined) ids.set(route, (id = nextId++))
    return id
  }

  return function keyOf(route: ServedSite, asset: Asset, encoding: Encoding | 'identity', snippetsKey: string): string {
    const id = idOf(route)
    const { file, path, status, custom } = asset
    const last = keys.get(file)
    const isSame =
      last?.id === id &&
      last.status === status &&
      last.encoding === encoding &&
      last.snippetsKey === snippetsKey &&
      last.customId === custom.id &&
      last.path === path
    if (isSame) return last.text
    const text = `${id}|${status}|${encoding}|${snippetsKey}|${custom.id}|${path}`
    keys.set(file, { id, status, encoding, snippetsKey, customId: custom.id, path, text })
    return text
  }
}

/** What a prepared answer depends on, and its name in the cache. */
interface Key {
  readonly id: number
  readonly status: number
  readonly encoding: string
  readonly snippetsKey: string
  readonly customId: string
  readonly path: string
  readonly text: string
}

async function* chunksOf(
  pieces: readonly Piece[],
  open: (piece: { start: number; end: number }) => Readable,
): AsyncGenerator<Buffer> {
  for (const piece of pieces) {
    if ('bytes' in piece) yield piece.bytes
    else yield* open(piece) as AsyncIterable<Buffer>
  }
}

function charsOf(headers: HeaderList): number {
  let chars = 0
  for (const text of headers) chars += text.length
  return chars
}

function requireSendable(headers: HeaderList): void {
  const bytes = charsOf(headers)
  if (bytes > MAX_ANSWER_HEADER_BYTES)
    throw new Error(`an answer has ${bytes} bytes of headers; ${MAX_ANSWER_HEADER_BYTES} can be sent`)
}

/** What the cache does not keep would be compressed for every visit (0.6 s for 9 MB): such a page is sent as it is. */
function keptEncodings({ size, encodings }: ManifestFile): ManifestFile['encodings'] {
  if (size <= MAX_CACHED_BYTES || encodings === undefined) return encodings
  const kept = Object.entries(encodings).filter(([, made]) => made.size * LIVE_SIZE_FACTOR <= MAX_ENTRY_BYTES)
  return Object.fromEntries(kept)
}
