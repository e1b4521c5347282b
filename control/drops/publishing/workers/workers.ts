/** Everything that publishing does off the event loop, as plain async functions. */
import type { ArchiveLimits } from '../archive/gate.ts'
import { availableParallelism } from 'node:os'
import type { StoredBlob } from '../../../../shared/blobs/blob-store.ts'
import type { BlobStoreLocation } from '../../../../shared/blobs/open.ts'
import { errors, type ApiError } from '../../../../shared/contracts/errors.ts'
import { hasLittleMemory } from '../../../../shared/running/memory.ts'
import type { AnalysisRequest } from '../analysis/analyse.ts'
import type { ArchiveEntry } from '../archive/gate.ts'
import type { Anchor, FoundAnchor } from '../comparison/anchors.ts'
import type { TextChange, TextPair } from '../comparison/compare-texts.ts'
import type { PageFile, PlaceAnswer, PlaceRequest } from '../comparison/place-threads.ts'
import type { RenderedPage } from '../markdown/markdown.ts'
import type { CardText } from '../analysis/card-picture.ts'
import type { ReadPage } from '../analysis/page-words.ts'
import { quotePath } from '../../../../shared/values/quoted-path.ts'
import { CUT_REPORT, packFiles, type LinkReport, type ReportInput } from '../analysis/report.ts'
import type { RuleFiles, SiteRules } from '../manifest/site-rules.ts'
import type { AnalyseResult, ContentJob, ContentWorkerData, InspectResult, MarkdownJob } from './jobs.ts'
import {
  createWorkerPool,
  JobCrashed,
  JobFailed,
  JobTimeout,
  ofUnfinished,
  type PoolOptions,
  type WorkerPool,
} from '../../../../shared/running/threads/pool.ts'

/** The specification's examples take a millisecond; only hostile nesting takes longer than this. */
const MARKDOWN_TIMEOUT_MS = 5000
/** A megabyte of prose takes five seconds of a core, one of tables eleven, and the machine may be busy. */
const MARKDOWN_TIMEOUT_MS_PER_KB = 30
/** The time limit of what is rendered stays below what the edge waits for an answer. */
const MAX_MARKDOWN_CHARS = 3_000_000
/** No encoding that is read takes more bytes for a UTF-16 unit than UTF-8: a larger document has more characters than are rendered. */
const MAX_MARKDOWN_BYTES = 3 * MAX_MARKDOWN_CHARS
/** Above this a document has a thread of its own, so that others do not wait; and what fails is too large, not hostile. */
const LARGE_MARKDOWN_CHARS = 500_000
/** Generous: a batch is a few megabytes, but the machine may be busy. */
const CONTENT_TIMEOUT_MS = 60_000
/** br 11 takes six seconds for a full batch of an idle core, longer on a busy one. */
const REFINE_TIMEOUT_MS = 600_000
/** A tenth of a second on an idle core, and the library is read first. */
const CARD_TIMEOUT_MS = 30_000
/** A whole file of hostile rules takes a tenth of it. */
const RULES_TIMEOUT_MS = 15_000
/** Four thousand honest pages take a tenth of it. The report then says that it was cut, and the publish stands. */
const REPORT_BUDGET_MS = 4000
const REPORT_TIMEOUT_MS = 15_000
/** Eight texts at their budgets take a tenth of it. */
const COMPARE_TIMEOUT_MS = 5000
/** A hundred comments on a page of a thousand paragraphs take a tenth of a second. */
const PLACE_TIMEOUT_MS = 10_000
/** Eight megabytes of pages take a tenth of it. */
const WORDS_TIMEOUT_MS = 10_000
/** No caller waits in silence: one without a thread by now is asked to come back. */
const MAX_WAIT_MS = 6000
/** Each caller has one of them, so that a hostile document holds up its own sender. */
const MARKDOWN_THREADS = 3
const LARGE_MARKDOWN_THREADS = 2
/** A megabyte of prose takes 300 MB, one of tables 750. The heap grows when it is needed and goes with its thread. */
const MARKDOWN_HEAP_MB = 512
const LARGE_MARKDOWN_HEAP_MB = 1536
/** Each may take a minute; later callers are told so at once. */
const MAX_WAITING_LARGE_MARKDOWN = 3
const CONTENT_HEAP_MB = 256
const MAX_WAITING_JOBS = 2000
/** A thread holds some 20 MB; starting one takes as many milliseconds. */
const IDLE_MS = 60_000
/** One that has unpacked an archive holds more, up to a hundred: it goes while the files are read. */
const UNPACKED_IDLE_MS = 5000

