/** The thread that stores small blobs: a batch in, what became of each out. */
import { workerData } from 'node:worker_threads'
import { directCalls, waitingCalls } from '../../../../shared/blobs/file-calls.ts'
import type { BlobStore } from '../../../../shared/blobs/blob-store.ts'
import { openBlobStore, type BlobStoreLocation } from '../../../../shared/blobs/open.ts'
import { serveJobs } from '../../../../shared/running/threads/serve.ts'
import type { StoringJob, StoringOutcome } from './storing.ts'

/** A page with its manifest. The disk is at both in less time than it takes to wake a thread for each of their syncs. */
const FEW_BLOBS = 2

const location = workerData as BlobStoreLocation
const few = openBlobStore(location, { files: waitingCalls })
const many = openBlobStore(location, { files: directCalls })

serveJobs(({ blobs: batch }: StoringJob): Promise<StoringOutcome[]> => {
  const blobs = batch.length <= FEW_BLOBS ? few : many
  return Promise.all(batch.map((bytes) => store(blobs, bytes)))
})

async function store(blobs: BlobStore, bytes: Uint8Array): Promise<StoringOutcome> {
  try {
    return { stored: await blobs.put(bytes) }
  } catch (error) {
    const { message, code, stack } = error as NodeJS.ErrnoException
    return { failure: { message, code, stack } }
  }
}
