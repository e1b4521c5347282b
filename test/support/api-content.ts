/** The content that the calls of the API model send: small pages that differ by one word. */
import { createHash } from 'node:crypto'

export interface SentFile {
  readonly path: string
  readonly sha256: string
  readonly size: number
  readonly bytes: Buffer
}

/** Rendered to the same page whenever it is sent. */
export const MARKDOWN = 'markdown'

function file(path: string, text: string): SentFile {
  const bytes = Buffer.from(text)
  return { path, bytes, size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
}

export function singleFile(kind: string, text: string): SentFile {
  return kind === 'markdown' ? file('page.md', `# ${text}\n`) : file('page.html', pageOf(text))
}

export function bundleFiles(text: string): SentFile[] {
  return [file('index.html', pageOf(text)), file('style.css', `/* ${text} */`)]
}

/** Without an index the first page is called otherwise. */
export function uploadFiles({ texts, hasIndex }: { texts: readonly string[]; hasIndex: boolean }): SentFile[] {
  return texts.map((text, index) => file(index === 0 && hasIndex ? 'index.html' : `page-${index}.html`, pageOf(text)))
}

function pageOf(text: string): string {
  return `<!doctype html><html lang="en"><head><title>${text}</title></head><body><p>${text}</p></body></html>`
}
