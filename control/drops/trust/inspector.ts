/** Runs the phishing heuristic off the event loop, in threads that read the page themselves; on short pages at once. */
import type { BlobStoreLocation } from '../../../shared/blobs/open.ts'
import { errors, type ApiError } from '../../../shared/contracts/errors.ts'
import type { Log } from '../../../shared/running/log.ts'
import { inspectPage, type Inspection } from './phishing.ts'
import { createWorkerPool, ofUnfinished } from '../../../shared/running/threads/pool.ts'

/** The largest honest page takes a tenth of a second, the worst one a second; the machine may be busy. */
const TIMEOUT_MS = 5000
const HEAP_MB = 128
const MAX_WAITING = 500
const MAX_WAIT_MS = 6000
/** A thread without work gives its memory back; starting one takes less than a tenth of a second. */
const IDLE_MS = 60_000
/** One network holds one of them. */
const THREADS = 2

export interface Inspector {
  /**
   * `hash`: the blob of the page. `network`: who sent it; senders share the threads. A page that cannot be inspected is
   * refused: it may have been made to defeat the heuristic.
   */
  inspect(hash: string, network: string): Promise<Inspection>
  close(): Promise<void>
}

export interface InspectorOptions {
  readonly blobStore: BlobStoreLocation
  readonly log: Log
  /** The bytes of a short page that was stored a moment ago: it is judged in less time than a thread is told of it. */
  atHand(hash: string): Buffer | undefined
  readonly timeoutMs?: number
}

export function createInspector({ blobStore, log, atHand, timeoutMs = TIMEOUT_MS }: InspectorOptions): Inspector {
  const pool = createWorkerPool({
    script: new URL('./inspector-worker.ts', import.meta.url),
    workerData: blobStore,
    size: THREADS,
    share: 1,
    maxHeapMb: HEAP_MB,
    maxWaiting: MAX_WAITING,
    maxWaitMs: MAX_WAIT_MS,
    idleMs: IDLE_MS,
  })
  return {
    async inspect(hash, network) {
      const short = atHand(hash)
      const limits = { timeoutMs, owner: network }
      const inspection = short
        ? inspectPage(short)
        : await pool.run<Inspection>({ hash }, limits).catch((error: unknown) => {
            log.warn({ err: error }, 'a page could not be inspected')
            throw ofUnfinished(error, undecided)
          })
      if (inspection.verdict !== 'ok') log.warn({ ...inspection }, 'phishing heuristic')
      return inspection
    },
    close: () => pool.close(),
  }
}

function undecided(): ApiError {
  return errors.contentRejected(
    'The page could not be checked in time, so it was not published. Make it smaller, or publish it from an account.',
  )
}
