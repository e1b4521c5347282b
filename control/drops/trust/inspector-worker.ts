import { serveJobs } from '../publishing/workers/serve.ts'
import { inspectPage } from './phishing.ts'

serveJobs(async (job: { page: Uint8Array }) => inspectPage(Buffer.from(job.page)))
