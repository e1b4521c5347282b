/**
 * The walk alone, without sockets: parsed request → intent → representation. CPU microseconds and bytes allocated per
 * hot request, so that a regression shows without the noise of a network.
 */
import { Readable } from 'node:stream'
import v8 from 'node:v8'
import { createAnswers } from '../../edge/processes/answers.ts'
import { createClassify } from '../../edge/gate/classify.ts'
import type { Exchange, HeaderList, ServedSite } from '../../edge/context.ts'
import { createPreviewGate } from '../../edge/gate/members.ts'
import { createAdmissions } from '../../edge/gate/admissions.ts'
import { createViewing } from '../../edge/gate/viewing.ts'
import { sealAdmission, VIEWERS_ONLY } from '../../shared/contracts/admission.ts'
import { createUnlock } from '../../edge/gate/unlock.ts'
import { indexFiles, indexSite } from '../../edge/locate/site-index.ts'
import { createPipeline } from '../../edge/pipeline.ts'
import { createMachines } from '../../edge/processes/machines/machines.ts'
import { createRepresentations } from '../../edge/processes/representations.ts'
import { createSnippets } from '../../edge/rewrite/snippets.ts'
import { createProxy } from '../../edge/send/proxy.ts'
import { createVisitLine } from '../../edge/send/visit-line.ts'
import { createVisits } from '../../edge/send/visits.ts'
import { createRequestLog } from '../../edge/send/request-log.ts'
import { createViews, isMachineName } from '../../edge/send/views.ts'
import { createFraming } from '../../edge/gate/review.ts'
import { createBlobCache } from '../../edge/store/blob-cache.ts'
import { createSites } from '../../edge/store/sites.ts'
import type { Routes } from '../../edge/store/routes.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { createLog } from '../../shared/running/log.ts'
import { MAX_KEPT_FILES } from '../../control/drops/publishing/manifest/kept-files.ts'
import { encodeManifest, type KeptFiles, type Manifest } from '../../shared/contracts/manifest.ts'
import { createProofOfWork } from '../../shared/secrets/proof-of-work.ts'
import { createSecrets } from '../../shared/secrets/secrets.ts'
import { median } from '../../test/support/figures.ts'
import type { BenchValues } from '../benches.ts'
import { createProgress } from '../progress.ts'
import type { Results } from '../results.ts'

const REQUESTS = 20_000
const MAX_MICROSECONDS = 4
const MAX_BYTES = 2000
/** What a viewer's page may cost, compared with the same page for everyone. */
const MAX_VIEWER_RATIO = 1.2

const BASE_URL = 'https://localhost'
const PAGE = Buffer.from('<!doctype html><html><head><title>walk</title></head><body>walk</body></html>')
const SCRIPT = Buffer.from('console.log("walk")')
const hashOf = (digit: string): string => digit.repeat(64)
const [PAGE_HASH, SCRIPT_HASH, MANIFEST_HASH, REPUBLISHED_HASH] = [hashOf('a'), hashOf('b'), hashOf('c'), hashOf('d')]
const MANIFEST: Manifest = {
  v: 1,
  files: [
    [
      'index.html',
      { hash: PAGE_HASH, size: PAGE.length, type: 'text/html; charset=utf-8', injection: { head: 46, body: 63 } },
    ],
    [
      'docs/guide.html',
      { hash: PAGE_HASH, size: PAGE.length, type: 'text/html; charset=utf-8', injection: { head: 46, body: 63 } },
    ],
    ['assets/app-4f2a.js', { hash: SCRIPT_HASH, size: SCRIPT.length, type: 'text/javascript', immutable: true }],
  ],
  redirects: [{ from: '/old/*', to: '/docs/:splat', status: 301, force: false, line: 1 }],
  headers: [{ from: '/assets/*', set: [['x-walk', 'yes']], line: 1 }],
  unserved: [],
}
/** As many files of former versions as a manifest may keep: as after 30 days of 50 publishes a day. */
const KEPT: KeptFiles = {
  files: Array.from({ length: MAX_KEPT_FILES }, (_, index) => [
    `assets/chunk-${index}-4f2a.js`,
    { file: { hash: SCRIPT_HASH, size: SCRIPT.length, type: 'text/javascript' }, since: 1, version: 1 },
  ]),
  headers: [],
}
const STORED = new Map<string, Buffer>([
  [PAGE_HASH, PAGE],
  [SCRIPT_HASH, SCRIPT],
  [MANIFEST_HASH, Buffer.from(encodeManifest(MANIFEST))],
  [REPUBLISHED_HASH, Buffer.from(encodeManifest({ ...MANIFEST, kept: KEPT }))],
])

function siteOf(host: string, settings: Partial<ServedSite>): ServedSite {
  return {
    ...{ v: 1, kind: 'site', host, revision: 1, site_id: `st_${host}`, state: 'live', manifest: MANIFEST_HASH },
    ...{ version_number: 1, expires_at: null, password: null, spa_fallback: false, badge: false, analytics: null },
    ...settings,
  }
}

