/** Places the comments of a drop in a version's pages. Runs in a worker thread. */
import type { BlobStore } from '../../../../shared/blobs/blob-store.ts'
import {
  align,
  CONTEXT_CHARS,
  place,
  placeWithout,
  type Alignment,
  type Anchor,
  type FoundAnchor,
  type Placed,
} from './anchors.ts'
import { figureOf, isFigureAnchor, placeFigure } from './figures.ts'
import { blocksOf, figuresOf, singleBlanks, type Block, type Figure } from './page-text.ts'

/** Bytes in the store. */
interface Stored {
  readonly hash: string
  readonly size: number
}

/** The file behind a page, and what it was made of. */
export interface PageFile extends Stored {
  readonly path: string
  readonly source?: (Stored & { readonly path: string }) | undefined
}

export interface PlaceRequest {
  readonly id: string
  /** Null: the page as a whole. */
  readonly anchor: Anchor | null
  /** Where it was found last; null when it was not in the page's own text. */
  readonly found: FoundAnchor | null
  /** Undefined when that version is no longer kept. */
  readonly before: PageFile | undefined
  /** Undefined when the version has no such page. */
  readonly after: PageFile | undefined
}

export interface PlaceAnswer {
  readonly id: string
  readonly placement: Placed['placement']
  readonly found: FoundAnchor | null
}

/** Larger pages are data that a program wrote. */
const MAX_PAGE_BYTES = 4_000_000

export async function placeAnchors(
  blobs: Pick<BlobStore, 'read'>,
  requests: readonly PlaceRequest[],
): Promise<PlaceAnswer[]> {
  const pages = createPages(blobs)
  const answers: PlaceAnswer[] = []
  for (const request of requests) answers.push(await answerTo(pages, request))
  return answers
}

/** Each page is read once, and each pair of pages compared once, however many comments are on it. */
function createPages(blobs: Pick<BlobStore, 'read'>) {
  const blocks = new Map<string, Block[]>()
  const alignments = new Map<string, Alignment>()
  const figures = new Map<string, Figure[]>()
  const sources = new Map<string, string>()
  const read = async ({ hash, size }: Stored): Promise<Buffer> =>
    size > MAX_PAGE_BYTES ? Buffer.alloc(0) : blobs.read(hash)
  async function textOf(file: Stored): Promise<Block[]> {
    const known = blocks.get(file.hash)
    if (known) return known
    const made = blocksOf(await read(file))
    blocks.set(file.hash, made)
    return made
  }
  return {
    textOf,
    async figuresOf(file: Stored): Promise<Figure[]> {
      const known = figures.get(file.hash) ?? figuresOf(await read(file))
      figures.set(file.hash, known)
      return known
    },
    async between(before: Stored, after: Stored): Promise<Alignment> {
      const key = `${before.hash} ${after.hash}`
      const known = alignments.get(key)
      if (known) return known
      const made = align(await textOf(before), await textOf(after))
      alignments.set(key, made)
      return made
    },
    async sourceOf(file: Stored): Promise<string> {
      const known = sources.get(file.hash) ?? (await read(file)).toString()
      sources.set(file.hash, known)
      return known
    },
  }
}

type Pages = ReturnType<typeof createPages>

async function answerTo(pages: Pages, { id, anchor, found, before, after }: PlaceRequest): Promise<PlaceAnswer> {
  if (!after) return { id, placement: 'gone', found: null }
  if (!anchor || (anchor.exact === '' && anchor.element === undefined)) return { id, placement: 'same', found }
  // What only a script shows is where the browser finds it.
  if (!found && before) return { id, placement: 'same', found: null }
  if (isFigureAnchor(anchor)) return { id, ...(await figurePlaced(pages, { anchor, found, before, after })) }
  const placed = await placedIn(pages, { anchor, found, before, after })
  if (!placed.at) return { id, placement: placed.placement, found: null }
  const { block, ...at } = placed.at
  return {
    id,
    placement: placed.placement,
    found: { ...anchor, ...at, ...(await sourceOf(pages, after, at.exact, block)) },
  }
}

