/** Reads a publish form: fields first, then either files (each after its path) or pasted text. Streamed, capped. */
import { Readable } from 'node:stream'
import { errors } from '../../../../shared/errors.ts'
import type { MultipartOptions, Part, Request } from '../../../ground/http/route.ts'
import type { Intake, PreparedVersion, Publishing, UploadOwner } from '../../../drops/publishing/contract.ts'
import { receiveForm, type FormReader } from '../../../drops/sites/versions/receive.ts'
import { filenameOfText } from './pasted-text.ts'

/** Name of the checkbox of a publisher who means it. */
export const ALLOW_SECRETS = 'allow_secrets'

/** A form field is kept whole in memory, twice while it is decoded; more than this is a file, and the refusal says so. */
const MAX_PASTED_BYTES = 32_000_000

type FilePart = Extract<Part, { kind: 'file' }>

export interface PublishForm {
  readonly fields: URLSearchParams
  /** Undefined when the form carried neither file nor text. */
  readonly prepared: PreparedVersion | undefined
}

export interface ReceiveOptions {
  readonly publishing: Pick<Publishing, 'receive'>
  readonly owner: UploadOwner
  readonly capBytes: number
  /** `page`: one .html or .md and nothing else (anonymous drops); `any`: also zips and several files. */
  readonly accepts: 'page' | 'any'
  /** Called once, with the fields that came before the first file, before any content is taken in. Throws to refuse. */
  admit(fields: URLSearchParams): Promise<void> | void
}

export async function receivePublishForm(request: Request, options: ReceiveOptions): Promise<PublishForm> {
  const { publishing, owner, capBytes } = options
  const fields = new URLSearchParams()
  const files = options.accepts === 'page' ? createPageTaker() : createFileTaker()
  let admitted = false
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
      await admit()
      await files.take(intake, part)
    },
    async onEnd(intake) {
      await admit()
      files.finish()
      const text = fields.get('text') ?? ''
      if (files.count === 0 && text.trim() === '') return undefined
      if (files.count === 0) await intake.addSingle(filenameOfText(text), Readable.from([Buffer.from(text)]), {})
      return { secrets: fields.has(ALLOW_SECRETS) ? 'allow' : 'refuse' }
    },
  }
  const limits = { owner, capBytes }
  const prepared = await receiveForm(request, publishing, limits, { reader, ...pastedText(capBytes) })
  return { fields, prepared }
}

/** Pasted text obeys the plan's cap like a file, as long as it can be kept whole; more of it is a file. */
function pastedText(capBytes: number): MultipartOptions {
  const maxBytes = Math.min(capBytes, MAX_PASTED_BYTES)
  return { content: { field: 'text', maxBytes, refusal: errors.textTooLarge(maxBytes, capBytes) } }
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
