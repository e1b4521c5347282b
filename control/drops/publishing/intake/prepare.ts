/**
 * From stored files to a version that is ready to go live:
 * 1. find the site in the upload (unwrap, render Markdown, landing page);
 * 2. take what the live version already knows about unchanged files;
 * 3. read the others in worker threads: places for snippets, links, quick variants, pages that must become UTF-8, keys;
 *    go on without what looks like a secret;
 * 4. compress what the landing page loads, as far as that is left;
 * 5. parse `_redirects` and `_headers`, and what other hosts' files say of the same;
 * 6. write the manifest and the report.
 */
import { setImmediate } from 'node:timers/promises'
import type { BlobStore, StoredBlob } from '../../../../shared/blobs/blob-store.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { CSP_LIMITS } from '../../../../shared/contracts/limits.ts'
import type { Manifest } from '../../../../shared/contracts/manifest.ts'
import { sideBySide } from '../../../../shared/values/side-by-side.ts'
import {
  analyse,
  isNamedLikeKey,
  isWorthCompressing,
  isWorthReading,
  mayHoldKey,
  type Analysis,
  type AnalysisRequest,
  type Reading,
} from '../analysis/analyse.ts'
import { inParallel } from '../../../../shared/running/turns.ts'
import { batchesOf } from '../workers/batches.ts'
import {
  LANDING_PAGE,
  LANDING_PAGES,
  unservedKindOf,
  type Shown,
  type SingleKind,
} from '../../../../shared/content/upload-kind.ts'
import { markdownLanding, requireLandingPage, unwrapFolder } from './bundle.ts'
import { documentPage, MAX_SHOWN_TEXT_BYTES } from './document-page.ts'
import { planCopies, type PlannedCopies } from './equal-pages.ts'
import type { Compression, PreparedVersion, SecretsPolicy } from '../contract.ts'
import {
  blobSizesOf,
  buildManifest,
  asWritten,
  isRuleFile,
  type FactsOf,
  type FileFacts,
  type StoredFile,
} from '../manifest/manifest-builder.ts'
import { ByContent } from '../manifest/by-content.ts'
import { LONG_FILES } from '../../../../shared/content/manifest-parts.ts'
import type { Manifests } from '../manifest/manifests.ts'
import { quotePath } from '../../../../shared/values/quoted-path.ts'
import { firstScreenOf } from '../analysis/first-screen.ts'
import { decodeCode, type EncodedCode, type EncodedLinks } from '../analysis/links.ts'
import { blobChanges, type StoredManifest } from '../manifest/blob-changes.ts'
import { losesNothing } from '../manifest/differing.ts'
import { filesBut, type KnownVersions, type SplitVersion } from './known-versions.ts'
import { MOST_READINGS, type Readings } from '../analysis/readings.ts'
import { readSiteRules, ruleFilesOf, type RuleFiles, type SiteRules } from '../manifest/site-rules.ts'
import { decodeText } from '../files/text-encoding.ts'
import { isHtmlType, mediaTypeOf } from '../files/types.ts'
import { reportInput, reportOn } from './version-report.ts'
import { isSecretByName, siftSecrets } from './withhold.ts'
import { requireMarkdownBytes, type UploadWorkers } from '../workers/workers.ts'

/**
 * New bytes that are compressed before a version goes live, smallest files first; the rest follows when it is refined.
 * It is what two cores do in about a tenth of a second, and more than most sites have.
 */
const QUICK_COMPRESSION_BYTES = 3_000_000
/**
 * The landing page and what it loads is compressed before the version goes live even beyond that: it is what every
 * visitor waits for. A core needs a second for it.
 */
const FIRST_SCREEN_BYTES = 24_000_000
/**
 * Unchanged pages whose links are no longer in memory are read again: all of a hand-made site, a part of a large one. So
 * are other texts, as much again, for keys that an earlier publish was told to allow.
 */
