/** The thread that stores small blobs: a batch in, what became of each out. */
import { workerData } from 'node:worker_threads'
import { directCalls } from '../../../../shared/blobs/file-calls.ts'
import { openBlobStore, type BlobStoreLocation } from '../../../../shared/blobs/open.ts'
import { serveJobs } from '../../../../shared/running/threads/serve.ts'
import type { StoringJob, StoringOutcome } from './storing.ts'

const blobs = openBlobStore(workerData as BlobStoreLocation, { files: directCalls })

serveJobs(({ blobs: batch }: StoringJob): Promise<StoringOutcome[]> => Promise.all(batch.map(store)))

async function store(bytes: Uint8Array): Promise<StoringOutcome> {
  try {
    return { stored: await blobs.put(bytes) }
  } catch (error) {
    const { message, code, stack } = error as NodeJS.ErrnoException
    return { failure: { message, code, stack } }
  }
}
