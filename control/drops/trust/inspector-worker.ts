import { workerData } from 'node:worker_threads'
import { directCalls } from '../../../shared/blobs/file-calls.ts'
import { openBlobStore, type BlobStoreLocation } from '../../../shared/blobs/open.ts'
import { serveJobs } from '../../../shared/running/threads/serve.ts'
import { inspectPage } from './phishing.ts'

const blobs = openBlobStore(workerData as BlobStoreLocation, { files: directCalls })

serveJobs(async ({ hash }: { hash: string }) => inspectPage(await blobs.read(hash)))