const RECHECKED_BYTES = 2_000_000
/** Lists of scripts and stylesheets that are looked at, each once: a site has a few, as long as a page's head. */
const MAX_CODE_CHARS = 1_000_000
const PARALLEL_LOOKUPS = 16
const NOTHING_UNTOUCHED: Pick<SplitVersion, 'untouched' | 'code'> = { untouched: [], code: new Set() }

export interface Upload {
  readonly files: readonly StoredFile[]
  /** Set when all files of the live version but those of these names are part of the upload too. */
  readonly without?: ReadonlySet<string> | undefined
  /** Paths that came with them and were left out. */
  readonly unserved: readonly string[]
  /** Set when one page or document was sent instead of files. */
  readonly single?: { kind: SingleKind; filename: string; title?: string | undefined; blob: StoredBlob } | undefined
  readonly isArchive: boolean
  readonly secrets: SecretsPolicy
  /** Hashes that the upload only names: they must be in the store. */
  readonly announced: ReadonlySet<string>
  /** Notes a blob that was made on the way, so that a failing upload takes it back. */
  remember(blob: StoredBlob): StoredBlob
  /** Makes durable what was held back, before a thread reads it and before anything goes live. */
  storeHeld(): Promise<void>
}

export interface PrepareDependencies {
  readonly blobs: BlobStore
  /** The bytes of a short blob that was stored a moment ago. */
  atHand(hash: string): Buffer | undefined
  readonly workers: UploadWorkers
  readonly manifests: Manifests
  readonly readings: Readings
  readonly knownVersions: KnownVersions
}

/**
 * Prepares what was uploaded. What an upload that says its changes leaves untouched in a version that is known is passed
 * over, unless that turns out not to be enough once the rest has been looked at.
 */
export async function prepareVersion(
  deps: PrepareDependencies,
  upload: Upload,
  baseHash: string | null | undefined,
): Promise<PreparedVersion> {
  const base = baseHash ? { hash: baseHash, manifest: await deps.manifests.read(baseHash) } : undefined
  const { without } = upload
  if (!without || !base) return prepareAll(deps, upload, base)
  if (leavesNames(upload.files, without) && deps.knownVersions.isKnown(base.hash)) {
    const split = deps.knownVersions.split(base.manifest, without)
    const files = [...upload.files, ...split.others]
    const hasLanding = files.some(({ path }) => LANDING_PAGES.includes(path))
    const prepared = hasLanding && (await prepareFiles(deps, { ...upload, files: byName(files) }, base, split))
    if (prepared) return prepared
  }
  return prepareAll(deps, { ...upload, files: byName([...upload.files, ...filesBut(base.manifest, without)]) }, base)
}

/** Whether every name that is replaced is there again, so that what leads to it still does, under the same rules. Pure. */
function leavesNames(files: readonly StoredFile[], without: ReadonlySet<string>): boolean {
  const paths = new Set(files.map(({ path }) => path))
  return !files.some(({ path }) => isRuleFile(path)) && [...without].every((path) => paths.has(path))
}

/** The order of a manifest, in which reports name files: it does not depend on which of them changed. */
function byName(files: readonly StoredFile[]): readonly StoredFile[] {
  return files.toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
}

async function prepareAll(
  deps: PrepareDependencies,
  upload: Upload,
  base: StoredManifest | undefined,
): Promise<PreparedVersion> {
  const prepared = await prepareFiles(deps, upload, base, NOTHING_UNTOUCHED)
  if (!prepared) throw new Error('an upload without untouched files was not prepared')
  return prepared
}

