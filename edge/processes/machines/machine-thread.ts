/** A thread that makes texts for machines, so that no visitor of the worker waits for it. */
import { hash } from 'node:crypto'
import os from 'node:os'
import { serveJobs } from '../../../shared/running/threads/serve.ts'
import { pageToMarkdown } from './convert.ts'
import type { MachineJob, MadeText } from './jobs.ts'
import { llmsTxt } from './llms-txt.ts'
import { estimateTokens } from './tokens.ts'

// On Linux "process 0" is the calling thread: visitors of pages come first.
if (process.platform === 'linux') os.setPriority(0, os.constants.priority.PRIORITY_BELOW_NORMAL)

serveJobs(async (job: MachineJob): Promise<MadeText> => {
  const text = textOf(job)
  const bytes = Buffer.from(text)
  return { bytes, hash: hash('sha256', bytes, 'hex'), tokens: estimateTokens(text) }
})

function textOf(job: MachineJob): string {
  switch (job.kind) {
    case 'page':
      return pageToMarkdown(decoded(job.bytes, charsetOf(job)), job.address)
    case 'source':
      return decoded(job.bytes, markedCharset(job.bytes) ?? 'utf-8')
    case 'list':
      return llmsTxt(
        job.host,
        job.pages.map(({ address, head }) => ({ address, head: decoded(head, 'utf-8') })),
        job.left,
      )
    default:
      return job satisfies never
  }
}

/** Browsers look no further for it either. */
const SNIFFED_BYTES = 1024

function charsetOf({ bytes, type }: Extract<MachineJob, { kind: 'page' }>): string {
  const head = Buffer.from(bytes.subarray(0, SNIFFED_BYTES)).toString('latin1')
  const said = /charset=["']?([\w-]{1,40})/i
  return markedCharset(bytes) ?? said.exec(type)?.[1] ?? said.exec(head)?.[1] ?? 'windows-1252'
}

function markedCharset(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 'utf-8' : undefined
}

function decoded(bytes: Uint8Array, charset: string): string {
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch {
    // A label that means nothing.
    return new TextDecoder().decode(bytes)
  }
}
