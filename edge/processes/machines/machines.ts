/**
 * What machines read: a page as Markdown for those who ask for it (`Accept: text/markdown`), and for a drop that has none
 * of its own `/llms.txt` and `/robots.txt`.
 *
 *   hit:     headers are in memory, and mostly the bytes
 *   miss:    made in a thread of low priority within a budget, once per content and host, and kept as bytes by name
 *   failing: what cannot be made is remembered, and the page is sent as it is; nothing is tried twice
 */
import type { BlobStore } from '../../../shared/blobs/blob-store.ts'
import { addressOf } from '../../../shared/settings/settings.ts'
import { isPage, type ManifestFile } from '../../../shared/contracts/manifest.ts'
import type { SiteRoute } from '../../../shared/contracts/route-record.ts'
import { encodePath } from '../../../shared/content/path-pattern.ts'
import type { Drop, Exchange, Intent, SiteIndex } from '../../context.ts'
import { assetHeaders } from '../../rewrite/headers.ts'
import { describeVariant, type Representation } from '../../send/representation.ts'
import { bytesOfRecord, type BlobCache } from '../../store/blob-cache.ts'
import type { Sites } from '../../store/sites.ts'
import { MAX_LISTED_PAGES } from './llms-txt.ts'
import { isCard, LLMS_PATH, markdownBeside, ROBOTS_PATH, robotsTxt, shownPath } from './rules.ts'
import { createTexts, type WantedText } from './texts.ts'

type Asset = Extract<Intent, { kind: 'asset' }>

export interface Machines {
  /** The page as Markdown; undefined when there is none: it is too large, or made to be hard to read. */
  markdown(drop: Drop, asset: Asset, exchange: Exchange): Promise<Representation | undefined> | Representation
  /** Stands at a path where the drop has nothing of its own; undefined where nothing does. */
  generated(drop: Drop, exchange: Exchange): Promise<Representation | undefined> | undefined
  close(): Promise<void>
}

export interface MachinesDependencies {
  readonly blobs: Pick<BlobStore, 'read' | 'stream'>
  readonly cache: BlobCache
  readonly sites: Sites
  readonly publicPort: number | undefined
}

/** Larger pages are lists and dumps, and are sent as they are. */
const MAX_SOURCE_BYTES = 2_000_000
/** The beginning of a page has its title. */
const HEAD_BYTES = 8192

const MARKDOWN = 'text/markdown; charset=utf-8'
const PLAIN = 'text/plain; charset=utf-8'

export function createMachines({ blobs, cache, sites, publicPort }: MachinesDependencies): Machines {
  const texts = createTexts(cache)
  const reading = { blobs, cache }
  const indexOf = async (manifest: string): Promise<SiteIndex> => sites.get(manifest) ?? sites.load(manifest)
  const addressesAt =
    (host: string) =>
    (path: string): string =>
      addressOf({ publicPort }, host) + encodePath(shownPath(path))

  /** Control drew it when the drop was published; here it is a blob like any other. */
  async function card(drop: Drop, [hash, size]: NonNullable<SiteRoute['card']>): Promise<Representation> {
    const file: ManifestFile = { hash, size, type: 'image/png' }
    const facts = { file, status: 200, custom: [], encoding: 'identity', snippets: undefined } as const
    const headers = ['accept-ranges', 'bytes', ...assetHeaders({ ...drop, ...facts, hasMarkdown: false }).flat()]
    return describeVariant(headers, size, false, bytesOfRecord(reading, file))
  }

  return {
    async markdown(drop, asset, exchange) {
      const index = await indexOf(drop.route.manifest!)
      const wanted = pageWanted(reading, asset, index, addressesAt(exchange.host))
      return wanted && texts.represent(drop, wanted, exchange, asset)
    },

    generated(drop, exchange) {
      const { route } = drop
      if (exchange.target === ROBOTS_PATH) {
        const text = robotsTxt(route.ai)
        return text === undefined ? undefined : texts.represent(drop, plainWanted(text), exchange)
      }
      if (isCard(exchange.target))
        return drop.isProtected || route.card === undefined ? undefined : card(drop, route.card)
      const { manifest } = route
      if (exchange.target !== LLMS_PATH || route.llms_txt === false || manifest === null) return undefined
      return indexOf(manifest).then((index) => {
        const about = { manifest, host: exchange.host, addressOf: addressesAt(exchange.host) }
        return texts.represent(drop, listWanted(reading, index, about), exchange)
      })
    },

    close: texts.close,
  }
}

type Reading = Pick<MachinesDependencies, 'blobs' | 'cache'>

function pageWanted(
  { blobs, cache }: Reading,
  asset: Asset,
  index: SiteIndex,
  addressOfPage: (path: string) => string,
): WantedText | undefined {
  const beside = markdownBeside(asset, index)
  const { hash, size } = beside ?? asset.file
  if (size > MAX_SOURCE_BYTES) return undefined
  const kind = { type: MARKDOWN, isPage: true }
  if (beside)
    return { ...kind, name: `md ${hash}`, job: async () => ({ kind: 'source', bytes: await blobs.read(hash) }) }
  const address = addressOfPage(asset.path)
  const { type } = asset.file
  return {
    ...kind,
    name: `md ${hash} ${address}`,
    job: async () => ({ kind: 'page', bytes: cache.get(hash) ?? (await blobs.read(hash)), type, address }),
  }
}

function plainWanted(text: string): WantedText {
  return {
    name: `text ${text}`,
    type: PLAIN,
    isPage: false,
    job: async () => ({ kind: 'source', bytes: Buffer.from(text) }),
  }
}

function listWanted(
  reading: Reading,
  index: SiteIndex,
  about: { manifest: string; host: string; addressOf(path: string): string },
): WantedText {
  const pages = [...index.files].filter(([name, file]) => isListed(name, file)).toSorted(byPlace)
  const listed = pages.slice(0, MAX_LISTED_PAGES)
  return {
    name: `llms ${about.manifest} ${about.host}`,
    type: PLAIN,
    isPage: false,
    job: async () => ({
      kind: 'list',
      host: about.host,
      left: pages.length - listed.length,
      pages: await oneByOne(listed, async ([name, file]) => ({
        address: about.addressOf(name),
        head: await headOf(reading, file),
      })),
    }),
  }
}

async function headOf({ blobs, cache }: Reading, { hash, size }: ManifestFile): Promise<Uint8Array> {
  const whole = cache.get(hash)
  if (whole !== undefined) return whole.subarray(0, HEAD_BYTES)
  if (size === 0) return new Uint8Array()
  return Buffer.concat(await blobs.stream(hash, { start: 0, end: Math.min(size, HEAD_BYTES) - 1 }).toArray())
}

function isListed(name: string, file: ManifestFile): boolean {
  return isPage(file) && name !== '404.html' && !name.endsWith('/404.html')
}

/** The landing page, then what lies near the root. */
function byPlace([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  const depth = (name: string): number => (name === 'index.html' ? -1 : name.split('/').length)
  return depth(a) - depth(b) || (a < b ? -1 : 1)
}

/** Two hundred pages are not read at once. */
async function oneByOne<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  for (const item of items) results.push(await work(item))
  return results
}