/** Undefined when the untouched files have to be looked at, too: some that they may name are kept back. */
async function prepareFiles(
  { blobs, atHand, workers, manifests, readings, knownVersions }: PrepareDependencies,
  upload: Upload,
  stored: StoredManifest | undefined,
  { untouched, code }: Pick<SplitVersion, 'untouched' | 'code'>,
): Promise<PreparedVersion | undefined> {
  const base = stored?.manifest
  const pause = upload.files.length > LONG_FILES ? () => setImmediate() : () => undefined
  const unpacked = upload.isArchive ? unwrapFolder(upload.files) : upload.files
  const leftOut = new Set(unpacked.filter(({ path }) => unservedKindOf(path) !== undefined))
  const sent = leftOut.size === 0 ? unpacked : unpacked.filter((file) => !leftOut.has(file))
  const unserved = [...upload.unserved, ...Array.from(leftOut, ({ path }) => path)]
  await requireAnnounced(blobs, sent, upload.announced, base)
  const received = await withLandingPage({ blobs, workers }, upload, sent)
  requireLandingPage(received)
  await pause()
  // A document by itself would leave nothing to publish.
  const secrets = upload.single && upload.secrets === 'withhold' ? 'refuse' : upload.secrets
  // What its name betrays is not read.
  const betrayed = new Set(secrets === 'allow' ? [] : received.filter(isSecretByName))
  const uploaded = betrayed.size === 0 ? received : received.filter((file) => !betrayed.has(file))
  await pause()
  const compared = withLive(withConverted(uploaded, knownConversions(base)), base, readings)
  await pause()
  const known = knownFacts(base, compared)
  await pause()
  const { requests, copies } = planReading(compared, known)
  const isAtHand = requests.length === 1 && requests.every(({ hash }) => atHand(hash) !== undefined)
  if (!isAtHand) await upload.storeHeld()
  const reader = isAtHand ? { width: 1, analyse: readingHere(blobs) } : workers
  const { analyses, conversions } = await analyseFiles(reader, requests, upload.remember)
  const copied = await readCopies(workers, copies, upload.remember)
  const converted = withConverted(compared, conversions)
  const analysisOf: AnalysisOf = (file) => (copied.has(file.path) ? copied.get(file.path) : analyses.get(file))
  const readingOf = readingsOf(converted, analysisOf, analyses, readings)
  // A page alone has no neighbours that a later publish would look at again.
  if (!upload.single && converted.length <= MOST_READINGS) keepReadings(converted, analysisOf, readings)
  await pause()
  const sifted = siftSecrets(
    betrayed.size === 0 ? converted : [...betrayed, ...converted],
    ({ path }) => readingOf.get(path)?.key,
    secrets,
  )
  const { files: read, blocked, withheld, allowed } = sifted
  await pause()
  const factsOf = joinFacts(known, analyses)
  const left = planFirstScreen(read, factsOf, requests, (path) => readingOf.get(path)?.links)
  if (left.length > 0) await upload.storeHeld()
  const { analyses: compressed } = await analyseFiles(workers, left, upload.remember)
  const files = withVariants(read, compressed)
  const landing = requireLandingPage(files)
  const rules = await rulesOf(blobs, workers, ruleFilesOf(files))
  const loaded = loadedCode(landing, files, readingOf, code)
  await pause()
  const factsNow = joinFacts(known, analyses, compressed)
  const manifest = buildManifest({ files, untouched, factsOf: factsNow, loaded: decodeCode(loaded.lists), ...rules })
  if (untouched.length > 0 && (loaded.isCut || !base || !losesNothing(base.files, manifest.files))) return undefined
  await pause()
  // In one batch. Both are over before a failure of one has the other taken back.
  const writing = [manifests.write(manifest).then(upload.remember), upload.storeHeld()] as const
  await Promise.allSettled(writing)
  const [{ hash, size }] = await Promise.all(writing)
  const sentFiles = uploadedOf(files)
  await pause()
  const input = { ...reportInput(files, readingOf, rules), secrets: allowed, unserved }
  const report = await reportOn(workers, input, untouched, base)
  const isRead = files.every(({ path, size }) => readingOf.has(path) || !mayHoldKey(path, size))
  await pause()
  const changes = stored && blobChanges(stored, { hash, manifest })
  const isQuiet = report.warnings.length === 0 && blocked.length === 0
  if (isQuiet && isRead && copies.unread.length === 0 && !upload.single) knownVersions.note(hash)
  return {
    manifestHash: hash,
    byteSize: untouched.reduce((sum, [, file]) => sum + file.size, bytesOf(sentFiles)),
    fileCount: untouched.length + sentFiles.length,
    title: readingOf.get(landing.path)?.title ?? '',
    blobs: () => [...blobSizesOf(manifest).set(hash, size).keys()],
    changes,
    report: { ...report, blocked },
    withheld,
    landingHash: landing.hash,
    compression: compressionOf(manifest),
  }
}

