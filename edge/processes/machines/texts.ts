/** Texts for machines, made once in a thread with a budget and kept by name. machines.ts says how they are kept and given up. */
import { LRUCache } from 'lru-cache'
import { limitKeyOfIp } from '../../../shared/http/ip.ts'
import type { Encoding, ManifestFile } from '../../../shared/contracts/manifest.ts'
import { createWorkerPool, JobStarved } from '../../../shared/running/threads/pool.ts'
import type { Drop, Exchange, HeaderList, Intent, ServedSite } from '../../context.ts'
import { chooseEncoding } from '../../rewrite/negotiate.ts'
import { assetHeaders } from '../../rewrite/headers.ts'
import { describeVariant, type Representation } from '../../send/representation.ts'
import type { BlobCache } from '../../store/blob-cache.ts'
import { compressLive } from '../compression.ts'
import type { MachineJob, MadeText } from './jobs.ts'
import { signalOf } from './rules.ts'

type Asset = Extract<Intent, { kind: 'asset' }>

/** A long article takes a tenth of it on a busy machine. */
const TIMEOUT_MS = 2000
/** A visitor of a busy machine has the page as it is before the connection counts as idle. */
const PATIENCE_MS = 18_000
/** What a busy machine could not make may succeed later; a page that is made to hold a thread up must not hold it always. */
const STARVED_TTL_MS = 60_000
const HEAP_MB = 192
/** One network holds one of them. */
const THREADS = 2
const MAX_WAITING = 200
const MAX_WAIT_MS = 4000
const IDLE_MS = 30_000
const MAX_PREPARED = 5000
const MAX_REMEMBERED_FAILURES = 2000
/** Below this the coding costs more than it saves. */
const MIN_COMPRESSED_BYTES = 1000

/** A text to be made: its name in the caches, what it is, and of what. */
export interface WantedText {
  /** Immutable: it holds the hashes of all that the text is made of. */
  readonly name: string
  readonly type: string
  /** It stands for a page of the drop. */
  readonly isPage: boolean
  job(): Promise<MachineJob>
}

export interface Texts {
  /** Undefined when it cannot be made. `asset`: the page it stands for. */
  represent(drop: Drop, wanted: WantedText, exchange: Exchange, asset?: Asset): Promise<Representation | undefined>
  close(): Promise<void>
}

export function createTexts(cache: BlobCache): Texts {
  const maker = createMaker(cache)
  const prepared = new LRUCache<string, Representation>({ max: MAX_PREPARED })
  const failed = new LRUCache<string, true>({ max: MAX_REMEMBERED_FAILURES })
  const idOf = createRouteIds()

  async function make(drop: Drop, wanted: WantedText, exchange: Exchange, asset?: Asset): Promise<Representation> {
    const { ip } = exchange
    const { size, ...facts } = await maker.factsOf(wanted, ip)
    const encoding = size < MIN_COMPRESSED_BYTES ? 'identity' : encodingFor(exchange)
    const key = `${idOf(drop.route)}|${drop.versionNumber}|${drop.isForProgram ?? false}|${asset?.custom.id ?? ''}|${encoding}|${wanted.name}`
    const ready = prepared.get(key)
    if (ready !== undefined) return ready
    const headers = headersOf(drop, wanted, { ...facts, size, encoding }, asset)
    const name = encodedName(wanted, encoding)
    const { length } = await maker.load(wanted, ip, encoding)
    const representation = describeVariant(headers, length, wanted.isPage, {
      bytes: () => cache.get(name),
      load: () => maker.load(wanted, ip, encoding),
    })
    prepared.set(key, representation)
    return representation
  }

  return {
    represent(drop, wanted, exchange, asset) {
      if (failed.has(wanted.name)) return Promise.resolve(undefined)
      return make(drop, wanted, exchange, asset).catch((error: unknown) => {
        // What could not be made in time now may be later.
        if (error instanceof JobStarved) failed.set(wanted.name, true, { ttl: STARVED_TTL_MS })
        else if (!isBusy(error)) failed.set(wanted.name, true)
        return undefined
      })
    },
    close: maker.close,
  }
}

