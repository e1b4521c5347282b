/** Runs the phishing heuristic off the event loop. */
import type { Log } from '../../shared/log.ts'
import type { Inspection } from '../anonymous/anonymous.ts'
import { createWorkerPool } from '../publishing/workers/pool.ts'

const TIMEOUT_MS = 2000
const HEAP_MB = 128
const MAX_WAITING = 500

/** A page that the heuristic cannot finish was made to defeat it: a person looks at it. */
const UNDECIDED: Inspection = { verdict: 'review', score: 0, reasons: ['the page could not be inspected in time'] }

export function createInspector({ log }: { log: Log }) {
  const pool = createWorkerPool({
    script: new URL('./inspector-worker.ts', import.meta.url),
    size: 1,
    maxHeapMb: HEAP_MB,
    maxWaiting: MAX_WAITING,
  })
  return {
    async inspect(page: Buffer): Promise<Inspection> {
      const inspection = await pool.run<Inspection>({ page }, { timeoutMs: TIMEOUT_MS }).catch(() => UNDECIDED)
      if (inspection.verdict !== 'ok') log.warn({ ...inspection }, 'phishing heuristic')
      return inspection
    },
    close: () => pool.close(),
  }
}