const SITES = new Map(
  [
    siteOf('plain.localhost', {}),
    siteOf('snippets.localhost', {
      badge: true,
      analytics: { google_analytics: { measurement_id: 'G-ABCDEF1234' } },
    }),
    siteOf('carded.localhost', { card: [SCRIPT_HASH, SCRIPT.length] }),
    siteOf('republished.localhost', { manifest: REPUBLISHED_HASH }),
    siteOf('locked.localhost', { password: { hash: 'unused', generation: 1 } }),
    siteOf('shared.localhost', {
      password: { hash: VIEWERS_ONLY, generation: 1 },
      viewers: { ended: [['vw_removed', 1]], asks: true },
    }),
  ].map((site) => [site.host, site]),
)

/** What a browser sends. */
const BROWSER: Readonly<Record<string, string>> = {
  accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'accept-encoding': 'gzip, deflate, br, zstd',
  'accept-language': 'de-DE,de;q=0.8,en;q=0.5',
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
}

/** A request that has been parsed; remembers what it is answered with. */
class ParsedExchange implements Exchange {
  readonly method = 'GET'
  readonly target: string
  readonly authority: string
  readonly ip = '192.0.2.7'
  readonly full = undefined
  readonly #headers: Readonly<Record<string, string>>
  host = ''
  status = 0
  isAnswered = false

  constructor(authority: string, target: string, headers: Readonly<Record<string, string>>) {
    this.authority = authority
    this.target = target
    this.#headers = headers
  }

  header(name: string): string | undefined {
    return this.#headers[name]
  }

  certificateCovers(): boolean {
    return true
  }

  countRequest(): boolean {
    return true
  }

  named(host: string): void {
    this.host = host
  }

  send(status: number, _headers: HeaderList, _body: Buffer | undefined): void {
    this.status = status
    this.isAnswered = true
    requestLog.answered(this, status)
  }

  stream(): never {
    throw new Error('streamed')
  }
}

const log = createLog('walk', 'silent')
const secrets = createSecrets(Buffer.alloc(32, 7).toString('base64'))
const requestLog = createRequestLog({ log, sample: 0 })
const blobs = {
  read: async (hash: string): Promise<Buffer> => STORED.get(hash) ?? Buffer.alloc(0),
  stream: (): Readable => Readable.from([]),
}
const routes: Routes = {
  get: (host) => SITES.get(host),
  manifestOf: () => undefined,
  isComplete: () => true,
  forget() {},
  forgetAll() {},
  rememberNothing() {},
}
const unlock = createUnlock({ secrets, proofOfWork: createProofOfWork(secrets), clock: systemClock, tell() {} })
const proxy = createProxy({ controlUrls: ['http://127.0.0.1:9'], publicHost: 'localhost' })
const answers = createAnswers({ baseUrl: BASE_URL, publicPort: undefined, log })
const line = createVisitLine({ controlUrls: ['http://127.0.0.1:9'], publicHost: 'localhost' })
const cache = createBlobCache(10_000_000)
const sites = createSites(blobs, { indexFiles, indexSite })
const machines = createMachines({ blobs, cache, sites, publicPort: undefined })
const pipeline = createPipeline({
  classify: createClassify({ routes, serviceHost: 'localhost', sitesDomain: 'localhost', secrets }),
  unlock,
  members: createPreviewGate({ secrets, clock: systemClock, baseUrl: BASE_URL, ask: async () => false }),
  sites,
  representations: createRepresentations({
    blobs,
    cache,
    snippets: createSnippets({ baseUrl: BASE_URL }),
    machines,
  }),
  machines,
  answers,
  proxy,
  viewing: createViewing({
    admissions: createAdmissions({ secrets, clock: systemClock }),
    line,
    answers,
    isLookedAt: isMachineName,
    clock: systemClock,
  }),
  framing: createFraming({ secrets, clock: systemClock }),
  watching: { atService: () => false, atDrop: () => false },
  visits: createVisits(),
  views: createViews(),
  clock: systemClock,
  log,
})

interface Walk {
  readonly name: string
  readonly status: number
  make(): ParsedExchange
}

const walk = (name: string, status: number, host: string, target: string, headers = BROWSER): Walk => ({
  name,
  status,
  make: () => new ParsedExchange(host, target, headers),
})

async function tagOf(host: string, target: string): Promise<string> {
  let tag = ''
  const exchange = new ParsedExchange(host, target, BROWSER)
  exchange.send = (_status, headers) => void (tag = headers[headers.indexOf('etag') + 1] ?? '')
  await settled(exchange, () => tag !== '')
  return tag
}

async function settled(exchange: ParsedExchange, isDone = (): boolean => exchange.isAnswered): Promise<void> {
  pipeline(exchange)
  while (!isDone()) await new Promise((resolve) => setImmediate(resolve))
}

const SCRIPT_TAG = { ...BROWSER, 'sec-fetch-dest': 'script' }

