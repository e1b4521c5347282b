/** A thread that renders Markdown. Hostile input can take it minutes; the pool ends it first. */
import { renderMarkdown } from '../markdown/markdown.ts'
import type { MarkdownJob } from './jobs.ts'
import { serveJobs } from '../../../../shared/running/threads/serve.ts'

serveJobs(async (job: MarkdownJob) => renderMarkdown(job.source, job))