/** The work on one upload. Everything that a publisher's content makes impossible is a 400 that says so. */
export interface UploadWorkers {
  renderMarkdown(job: MarkdownJob): Promise<RenderedPage>
  analyse(files: readonly AnalysisRequest[]): Promise<AnalyseResult>
  inspect(archive: string, limits: ArchiveLimits): Promise<InspectResult>
  /** Throws when an entry is not what the archive says. */
  verify(archive: string, entries: readonly ArchiveEntry[]): Promise<void>
  extract(archive: string, entries: readonly ArchiveEntry[]): Promise<readonly StoredBlob[]>
  readRules(files: RuleFiles): Promise<SiteRules>
  /** Never fails: a report that cannot be written in time says so. */
  report(input: ReportInput): Promise<LinkReport>
  /** How many content jobs of one upload run at once. */
  readonly width: number
}

export interface PublishingWorkers {
  /**
   * `owner`: whose upload it is, an account or a network; owners share the threads. `signal`: aborted when the sender has
   * left, whose jobs then do not begin any more.
   */
  forUpload(owner: string, signal?: AbortSignal): UploadWorkers
  /** What changed in texts; where that takes too long, the change says so. */
  compare(owner: string, pairs: readonly TextPair[]): Promise<readonly TextChange[]>
  /** Where comments are in a version; none where that takes too long. */
  place(owner: string, requests: readonly PlaceRequest[]): Promise<readonly PlaceAnswer[]>
  /** Where a new comment is; null where the page's text does not have it, or is not read in time. */
  find(owner: string, anchor: Anchor, file: PageFile): Promise<FoundAnchor | null>
  /** The card of a drop, stored as a blob; undefined where it takes too long. */
  card(owner: string, text: CardText): Promise<StoredBlob | undefined>
  /** What of a page is new since an earlier version; nothing where that takes too long. */
  passages(owner: string, before: PageFile | undefined, after: PageFile): Promise<readonly Anchor[]>
  /** What pages are found by; nothing where that takes too long. */
  words(pages: readonly ReadPage[]): Promise<readonly string[]>
  /** Like `analyse`, in threads of low priority that no caller waits for: as many at once as there are cores. */
  compress(files: readonly AnalysisRequest[]): Promise<AnalyseResult>
  /** The same in one thread more, so that what takes minutes keeps nothing waiting. */
  refine(files: readonly AnalysisRequest[]): Promise<AnalyseResult>
  /** How many of `compress` run at once. */
  readonly width: number
  close(): Promise<void>
}

export interface WorkersOptions {
  readonly blobStore: BlobStoreLocation
  readonly markdownTimeoutMs?: number
}