async function walksOf(): Promise<readonly Walk[]> {
  const locked = secrets.sign('unlock-cookie', 'st_locked.localhost\n1\nunused')
  const admission = sealAdmission(secrets, {
    ...{ siteId: 'st_shared.localhost', subject: 'vw_1mk3v8s2kd0000000000', generation: 1, history: 0 },
    endsAt: Number.MAX_SAFE_INTEGER,
  })
  return [
    walk('file', 200, 'plain.localhost', '/assets/app-4f2a.js', SCRIPT_TAG),
    walk('page', 200, 'plain.localhost', '/'),
    walk('file beside kept', 200, 'republished.localhost', '/assets/app-4f2a.js', SCRIPT_TAG),
    walk('kept file', 200, 'republished.localhost', '/assets/chunk-7000-4f2a.js', SCRIPT_TAG),
    walk('page with snippets', 200, 'snippets.localhost', '/'),
    walk('page with a card', 200, 'carded.localhost', '/'),
    walk('page with password', 200, 'locked.localhost', '/docs/guide', {
      ...BROWSER,
      cookie: `a=1; __Host-dropway-unlock=${locked}`,
    }),
    walk('page for a viewer', 200, 'shared.localhost', '/', {
      ...BROWSER,
      cookie: `a=1; __Host-dropway-viewer=${admission}`,
    }),
    walk('not modified', 304, 'plain.localhost', '/docs/guide', {
      ...BROWSER,
      'if-none-match': await tagOf('plain.localhost', '/docs/guide'),
    }),
    walk('redirect', 301, 'plain.localhost', '/old/guide?a=b'),
    walk('missing', 404, 'plain.localhost', '/nothing'),
  ]
}

interface Figures {
  readonly microseconds: number
  readonly bytes: number
}

async function measure({ name, status, make }: Walk, rounds: number): Promise<Figures> {
  const first = make()
  await settled(first)
  if (first.status !== status) throw new Error(`${name}: ${first.status} instead of ${status}`)
  // Twice without figures: until then V8 is still compiling.
  const taken = Array.from({ length: rounds + 2 }, () => round(make)).slice(2)
  return { microseconds: median(taken.map((one) => one.microseconds)), bytes: median(taken.map((one) => one.bytes)) }
}

function round(make: () => ParsedExchange): Figures {
  // Made before: what a parsed request takes is the parser's affair.
  const exchanges = Array.from({ length: REQUESTS }, make)
  const allocated = v8.getHeapStatistics().total_allocated_bytes
  const cpu = process.threadCpuUsage()
  for (const exchange of exchanges) pipeline(exchange)
  const { user, system } = process.threadCpuUsage(cpu)
  const bytes = v8.getHeapStatistics().total_allocated_bytes - allocated
  if (exchanges.some(({ isAnswered }) => !isAnswered)) throw new Error('a hot request waited')
  return { microseconds: (user + system) / REQUESTS, bytes: bytes / REQUESTS }
}

/** How much more one costs than the other: in turns, so that a busy machine slows both alike. */
function ratioOf(one: Walk, other: Walk, rounds: number): number {
  const ratios = Array.from(
    { length: rounds },
    () => round(() => one.make()).microseconds / round(() => other.make()).microseconds,
  )
  return median(ratios)
}

function requireWalk(walks: readonly Walk[], name: string): Walk {
  const found = walks.find((each) => each.name === name)
  if (!found) throw new Error(`there is no walk "${name}"`)
  return found
}

export async function run({ rounds }: BenchValues<'walk'>, results: Results): Promise<void> {
  const progress = createProgress()
  const found: Record<string, Figures> = {}
  process.stdout.write(`${'walk'.padEnd(20)}${'µs'.padEnd(8)}bytes (bars ${MAX_MICROSECONDS} µs, ${MAX_BYTES} bytes)\n`)
  const walks = await walksOf()
  for (const each of walks) {
    progress.show(`${each.name}: ${rounds} rounds of ${REQUESTS} requests`)
    const { microseconds, bytes } = await measure(each, rounds)
    found[each.name] = { microseconds: Math.round(microseconds * 100) / 100, bytes: Math.round(bytes) }
    progress.clear()
    process.stdout.write(`${each.name.padEnd(20)}${microseconds.toFixed(2).padEnd(8)}${bytes.toFixed(0)}\n`)
  }
  const ratio = ratioOf(requireWalk(walks, 'page for a viewer'), requireWalk(walks, 'page'), rounds)
  const viewerRatio = Math.round(ratio * 100) / 100
  const dearest = (what: keyof Figures): number => Math.max(...Object.values(found).map((figures) => figures[what]))
  results.judge({ row: 'the dearest walk', figure: dearest('microseconds'), unit: 'µs', bar: MAX_MICROSECONDS })
  results.judge({ row: 'what the dearest walk allocates', figure: dearest('bytes'), unit: 'bytes', bar: MAX_BYTES })
  results.judge({ row: 'a viewer’s page beside a public one', figure: viewerRatio, unit: '×', bar: MAX_VIEWER_RATIO })
  proxy.close()
  line.close()
  const bars = { microseconds: MAX_MICROSECONDS, bytes: MAX_BYTES, viewer_ratio: MAX_VIEWER_RATIO }
  results.keep({ results: found, viewer_ratio: viewerRatio, bars })
}