type TextFacts = Pick<MadeText, 'hash' | 'tokens'> & { readonly size: number }

/** Makes texts, one at a time for each name. The worker's cache keeps the bytes. */
function createMaker(cache: BlobCache) {
  const pool = createWorkerPool({
    script: new URL('./machine-thread.ts', import.meta.url),
    size: THREADS,
    share: 1,
    maxHeapMb: HEAP_MB,
    maxWaiting: MAX_WAITING,
    maxWaitMs: MAX_WAIT_MS,
    idleMs: IDLE_MS,
  })
  const known = new LRUCache<string, TextFacts>({ max: MAX_PREPARED })

  async function made({ name, job }: WantedText, ip: string): Promise<Buffer> {
    const owner = limitKeyOfIp(ip)
    const { bytes, hash, tokens } = await pool.run<MadeText>(await job(), {
      timeoutMs: TIMEOUT_MS,
      patienceMs: PATIENCE_MS,
      owner,
    })
    known.set(name, { hash, tokens, size: bytes.length })
    return Buffer.from(bytes)
  }

  const whole = (wanted: WantedText, ip: string): Promise<Buffer> => cache.load(wanted.name, () => made(wanted, ip))

  return {
    async factsOf(wanted: WantedText, ip: string): Promise<TextFacts> {
      const facts = known.get(wanted.name)
      if (facts !== undefined) return facts
      await whole(wanted, ip)
      const found = known.get(wanted.name)
      if (found === undefined) throw new Error('a text was made and is not known')
      return found
    },
    async load(wanted: WantedText, ip: string, encoding: Encoding | 'identity'): Promise<Buffer> {
      const text = cache.get(wanted.name) ?? (await whole(wanted, ip))
      if (encoding === 'identity') return text
      return cache.load(encodedName(wanted, encoding), () => compressLive(text, encoding))
    },
    close: () => pool.close(),
  }
}

function encodedName({ name }: WantedText, encoding: Encoding | 'identity'): string {
  return encoding === 'identity' ? name : `${name} ${encoding}`
}

function headersOf(
  drop: Drop,
  { type, isPage }: WantedText,
  { hash, size, tokens, encoding }: TextFacts & { readonly encoding: Encoding | 'identity' },
  asset: Asset | undefined,
): HeaderList {
  const file: ManifestFile = { hash, size, type, ...ENCODINGS }
  const custom = (asset?.custom.list ?? []).filter(([name]) => !OF_THE_PAGE.has(name))
  const facts = { ...drop, file, status: 200, custom, encoding, snippets: undefined, hasMarkdown: isPage } as const
  return [
    'accept-ranges',
    'bytes',
    ...assetHeaders(facts).flat(),
    ...(isPage ? ['x-markdown-tokens', String(tokens)] : []),
    ...signalHeaders(drop.route),
  ]
}

/** Bytes of a page are not those of its Markdown: what `_headers` says of these stays with the page. */
const OF_THE_PAGE: ReadonlySet<string> = new Set([
  'content-type',
  'content-disposition',
  'content-language',
  'content-security-policy',
  'content-security-policy-report-only',
  'link',
])

const ENCODINGS: Pick<ManifestFile, 'encodings'> = {
  encodings: { br: { hash: '', size: 0 }, gzip: { hash: '', size: 0 }, zstd: { hash: '', size: 0 } },
}

function encodingFor(exchange: Exchange): Encoding | 'identity' {
  if (exchange.header('range') !== undefined) return 'identity'
  return chooseEncoding(exchange.header('accept-encoding'), ENCODINGS.encodings)
}

function signalHeaders({ ai }: ServedSite): readonly string[] {
  const signal = signalOf(ai)
  return signal === undefined ? [] : ['content-signal', signal]
}

function isBusy(error: unknown): boolean {
  return (error as { status?: number }).status === 503
}

/** A route object is replaced, never changed: its identity stands for all of its settings. */
function createRouteIds(): (route: ServedSite) => number {
  const ids = new WeakMap<ServedSite, number>()
  let nextId = 0
  return (route) => {
    let id = ids.get(route)
    if (id === undefined) ids.set(route, (id = nextId++))
    return id
  }
}
