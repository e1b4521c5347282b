import { serveJobs } from '../../../shared/running/threads/serve.ts'
import { inspectPage } from './phishing.ts'

serveJobs(async (job: { page: Uint8Array }) => inspectPage(Buffer.from(job.page)))