export function createPublishingWorkers(options: WorkersOptions): PublishingWorkers {
  const width = widthOfMachine()
  const pools = openPools(options.blobStore, width)
  const { content, background } = pools

  const inBackground = (owner: string, files: readonly AnalysisRequest[]): Promise<AnalyseResult> =>
    background.run<AnalyseResult>({ kind: 'analyse', files }, { timeoutMs: REFINE_TIMEOUT_MS, owner })

  return {
    width,
    forUpload: (owner, signal) => uploadWorkers(pools, { ...options, width, owner, signal }),
    compare: (owner, pairs) =>
      content
        .run<readonly TextChange[]>({ kind: 'compare', pairs }, { timeoutMs: COMPARE_TIMEOUT_MS, owner })
        .catch(orElse<readonly TextChange[]>(pairs.map(({ path }) => ({ path, shown: undefined })))),
    place: (owner, requests) =>
      content
        .run<readonly PlaceAnswer[]>({ kind: 'place', requests }, { timeoutMs: PLACE_TIMEOUT_MS, owner })
        .catch(orElse<readonly PlaceAnswer[]>([])),
    find: (owner, anchor, file) =>
      content
        .run<FoundAnchor | null>({ kind: 'find', anchor, file }, { timeoutMs: PLACE_TIMEOUT_MS, owner })
        .catch(orElse<FoundAnchor | null>(null)),
    passages: (owner, before, after) =>
      content
        .run<readonly Anchor[]>({ kind: 'passages', before, after }, { timeoutMs: PLACE_TIMEOUT_MS, owner })
        .catch(orElse<readonly Anchor[]>([])),
    words: (pages) =>
      content
        .run<readonly string[]>({ kind: 'words', pages }, { timeoutMs: WORDS_TIMEOUT_MS, owner: 'search' })
        .catch(orElse<readonly string[]>([])),
    card: (owner, text) =>
      content
        .run<StoredBlob | undefined>({ kind: 'card', text }, { timeoutMs: CARD_TIMEOUT_MS, owner })
        .catch(orElse<StoredBlob | undefined>(undefined)),
    compress: (files) => inBackground('compress', files),
    refine: (files) => inBackground('refine', files),
    close: async () => void (await Promise.all(Object.values(pools).map((pool) => pool.close()))),
  }
}

/** The threads of publishing, by what they are for. */
interface Pools {
  readonly content: WorkerPool
  /** Threads of their own: a page must not wait behind what other people's archives unpack to. */
  readonly unpacking: WorkerPool
  /** Every core that is idle; what is not is left to others by the priority. */
  readonly background: WorkerPool
  readonly markdown: WorkerPool
  readonly largeMarkdown: WorkerPool
}

function openPools(blobStore: BlobStoreLocation, width: number): Pools {
  const contentPool = (priority: ContentWorkerData['priority'], idleMs = IDLE_MS): WorkerPool =>
    createWorkerPool({
      script: new URL('./content-worker.ts', import.meta.url),
      workerData: { blobStore, priority } satisfies ContentWorkerData,
      // One upload uses all cores; the thread above that is there for the next one.
      size: width + 1,
      share: width,
      maxHeapMb: CONTENT_HEAP_MB,
      maxWaiting: MAX_WAITING_JOBS,
      maxWaitMs: MAX_WAIT_MS,
      idleMs,
    })
  const markdownPool = (limits: Pick<PoolOptions, 'size' | 'maxHeapMb' | 'maxWaiting'>): WorkerPool =>
    createWorkerPool({
      script: new URL('./markdown-worker.ts', import.meta.url),
      share: 1,
      maxWaitMs: MAX_WAIT_MS,
      idleMs: IDLE_MS,
      ...limits,
    })
  return {
    content: contentPool('normal'),
    unpacking: contentPool('below normal', UNPACKED_IDLE_MS),
    background: contentPool('low'),
    markdown: markdownPool({ size: MARKDOWN_THREADS, maxHeapMb: MARKDOWN_HEAP_MB, maxWaiting: MAX_WAITING_JOBS }),
    largeMarkdown: markdownPool({
      size: LARGE_MARKDOWN_THREADS,
      maxHeapMb: LARGE_MARKDOWN_HEAP_MB,
      maxWaiting: MAX_WAITING_LARGE_MARKDOWN,
    }),
  }
}

/** Whose upload it is, and what bounds the work on it. */
interface UploadWork extends Pick<WorkersOptions, 'markdownTimeoutMs'> {
  readonly width: number
  readonly owner: string
  readonly signal: AbortSignal | undefined
}

