/** Reads a publish form: fields first, then either files (each after its path) or pasted text. Streamed, capped. */
import type { Readable } from 'node:stream'
import { ApiError, errors } from '../../../../shared/errors.ts'
import type { Part, Request } from '../../../ground/http/route.ts'
import type { Intake, PreparedVersion, Publishing, UploadOwner } from '../../../drops/publishing/contract.ts'
import { receiveForm, type FormReader } from '../../../drops/sites/versions/receive.ts'
import { filenameOfText } from './pasted-text.ts'

/** Name of the checkbox of a publisher who means it. */
export const ALLOW_SECRETS = 'allow_secrets'

/** What is looked at to tell HTML from Markdown; longer comments before a page make it Markdown. */
const HEAD_BYTES = 1_000_000

type FilePart = Extract<Part, { kind: 'file' }>

export interface PublishForm {
  /** Undefined when the form carried neither file nor text. */
  readonly prepared: PreparedVersion | undefined
}

export interface ReceiveOptions {
  readonly publishing: Pick<Publishing, 'receive'>
  readonly owner: UploadOwner
  readonly capBytes: number
  /** `page`: one .html or .md and nothing else (anonymous drops); `any`: also zips and several files. */
  readonly accepts: 'page' | 'any'
  /** Collects the fields; they stay readable when the upload is refused. */
  readonly fields: URLSearchParams
  /** Called once, with the fields that came before the first file, before any content is taken in. Throws to refuse. */
  admit(fields: URLSearchParams): Promise<void> | void
}

export async function receivePublishForm(request: Request, options: ReceiveOptions): Promise<PublishForm> {
  const { publishing, owner, capBytes, fields } = options
  const files = options.accepts === 'page' ? createPageTaker() : createFileTaker()
  let admitted = false
  let hasText = false
  /** A wrong file is told at the end of the form: the text after it is the publisher's work, and comes back. */
  let refused: ApiError | undefined
  const admit = async (): Promise<void> => {
    if (!admitted) await options.admit(fields)
    admitted = true
  }
  const reader: FormReader = {
    onField(name, value) {
      if (name === 'paths') files.expect(value)
      else fields.append(name, value)
    },
    async onFile(part, intake) {
      // A file input that was left alone arrives as a part without a name.
      if (part.filename === '') return
      try {
        await admit()
        await files.take(intake, part)
      } catch (error) {
        if (!isAboutContent(error)) throw error
        refused ??= error
        part.stream.resume()
      }
    },
    async onContent(stream, intake) {
      const text = await beginningOf(stream)
      if (text.isWhole) fields.set('text', text.beginning)
      // Files win over text, and come before it in our forms.
      if (refused || files.count > 0 || text.beginning.trim() === '') return
      await admit()
      await intake.addSingle(filenameOfText(text.beginning), text.all, {})
      hasText = true
    },
    async onEnd() {
      if (refused) throw refused
      await admit()
      files.finish()
      if (files.count === 0 && !hasText) return undefined
      return { secrets: fields.has(ALLOW_SECRETS) ? 'allow' : 'refuse' }
    },
  }
  const prepared = await receiveForm(request, publishing, { owner, capBytes }, { reader, contentField: 'text' })
  return { prepared }
}

/** A flood, or more than the plan takes, is not read any further. */
function isAboutContent(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status < 500 && error.status !== 413 && error.status !== 429
}

/** The beginning of a text says what it is; a short one is also kept for the form. */
async function beginningOf(
  stream: Readable,
): Promise<{ beginning: string; isWhole: boolean; all: AsyncGenerator<Buffer> }> {
  const bytes = stream.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>
  const head: Buffer[] = []
  let size = 0
  for (let next = await bytes.next(); next.done !== true; next = await bytes.next()) {
    head.push(next.value)
    size += next.value.length
    if (size >= HEAD_BYTES) break
  }
  return { beginning: Buffer.concat(head).toString(), isWhole: size < HEAD_BYTES, all: joined(head, bytes) }
}

async function* joined(head: readonly Buffer[], rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield* head
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value
}

interface FileTaker {
  readonly count: number
  /** The path of the next file, when the form tells it. */
  expect(path: string): void
  take(intake: Intake, part: FilePart): Promise<void>
  finish(): void
}

function createPageTaker(): FileTaker {
  let count = 0
  return {
    get count() {
      return count
    },
    expect() {},
    async take(intake, part) {
      if (++count > 1) throw errors.invalidRequest('Publish one file at a time. Folders and zips need an account.')
      await intake.addSingle(part.filename, part.stream, {})
    },
    finish() {},
  }
}

/**
 * One page becomes the landing page whatever its name; a zip is unpacked; several files keep their paths.
 * Which of these it is shows only when the second file arrives, so the first page waits for its name.
 */
function createFileTaker(): FileTaker {
  let path: string | undefined
  let first: { name(path: string): void; path: string } | undefined
  let count = 0
  let isWhole = false

  async function take(intake: Intake, part: FilePart): Promise<void> {
    const name = path ?? part.filename.replace(/^.*[/\\]/s, '')
    path = undefined
    if (isWhole)
      throw errors.invalidRequest('Publish a zip or a Markdown file by itself, or several files without one.')
    count++
    if (count === 1 && /\.(?:zip|md|markdown)$/i.test(name)) {
      isWhole = true
      return /\.zip$/i.test(name) ? intake.addZip(part.stream) : intake.addSingle(name, part.stream, {})
    }
    if (count === 1) first = { ...(await intake.addUnnamed(part.stream)), path: name }
    else await intake.addFile(name, part.stream)
  }

  return {
    get count() {
      return count
    },
    expect(next: string): void {
      path = next
    },
    take,
    finish(): void {
      if (!first) return
      if (count > 1) first.name(first.path)
      else if (/\.html?$/i.test(first.path)) first.name('index.html')
      else throw errors.unsupportedFileType(first.path)
    },
  }
}