interface Placing {
  readonly anchor: Anchor
  readonly found: FoundAnchor | null
  readonly before: PageFile | undefined
  readonly after: PageFile
}

/** An image, or another element without text. Of a page that is no longer kept, what was said of it is all there is. */
async function figurePlaced(
  pages: Pages,
  { anchor, found, before, after }: Placing,
): Promise<Pick<PlaceAnswer, 'placement' | 'found'>> {
  const wanted = found ?? anchor
  const fresh = await pages.figuresOf(after)
  const old = before && (await pages.figuresOf(before))
  const own = figureOf(old ?? fresh, wanted)
  if (!own) return { placement: 'gone', found: null }
  const { placement, at } = placeFigure(old ?? fresh, fresh, own)
  if (!at) return { placement, found: null }
  const isOther = placement === 'same' && anchor.src !== undefined && at.src !== anchor.src
  return { placement: isOther ? 'changed' : placement, found: figureFound(anchor, at, after) }
}

function figureFound(anchor: Anchor, { src, before, after, line }: Figure, { path, source }: PageFile): FoundAnchor {
  const place = source ? { file: source.path } : { file: path, line }
  return { ...anchor, src, prefix: before, suffix: after, ...place }
}

async function placedIn(pages: Pages, { anchor, found, before, after }: Placing): Promise<Placed> {
  if (!before) return placeWithout(await pages.textOf(after), found ?? anchor)
  const alignment = await pages.between(before, after)
  const placed = place(alignment, found ?? anchor) ?? placeWithout(alignment.after, anchor)
  // Words that were changed and are now as they were when the comment was made: nothing is different any more.
  const isBack = placed.at && singleBlanks(placed.at.exact) === singleBlanks(anchor.exact)
  if (placed.placement === 'same' && !isBack && placed.at) return { ...placed, placement: 'changed' }
  return placed
}

/** The uploaded file, and the line in it where that can be told. */
async function sourceOf(
  pages: Pages,
  file: PageFile,
  exact: string,
  block: number,
): Promise<Pick<FoundAnchor, 'file' | 'line'>> {
  const { path, source } = file
  if (!source) return { file: path, line: (await pages.textOf(file))[block]?.line }
  const text = await pages.sourceOf(source)
  const at = text.indexOf(exact) >= 0 ? text.indexOf(exact) : text.indexOf(exact.split(' ').slice(0, 4).join(' '))
  return { file: source.path, ...(at < 0 ? {} : { line: text.slice(0, at).split('\n').length }) }
}

/** As many as are shown at once. */
const MAX_PASSAGES = 100

/** changedPassages is what of a page was not in an earlier version of it, block by block. */
export async function changedPassages(
  blobs: Pick<BlobStore, 'read'>,
  before: PageFile | undefined,
  after: PageFile,
): Promise<Anchor[]> {
  if (before?.hash === after.hash) return []
  const pages = createPages(blobs)
  const blocks = await pages.textOf(after)
  const fresh = before ? (await pages.between(before, after)).fresh : [...blocks.keys()]
  return fresh.slice(0, MAX_PASSAGES).map((index) => ({
    exact: blocks[index]?.text ?? '',
    prefix: (blocks[index - 1]?.text ?? '').slice(-CONTEXT_CHARS),
    suffix: (blocks[index + 1]?.text ?? '').slice(0, CONTEXT_CHARS),
  }))
}

/** findAnchor says where a new comment is in the page as it is now; null where the page's own text does not have it. */
export async function findAnchor(
  blobs: Pick<BlobStore, 'read'>,
  anchor: Anchor,
  file: PageFile,
): Promise<FoundAnchor | null> {
  const pages = createPages(blobs)
  if (isFigureAnchor(anchor)) {
    const own = figureOf(await pages.figuresOf(file), anchor)
    return own ? figureFound(anchor, own, file) : null
  }
  if (anchor.exact === '') return null
  const alignment = await pages.between(file, file)
  const placed = place(alignment, anchor)
  if (!placed?.at) return null
  const { block, ...at } = placed.at
  return { ...anchor, ...at, ...(await sourceOf(pages, file, at.exact, block)) }
}