/** What was sent: a document and the page that shows it have one source. */
function uploadedOf(files: readonly StoredFile[]): readonly Pick<StoredFile, 'path' | 'size'>[] {
  if (!files.some(({ source }) => source)) return files
  return [...new Map(files.map((file) => [(file.source ?? file).path, file.source ?? file])).values()]
}

/** A site without rules is not worth a turn with a thread: nothing is read, and nothing of the publisher's is parsed. */
function rulesOf(blobs: BlobStore, workers: UploadWorkers, files: RuleFiles): Promise<SiteRules> {
  const hasNone = !files.redirects && !files.headers && files.hostFiles.length === 0
  return hasNone ? readSiteRules(blobs, files) : workers.readRules(files)
}

function bytesOf(files: readonly Pick<StoredFile, 'size'>[]): number {
  return files.reduce((sum, { size }) => sum + size, 0)
}

/** How far a version is compressed when it goes live. One small page needs no job to look at it again. */
function compressionOf({ files }: Manifest): Compression {
  const isWorthwhile = ([path, { size }]: Manifest['files'][number]): boolean => isWorthCompressing(path, size)
  if (files.some((entry) => entry[1].encodings === undefined && isWorthwhile(entry))) return 'open'
  return files.some(isWorthwhile) ? 'quick' : 'done'
}

/** The files as they are served: a page or document that was sent alone, or a Markdown index, is the landing page. */
async function withLandingPage(
  deps: Pick<PrepareDependencies, 'blobs' | 'workers'>,
  upload: Upload,
  sent: readonly StoredFile[],
): Promise<readonly StoredFile[]> {
  const render = (source: StoredFile, title?: string) => renderLanding(deps, upload, source, title)
  if (!upload.single) {
    const index = markdownLanding(sent)
    return index ? [...sent.filter((file) => file !== index), await render(index)] : sent
  }
  const { kind, filename, title, blob } = upload.single
  const sentAlone = { path: filename, hash: blob.hash, size: blob.size }
  if (kind === 'html') return [{ ...sentAlone, path: LANDING_PAGE }]
  if (kind === 'markdown') return [await render(sentAlone, title)]
  return [sentAlone, await showDocument(deps, upload, kind, sentAlone, title)]
}

async function renderLanding(
  { blobs, workers }: Pick<PrepareDependencies, 'blobs' | 'workers'>,
  upload: Upload,
  source: StoredFile,
  title: string | undefined,
): Promise<StoredFile> {
  requireMarkdownBytes(source.size)
  const text = decodeText(await blobs.read(source.hash))
  const page = await workers.renderMarkdown({
    source: text,
    filename: source.path,
    ...(title !== undefined && { title }),
  })
  const rendered = upload.remember(await blobs.put(Buffer.from(page.html)))
  return { path: LANDING_PAGE, hash: rendered.hash, size: rendered.size, source }
}

/** The page that shows a document. Its source is the document, so that nothing was uploaded but that. */
async function showDocument(
  { blobs }: Pick<PrepareDependencies, 'blobs'>,
  upload: Upload,
  shown: Shown,
  source: StoredFile,
  title: string | undefined,
): Promise<StoredFile> {
  const { path: filename, hash, size } = source
  const isShort = shown === 'text' && size <= MAX_SHOWN_TEXT_BYTES
  const text = isShort ? decodeText(await blobs.read(hash)) : undefined
  const page = upload.remember(await blobs.put(Buffer.from(documentPage({ shown, filename, size, title, text }))))
  return { path: LANDING_PAGE, hash: page.hash, size: page.size, source }
}

/**
 * Files of the live version are there; others that an upload only names are looked up, and kept from being collected.
 * The size that it names must be the true one: caps and lengths of answers are counted with it.
 */