function uploadWorkers({ content, unpacking, markdown, largeMarkdown }: Pools, work: UploadWork): UploadWorkers {
  const { owner, signal } = work
  /** `refusal`: what a publisher hears whose content takes more time or memory than there is. */
  const run = <Result>(pool: WorkerPool, job: ContentJob, refusal: string, timeoutMs = CONTENT_TIMEOUT_MS) =>
    pool.run<Result>(job, { timeoutMs, owner, signal }).catch((error: unknown): never => {
      throw ofUnfinished(error, () => errors.invalidRequest(refusal))
    })
  return {
    width: work.width,
    renderMarkdown: async (job) => {
      if (job.source.length > MAX_MARKDOWN_CHARS) throw markdownTooLarge()
      const timeoutMs = work.markdownTimeoutMs ?? markdownTimeoutMs(job)
      const pool = isLarge(job) ? largeMarkdown : markdown
      return pool.run<RenderedPage>(job, { timeoutMs, owner, signal }).catch((error: unknown) => {
        throw markdownError(error, job)
      })
    },
    analyse: (files) => run<AnalyseResult>(content, { kind: 'analyse', files }, `${nameThem(files)} ${UNREADABLE}`),
    inspect: (archive, limits) =>
      run<InspectResult>(unpacking, { kind: 'inspect', archive, limits }, `The archive ${UNREADABLE}`),
    verify: (archive, entries) => run<void>(unpacking, { kind: 'verify', archive, entries }, NOT_UNPACKED),
    extract: (archive, entries) =>
      run<readonly StoredBlob[]>(unpacking, { kind: 'extract', archive, entries }, NOT_UNPACKED),
    readRules: (files) => run<SiteRules>(content, { kind: 'rules', files }, TOO_MANY_RULES, RULES_TIMEOUT_MS),
    report: ({ files, ...input }) =>
      content
        .run<LinkReport>(
          { kind: 'report', input, files: packFiles(files), budgetMs: REPORT_BUDGET_MS },
          { timeoutMs: REPORT_TIMEOUT_MS, owner, signal },
        )
        .catch(() => CUT_REPORT),
  }
}

const UNREADABLE = 'cannot be read in the time and memory that we have for it.'
const NOT_UNPACKED = 'The archive cannot be unpacked in the time and memory that we have for it.'
const TOO_MANY_RULES = 'The rules in _redirects and _headers take too long to check. Use fewer of them.'

/** A thread holds 20 MB and more. */
function widthOfMachine(): number {
  return hasLittleMemory() ? 1 : Math.max(2, Math.min(8, availableParallelism()))
}

/** What takes too long is left as it was; what failed otherwise is our fault. */
function orElse<Value>(value: Value): (error: unknown) => Value {
  return (error) => {
    if (error instanceof JobTimeout || error instanceof JobCrashed) return value
    throw error
  }
}

function nameThem(files: readonly AnalysisRequest[]): string {
  const first = quotePath(files[0]?.path ?? '')
  return files.length === 1 ? first : `${first} or one of the files after it`
}

/** Refuses by its size what need not be read. */
export function requireMarkdownBytes(size: number): void {
  if (size > MAX_MARKDOWN_BYTES) throw markdownTooLarge()
}

function isLarge({ source }: MarkdownJob): boolean {
  return source.length > LARGE_MARKDOWN_CHARS
}

function markdownTimeoutMs({ source }: MarkdownJob): number {
  return MARKDOWN_TIMEOUT_MS + Math.ceil(source.length / 1000) * MARKDOWN_TIMEOUT_MS_PER_KB
}

/** A page that cannot be rendered in time or memory is the publisher's to change. */
function markdownError(error: unknown, job: MarkdownJob): unknown {
  const refusal = (): ApiError => (isLarge(job) ? markdownTooLarge() : markdownTooSlow())
  return error instanceof JobFailed ? refusal() : ofUnfinished(error, refusal)
}

function markdownTooSlow(): ApiError {
  return errors.invalidRequest(
    'The Markdown takes too long to render. Look for very deep nesting or long runs of * _ [ or >, or publish it as HTML.',
  )
}

function markdownTooLarge(): ApiError {
  return errors.invalidRequest(
    'The Markdown is too large to render as one page. Split it into several documents, or publish it as HTML.',
  )
}
