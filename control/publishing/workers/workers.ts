/** Everything that publishing does off the event loop, as plain async functions. */
import { availableParallelism } from 'node:os'
import type { BlobStoreLocation } from '../../../shared/blobs/open.ts'
import { errors, type ApiError } from '../../../shared/errors.ts'
import type { AnalysisRequest } from '../analyse.ts'
import type { ArchiveEntry } from '../archive-gate.ts'
import type { RenderedPage } from '../markdown.ts'
import type { AnalyseResult, ContentJob, ContentWorkerData, ExtractResult, InspectResult, MarkdownJob } from './jobs.ts'
import { createWorkerPool, JobCrashed, JobTimeout, type PoolOptions, type WorkerPool } from './pool.ts'

/** The specification's examples take a millisecond; only hostile nesting takes longer than this. */
const MARKDOWN_TIMEOUT_MS = 5000
/** A megabyte of prose takes five seconds of a core, one of tables eleven, and the machine may be busy. */
const MARKDOWN_TIMEOUT_MS_PER_KB = 30
/** The time limit of what is rendered stays below what the edge waits for an answer. */
const MAX_MARKDOWN_CHARS = 3_000_000
/** Above this a document has a thread of its own, so that others do not wait; and what fails is too large, not hostile. */
const LARGE_MARKDOWN_CHARS = 500_000
/** Generous: a batch is a few megabytes, but the machine may be busy. */
const CONTENT_TIMEOUT_MS = 60_000
/** br 11 takes six seconds for a full batch of an idle core, longer on a busy one. */
const REFINE_TIMEOUT_MS = 600_000
const MARKDOWN_THREADS = 2
/** A megabyte of prose takes 300 MB, one of tables 750. The heap grows when it is needed and goes with its thread. */
const MARKDOWN_HEAP_MB = 512
const LARGE_MARKDOWN_HEAP_MB = 1536
/** Each may take a minute; whoever comes later is told so at once. */
const MAX_WAITING_LARGE_MARKDOWN = 3
const CONTENT_HEAP_MB = 256
const MAX_WAITING_JOBS = 2000
/** A thread that has unpacked an archive holds some 50 MB; starting one takes as many milliseconds. */
const IDLE_MS = 60_000

export interface PublishingWorkers {
  renderMarkdown(job: MarkdownJob): Promise<RenderedPage>
  analyse(files: readonly AnalysisRequest[]): Promise<AnalyseResult>
  inspect(archive: string, capBytes: number): Promise<InspectResult>
  extract(archive: string, entries: readonly ArchiveEntry[]): Promise<ExtractResult>
  /** Like `analyse`, in one thread of low priority that nobody waits for. */
  refine(files: readonly AnalysisRequest[]): Promise<AnalyseResult>
  /** How many content jobs run at once. */
  readonly width: number
  close(): Promise<void>
}

export interface WorkersOptions {
  readonly blobStore: BlobStoreLocation
  readonly markdownTimeoutMs?: number
}

export function createPublishingWorkers(options: WorkersOptions): PublishingWorkers {
  const width = Math.max(2, Math.min(8, availableParallelism()))
  const contentPool = (size: number, workerData: ContentWorkerData): WorkerPool =>
    createWorkerPool({
      script: new URL('./content-worker.ts', import.meta.url),
      size,
      workerData,
      maxHeapMb: CONTENT_HEAP_MB,
      maxWaiting: MAX_WAITING_JOBS,
      idleMs: IDLE_MS,
    })
  const { blobStore } = options
  const content = contentPool(width, { blobStore, priority: 'normal' })
  // Threads of their own: somebody's page must not wait behind what other people's archives unpack to.
  const unpacking = contentPool(width, { blobStore, priority: 'below normal' })
  const background = contentPool(1, { blobStore, priority: 'low' })
  const markdownPool = (limits: Pick<PoolOptions, 'size' | 'maxHeapMb' | 'maxWaiting'>): WorkerPool =>
    createWorkerPool({ script: new URL('./markdown-worker.ts', import.meta.url), idleMs: IDLE_MS, ...limits })
  const markdown = markdownPool({
    size: MARKDOWN_THREADS,
    maxHeapMb: MARKDOWN_HEAP_MB,
    maxWaiting: MAX_WAITING_JOBS,
  })
  const largeMarkdown = markdownPool({
    size: 1,
    maxHeapMb: LARGE_MARKDOWN_HEAP_MB,
    maxWaiting: MAX_WAITING_LARGE_MARKDOWN,
  })
  const run = <Result>(pool: WorkerPool, job: ContentJob): Promise<Result> =>
    pool.run<Result>(job, { timeoutMs: CONTENT_TIMEOUT_MS })
  return {
    width,
    renderMarkdown: async (job) => {
      if (job.source.length > MAX_MARKDOWN_CHARS) throw markdownTooLarge()
      const timeoutMs = options.markdownTimeoutMs ?? markdownTimeoutMs(job)
      const pool = isLarge(job) ? largeMarkdown : markdown
      return pool.run<RenderedPage>(job, { timeoutMs }).catch((error: unknown) => {
        throw markdownError(error, job)
      })
    },
    analyse: (files) => run<AnalyseResult>(content, { kind: 'analyse', files }),
    refine: (files) => background.run<AnalyseResult>({ kind: 'analyse', files }, { timeoutMs: REFINE_TIMEOUT_MS }),
    inspect: (archive, capBytes) => run<InspectResult>(unpacking, { kind: 'inspect', archive, capBytes }),
    extract: (archive, entries) => run<ExtractResult>(unpacking, { kind: 'extract', archive, entries }),
    close: async () =>
      void (await Promise.all([content, unpacking, background, markdown, largeMarkdown].map((pool) => pool.close()))),
  }
}

function isLarge({ source }: MarkdownJob): boolean {
  return source.length > LARGE_MARKDOWN_CHARS
}

function markdownTimeoutMs({ source }: MarkdownJob): number {
  return MARKDOWN_TIMEOUT_MS + Math.ceil(source.length / 1000) * MARKDOWN_TIMEOUT_MS_PER_KB
}

/** A page that cannot be rendered in time or memory is the publisher's to change. */
function markdownError(error: unknown, job: MarkdownJob): unknown {
  if (!(error instanceof JobTimeout) && !(error instanceof JobCrashed)) return error
  if (isLarge(job)) return markdownTooLarge()
  return errors.invalidRequest(
    'The Markdown takes too long to render. Look for very deep nesting or long runs of * _ [ or >, or publish it as HTML.',
  )
}

function markdownTooLarge(): ApiError {
  return errors.invalidRequest(
    'The Markdown is too large to render as one page. Split it into several documents, or publish it as HTML.',
  )
}