async function requireAnnounced(
  blobs: BlobStore,
  files: readonly StoredFile[],
  announced: ReadonlySet<string>,
  base: Manifest | undefined,
): Promise<void> {
  if (announced.size === 0) return
  const named = files.filter((file) => announced.has(file.hash))
  const byPath = entriesOf(base, named)
  const others = named.filter(({ path, hash, size }) => {
    const entry = byPath.get(path)
    return entry?.hash !== hash || entry.size !== size
  })
  // To note all that the live version has is worth it where many files have other names now.
  const live = base && others.length > PARALLEL_LOOKUPS ? blobSizesOf(base) : undefined
  const toCheck = others.filter((file) => live?.get(file.hash) !== file.size)
  await inParallel(toCheck, PARALLEL_LOOKUPS, async (file) => {
    const stored = await blobs.keep(file.hash)
    if (!stored)
      throw errors.invalidRequest(`The bytes of ${quotePath(file.path)} have not arrived. Send the file again.`)
    if (stored.size !== file.size)
      throw errors.invalidRequest(
        `${quotePath(file.path)} was announced with ${file.size} bytes, but has ${stored.size}. Start the upload again.`,
      )
  })
}

/** The entries of some files by their names. To note all that a long list has is worth it where many are asked for. */
function entriesOf(
  base: Manifest | undefined,
  files: readonly StoredFile[],
): ReadonlyMap<string, Manifest['files'][number][1]> {
  if (!base || files.length > base.files.length / 4) return new Map(base?.files)
  const wanted = new Set(files.map(({ path }) => path))
  return new Map(base.files.filter(([path]) => wanted.has(path)))
}

interface ComparedFile extends StoredFile {
  /** With `live`: what is remembered of the page. */
  readonly reading?: Reading | undefined
}

/**
 * The same files, with what the live version says of those that it has under the same name. One of which nothing is in
 * memory any more is not among them: it may have to be read again.
 */
function withLive(
  files: readonly StoredFile[],
  base: Manifest | undefined,
  readings: Readings,
): readonly ComparedFile[] {
  if (!base) return files
  const live = entriesOf(base, files)
  return files.map((file) => {
    const entry = live.get(file.path)
    if (entry?.hash !== file.hash || !isSameSource(entry.source, file.source)) return file
    const reading = readings.get(file)
    return reading || !mayHoldKey(file.path, file.size) ? { ...file, live: entry, reading } : file
  })
}

function isSameSource(one: StoredFile['source'], other: StoredFile['source']): boolean {
  return one?.hash === other?.hash && one?.path === other?.path
}

/** What the live version knows about the bytes of the other files. Its type says what the charset was found to be. */
function knownFacts(base: Manifest | undefined, files: readonly StoredFile[]): ByContent<FileFacts> {
  const wanted = new Set(files.filter((file) => !file.live).map((file) => file.hash))
  const known = new ByContent<FileFacts>()
  for (const [path, file] of base?.files ?? []) {
    if (!wanted.has(file.hash)) continue
    known.set(
      { path, hash: file.hash },
      {
        charset: file.type.endsWith('charset=utf-8') ? 'utf-8' : null,
        ...(file.injection && { injection: file.injection }),
        ...(file.encodings && { encodings: file.encodings }),
      },
    )
  }
  return known
}

type Conversions = ByContent<{ readonly hash: string; readonly size: number }>

/** Pages that the live version serves as UTF-8, by what was uploaded. (A rendered page has a source of another name.) */
function knownConversions(base: Manifest | undefined): Conversions {
  const known: Conversions = new ByContent()
  for (const [path, { source, hash, size }] of base?.files ?? [])
    if (source?.path === path) known.set(source, { hash, size })
  return known
}

/** The same files, with the UTF-8 page in the place of what was uploaded. */
function withConverted(files: readonly ComparedFile[], conversions: Conversions): readonly ComparedFile[] {
  if (conversions.size === 0) return files
  return files.map((file) => {
    const converted = file.live ? undefined : conversions.get(file)
    if (!converted) return file
    const { path, hash, size } = file
    return { path, ...converted, source: { path, hash, size } }
  })
}

