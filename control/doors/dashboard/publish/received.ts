/** Reads a publish form: fields first, then either files (after their paths) or pasted text. Streamed, capped. */
import type { Readable } from 'node:stream'
import { ApiError, errors } from '../../../../shared/contracts/errors.ts'
import { filenameOfText } from '../../../drops/publishing/files/pasted-text.ts'
import { fileKindOf, uploadKindOf, type GivenFile, type UploadTerms } from '../../../../shared/content/upload-kind.ts'
import type { Part, Request } from '../../../ground/http/route.ts'
import { isFragment } from '../frame/callers.ts'
import { addField, createSkip, MAX_RETURNED_BYTES, TEXT_FIELD, UnreadRest } from '../frame/typed-fields.ts'
import type {
  Intake,
  PreparedVersion,
  Publishing,
  UnnamedFile,
  UploadOwner,
} from '../../../drops/publishing/contract.ts'
import { receiveForm, type FormReader } from '../../../drops/sites/versions/upload-request.ts'

/** Name of the checkbox of a publisher who means it. */
export const ALLOW_SECRETS = 'allow_secrets'

/** What is looked at to tell HTML from Markdown; longer comments before a page make it Markdown. */
const HEAD_BYTES = MAX_RETURNED_BYTES

type FilePart = Extract<Part, { kind: 'file' }>

export interface ReceiveOptions {
  readonly publishing: Pick<Publishing, 'receive'>
  readonly owner: UploadOwner
  readonly capBytes: number
  readonly maxFiles?: number | undefined
  /** Collects the fields; they stay readable when the upload is refused. */
  readonly fields: URLSearchParams
  /** Called once, with the fields that came before the first file, before any content is taken in. Throws to refuse. */
  admit(fields: URLSearchParams): Promise<void> | void
}

/** Undefined when the form carried neither file nor text. */
export async function receivePublishForm(
  request: Request,
  options: ReceiveOptions,
): Promise<PreparedVersion | undefined> {
  const { publishing, owner, capBytes, maxFiles, fields } = options
  const files = createFileTaker({ capBytes, maxFiles, takes: owner.kind === 'network' ? 'page' : 'anything' })
  let admitted = false
  let hasText = false
  /** A refused file is told at the end of the form: the text after it is the publisher's work, and comes back. */
  let refused: ApiError | undefined
  const skip = createSkip()
  let isUnread = false
  const admit = async (): Promise<void> => {
    if (!admitted) await options.admit(fields)
    admitted = true
  }
  const reader: FormReader = {
    onField(name, value) {
      if (name === 'paths') files.expect(value)
      else addField(fields, { name, value })
    },
    async onFile(part, intake) {
      // A file input that was left alone arrives as a part without a name.
      if (part.filename === '') return
      try {
        if (!refused) await admit()
        if (!refused) return await files.take(intake, part)
      } catch (error) {
        if (!isRefusal(error)) throw error
        refused = error
      }
      await skip(part.stream)
    },
    async onContent(stream, intake) {
      const text = await beginningOf(stream)
      if (text.isWhole) fields.set(TEXT_FIELD, text.beginning)
      else isUnread = true
      // Files win over text, and come before it in our forms.
      if (refused || files.count > 0 || text.beginning.trim() === '') return
      await admit()
      await intake.addSingle(filenameOfText(text.beginning, formatOf(fields)), text.all, {})
      hasText = true
    },
    async onEnd() {
      if (refused) throw refused
      await admit()
      if (files.missing > 0) throw errors.invalidRequest(notArrived(files.missing))
      if (files.count > 0) await files.finish()
      else if (!hasText) return undefined
      return { secrets: fields.has(ALLOW_SECRETS) ? 'allow' : 'refuse' }
    },
  }
  try {
    return await receiveForm(request, publishing, { owner, capBytes, maxFiles }, { reader, contentField: TEXT_FIELD })
  } catch (error) {
    const cause = error instanceof UnreadRest ? refused : error
    // A script stays on the page with everything.
    const isLost = (isUnread || error instanceof UnreadRest) && !isFragment(request)
    throw isLost && isRefusal(cause) ? sayingUnread(cause) : cause
  }
}

function sayingUnread(error: ApiError): ApiError {
  return error.saying(
    `${error.message} What you typed was too much to bring back here: go back in your browser to find it.`,
  )
}

/** What the publisher says that pasted text is; undefined leaves it to the guess. */
export function formatOf(fields: URLSearchParams): 'html' | 'markdown' | undefined {
  const said = fields.get('format')
  return said === 'html' || said === 'markdown' ? said : undefined
}

function isRefusal(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status < 500
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

function notArrived(count: number): string {
  const what = count === 1 ? 'A file that was announced' : `${count} files that were announced`
  return `${what} did not arrive: the browser could not read all of them. Nothing was published.`
}

interface FileTaker {
  readonly count: number
  /** Files whose paths came, and which did not. */
  readonly missing: number
  /** The path of a file that follows, in the same order. */
  expect(path: string): void
  take(intake: Intake, part: FilePart): Promise<void>
  /** All files are there: what they are is decided from the whole set. */
  finish(): Promise<void>
}

function createFileTaker(terms: UploadTerms): FileTaker {
  const paths: string[] = []
  const taken: (GivenFile & UnnamedFile)[] = []
  let isUnpacked = false
  let count = 0

  async function take(intake: Intake, part: FilePart): Promise<void> {
    // What is refused halfway is read past afterwards, and so has to stay open.
    const bytes = part.stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>
    const path = paths[count] ?? part.filename.replace(/^.*[/\\]/s, '')
    count++
    // Our script says beforehand that nothing else follows: an archive need not be kept to be unpacked.
    if (count === 1 && paths.length === 1 && terms.takes === 'anything' && fileKindOf(path) === 'archive') {
      isUnpacked = true
      return intake.addZip(bytes)
    }
    if (terms.takes === 'page') refuseEarly(path)
    taken.push({ ...(await intake.addUnnamed(bytes)), path })
  }

  /** Without an account, more than one page is known to be too much before its bytes are taken. */
  function refuseEarly(path: string): void {
    uploadKindOf([...taken, { path, size: 1 }], { ...terms, capBytes: Number.POSITIVE_INFINITY })
  }

  return {
    get count() {
      return count
    },
    get missing() {
      return Math.max(0, paths.length - count)
    },
    expect(path: string): void {
      paths.push(path)
    },
    take,
    async finish(): Promise<void> {
      if (isUnpacked) return
      const found = uploadKindOf(taken, terms)
      if (found.kind === 'site') for (const file of taken) file.name(file.path.slice(found.root.length))
      else for (const file of taken) if (file.path === found.name) await file.alone(found.name)
    },
  }
}
