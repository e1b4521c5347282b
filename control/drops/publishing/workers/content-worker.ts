/** A thread that reads, checks and compresses what was uploaded. It opens the blob store itself, so that bytes stay here. */
import os from 'node:os'
import { workerData } from 'node:worker_threads'
import { directCalls } from '../../../../shared/blobs/file-calls.ts'
import { openBlobStore } from '../../../../shared/blobs/open.ts'
import { analyse } from '../analysis/analyse.ts'
import { inspectArchive } from '../archive/gate.ts'
import { extractEntries, verifyEntries } from '../archive/extract.ts'
import { compareTexts } from '../comparison/compare-texts.ts'
import { changedPassages, findAnchor, placeAnchors } from '../comparison/place-threads.ts'
import { readWords } from '../analysis/page-words.ts'
import { unpackFiles, writeReport } from '../analysis/report.ts'
import { readSiteRules } from '../manifest/site-rules.ts'
import type { ContentJob, ContentWorkerData } from './jobs.ts'
import { serveJobs, spentMs } from '../../../../shared/running/threads/serve.ts'

const { blobStore, priority } = workerData as ContentWorkerData
const blobs = openBlobStore(blobStore, { files: directCalls })
const PRIORITIES = {
  'below normal': os.constants.priority.PRIORITY_BELOW_NORMAL,
  low: os.constants.priority.PRIORITY_LOW,
} as const
// On Linux "process 0" is the calling thread, so that only this one steps back. One that stays is left as it started.
if (priority !== 'normal' && process.platform === 'linux') os.setPriority(0, PRIORITIES[priority])

/** Links that are looked at between two looks at the clock: some tens of microseconds. */
const LINKS_PER_LOOK = 64

/** Whether this thread has worked so long since. A thread that got no time has used none. */
function createBudget(budgetMs: number): () => boolean {
  const end = spentMs() + budgetMs
  let asked = 0
  let isOver = false
  return () => (isOver ||= ++asked % LINKS_PER_LOOK === 0 && spentMs() > end)
}

serveJobs((job: ContentJob): Promise<unknown> => {
  switch (job.kind) {
    case 'analyse':
      return Promise.all(job.files.map((file) => analyse(blobs, file)))
    case 'inspect':
      return inspectArchive(job.archive, job.limits)
    case 'verify':
      return verifyEntries(job.archive, job.entries)
    case 'extract':
      return extractEntries(blobs, job.archive, job.entries)
    case 'rules':
      return readSiteRules(blobs, job.files)
    case 'compare':
      return compareTexts(blobs, job.pairs)
    case 'place':
      return placeAnchors(blobs, job.requests)
    case 'find':
      return findAnchor(blobs, job.anchor, job.file)
    case 'passages':
      return changedPassages(blobs, job.before, job.after)
    case 'words':
      return readWords(blobs, job.pages)
    case 'card':
      // The library is read by those threads alone that draw.
      return import('../analysis/card-picture.ts').then(async ({ drawCard }) =>
        blobs.put(Buffer.from(await drawCard(job.text))),
      )
    case 'report': {
      const isOver = createBudget(job.budgetMs)
      return Promise.resolve(writeReport({ ...job.input, files: unpackFiles(job.files) }, isOver))
    }
    default:
      return job satisfies never
  }
})