/** Which files to read: each content once, as the landing page if it is that, and again where links lead elsewhere. Pure. */
export function planReading(
  files: readonly StoredFile[],
  known: Pick<ByContent<FileFacts>, 'has'>,
): { requests: AnalysisRequest[]; copies: PlannedCopies } {
  const contents = new ByContent<StoredFile>()
  for (const file of files) {
    const isWanted = !file.live && mayHoldKey(file.path, file.size)
    if (isWanted && contents.get(file)?.path !== LANDING_PAGE) contents.set(file, file)
  }
  return { requests: planAnalyses(contents, known), copies: planCopies(files, contents) }
}

function planAnalyses(
  contents: Pick<ByContent<StoredFile>, 'values'>,
  known: Pick<ByContent<FileFacts>, 'has'>,
): AnalysisRequest[] {
  const requests: AnalysisRequest[] = []
  let quickBytes = 0
  const recheckedBytes = { page: 0, other: 0 }
  for (const { path, hash, size } of contents.values().toSorted((a, b) => a.size - b.size)) {
    if (known.has({ path, hash })) {
      const kind = isHtmlType(mediaTypeOf(path)) ? 'page' : 'other'
      recheckedBytes[kind] += size
      const isWanted = path === LANDING_PAGE || isNamedLikeKey(path, size)
      if (isWanted || recheckedBytes[kind] <= RECHECKED_BYTES) requests.push({ path, hash, size })
    } else if (isWorthReading(path, size)) {
      quickBytes += size
      requests.push({ path, hash, size, ...(quickBytes <= QUICK_COMPRESSION_BYTES && { effort: 'quick' as const }) })
    } else requests.push({ path, hash, size })
  }
  return requests
}

/** What the first screens need and has no variants yet: smallest first, each content once. Pure. */
export function planFirstScreen(
  files: readonly StoredFile[],
  factsOf: FactsOf,
  requests: readonly AnalysisRequest[],
  linksOf: (path: string) => EncodedLinks | undefined,
): AnalysisRequest[] {
  const wanted = firstScreenOf(LANDING_PAGE, linksOf)
  const left = new ByContent<AnalysisRequest>()
  for (const file of files) {
    const { path, hash, size, live } = file
    if (!wanted.has(path) || !isWorthCompressing(path, size)) continue
    if (!(live ?? factsOf(file))?.encodings) left.set(file, { path, hash, size, effort: 'quick' })
  }
  if (left.size === 0) return []
  // One that was tried and has no variants is not worth them.
  for (const request of requests) if (request.effort !== undefined) left.delete(request)
  let bytes = 0
  return left
    .values()
    .toSorted((a, b) => a.size - b.size)
    .filter((request) => (bytes += request.size) <= FIRST_SCREEN_BYTES)
}

/** The same files, with the variants of those that the live version has without. */
function withVariants(files: readonly ComparedFile[], compressed: ByContent<Analysis>): readonly ComparedFile[] {
  if (compressed.size === 0) return files
  return files.map((file) => {
    const encodings = file.live && compressed.get(file)?.encodings
    const hasVariants = encodings !== undefined && Object.keys(encodings).length > 0
    return file.live && hasVariants ? { ...file, live: asWritten({ ...file.live, encodings }) } : file
  })
}

/** One short page whose bytes are at hand is read in less time than a thread is told of it; all else by threads. */
function readingHere(blobs: BlobStore): UploadWorkers['analyse'] {
  return (pages) => Promise.all(pages.map((page) => analyse(blobs, page)))
}

async function analyseFiles(
  workers: Pick<UploadWorkers, 'width' | 'analyse'>,
  requests: readonly AnalysisRequest[],
  remember: Upload['remember'],
): Promise<{ analyses: ByContent<Analysis>; conversions: Conversions }> {
  const analyses = new ByContent<Analysis>()
  const conversions: Conversions = new ByContent()
  await inParallel(
    batchesOf(requests, (request) => request.size),
    workers.width,
    async (batch) => {
      const results = await workers.analyse(batch)
      for (const [{ path, hash }, analysis] of sideBySide(batch, results)) {
        for (const blob of analysis.created ?? []) remember(blob)
        const { converted } = analysis
        requireFewPolicies(path, analysis)
        if (converted) conversions.set({ path, hash }, converted)
        analyses.set({ path, hash: converted?.hash ?? hash }, analysis)
      }
    },
  )
  return { analyses, conversions }
}

/** What copies in other folders say, by path; undefined of those that were not read. */
async function readCopies(
  workers: Pick<UploadWorkers, 'width' | 'analyse'>,
  { requests, unread }: PlannedCopies,
  remember: Upload['remember'],
): Promise<ReadonlyMap<string, Analysis | undefined>> {
  const found = new Map<string, Analysis | undefined>(unread.map((path) => [path, undefined]))
  await inParallel(
    batchesOf(requests, (request) => request.size),
    workers.width,
    async (batch) => {
      for (const [{ path }, analysis] of sideBySide(batch, await workers.analyse(batch))) {
        for (const blob of analysis.created ?? []) remember(blob)
        found.set(path, analysis)
      }
    },
  )
  return found
}

/** What was read of a file in its own place. */
type AnalysisOf = (file: StoredFile) => Analysis | undefined

/** What was found just now, or by an earlier upload; by path. */
function readingsOf(
  files: readonly ComparedFile[],
  analysisOf: AnalysisOf,
  analyses: ByContent<Analysis>,
  readings: Readings,
): ReadonlyMap<string, Reading> {
  const found = new Map<string, Reading>()
  for (const file of files) {
    const reading = file.live
      ? file.reading
      : (analysisOf(file) ?? readings.get(file) ?? withoutLinks(analyses.get(file)))
    if (reading) found.set(file.path, reading)
  }
  return found
}

/** What a content says in any folder. */
function withoutLinks(reading: Reading | undefined): Reading | undefined {
  return reading && { ...(reading.title !== undefined && { title: reading.title }), key: reading.key }
}

function keepReadings(files: readonly ComparedFile[], analysisOf: AnalysisOf, readings: Readings): void {
  for (const file of files) {
    const analysis = file.live ? undefined : analysisOf(file)
    if (analysis) readings.set(file, analysis)
  }
}

/** What is known of a content, the newest last: a page that was only read again for its links keeps its variants. */
function joinFacts(...known: readonly ByContent<FileFacts>[]): FactsOf {
  const filled = known.filter(({ size }) => size > 0)
  return (file) => {
    let joined: FileFacts | undefined
    for (const facts of filled) {
      const found = facts.get(file)
      if (found) joined = joined ? { ...joined, ...found } : found
    }
    return joined
  }
}

/** Each policy is extended whenever the page is sent: a page of thousands would be slow for all visitors of the edge. */
function requireFewPolicies(path: string, { injection }: Analysis): void {
  const policies = injection?.csp ?? []
  const chars = policies.reduce((sum, { policy }) => sum + policy.length, 0)
  const most = CSP_LIMITS.inPage
  if (policies.length <= most.policies && chars <= most.chars) return
  throw errors.invalidRequest(
    `${quotePath(path)} has more than ${most.policies} Content-Security-Policy metas, or more than ${most.chars} characters of them. Join them into one.`,
  )
}

/** The scripts and stylesheets of the pages, the landing page's first and those of untouched pages last. */
function loadedCode(
  landing: StoredFile,
  files: readonly StoredFile[],
  readingOf: ReadonlyMap<string, Reading>,
  ofUntouched: ReadonlySet<EncodedCode>,
): { readonly lists: ReadonlySet<EncodedCode>; readonly isCut: boolean } {
  const lists = new Set<EncodedCode>()
  let left = MAX_CODE_CHARS
  const codeOf = ({ path }: StoredFile): EncodedCode | undefined => readingOf.get(path)?.code
  for (const code of [codeOf(landing), ...files.map(codeOf), ...ofUntouched]) {
    if (code === undefined || lists.has(code)) continue
    left -= code.length
    if (left < 0) return { lists, isCut: true }
    lists.add(code)
  }
  return { lists, isCut: false }
}
