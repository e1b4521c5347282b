/** Reads the multipart bodies of uploads into an intake: streamed, capped, in the order they arrive. */
import type { Readable } from 'node:stream'
import { z } from 'zod'
import { fileKindOf, isPageFormat } from '../../../../shared/content/upload-kind.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { MAX_BUNDLE_FILES } from '../../../../shared/contracts/limits.ts'
import { onFirstUse } from '../../../../shared/values/on-first-use.ts'
import { sideBySide } from '../../../../shared/values/side-by-side.ts'
import { parse } from '../../../ground/http/api.ts'
import type { MultipartOptions, Part, Request } from '../../../ground/http/route.ts'
import type { Intake, PreparedVersion, Publishing } from '../../publishing/contract.ts'
import { receiveContent, type FinishOptions, type Limits } from '../../publishing/intake/take-in.ts'
import { resolves } from '../../threads/schemas.ts'
import { accessOfForm, type AccessInput } from '../../viewers/access.ts'
import { allowSecrets, ifVersion, message, previewName, purge } from '../schemas.ts'
import type { PublishOptions } from './commit.ts'

export interface Received {
  readonly prepared: PreparedVersion
  readonly options: PublishOptions
  /** Text fields other than the known ones, for the caller. */
  readonly fields: ReadonlyMap<string, string>
}

type FilePart = Extract<Part, { kind: 'file' }>
type Receive = (request: Request, publishing: Pick<Publishing, 'receive'>, limits: Limits) => Promise<Received>

/** What `as` may say: only a page is taken unless the publisher means a document. */
const asField = z.enum(['page', 'document'], 'as: send "page" or "document".')

/** One `file` field: a page or a Markdown document; another document when `as` says so before it. */
export const receiveSingle: Receive = (request, publishing, limits) => {
  let seen = false
  return receive(request, publishing, limits, {
    onField: requireFilename,
    async onFile(part, intake, fields) {
      if (part.name !== 'file') throw errors.invalidRequest(`Send the file in the field "file", not "${part.name}".`)
      if (part.filename === '') throw errors.missingFilename()
      if (seen) throw errors.invalidRequest('Send exactly one file. For several files use upload-bundle.')
      seen = true
      const as = parse(asField, fields.get('as') ?? request.query.get('as') ?? 'page')
      if (as === 'page') requirePage(part.filename, limits.owner)
      await intake.addSingle(part.filename, part.stream, { title: fields.get('title') })
    },
    onEnd() {
      if (!seen) throw errors.invalidRequest('The field "file" is missing.')
    },
  })
}

/** Shape A: `files` + `paths` in the same order, interleaved or not. Shape B: one `file` that is a .zip. */
export const receiveBundle: Receive = (request, publishing, limits) => {
  const paths: string[] = []
  const waiting: { name: (path: string) => void }[] = []
  let zips = 0
  let files = 0
  const pair = (): void => {
    const count = Math.min(paths.length, waiting.length)
    for (const [file, path] of sideBySide(waiting.splice(0, count), paths.splice(0, count))) file.name(path)
  }
  return receive(request, publishing, limits, {
    onField(name, value) {
      requireFilename(name)
      if (name !== 'paths') return
      if (paths.length + files > 2 * MAX_BUNDLE_FILES) throw errors.tooManyFiles(MAX_BUNDLE_FILES)
      paths.push(value)
      pair()
    },
    async onFile(part, intake) {
      if (part.name === 'file') {
        if (part.filename === '') throw errors.missingFilename()
        if (!part.filename.toLowerCase().endsWith('.zip')) throw errors.unsupportedBundle(part.filename)
        if (++zips > 1 || files > 0)
          throw errors.invalidRequest('Send either one .zip in "file", or "files" with "paths".')
        return intake.addZip(part.stream)
      }
      if (part.name !== 'files')
        throw errors.invalidRequest(
          `Unknown file field "${part.name}". Use "file" for a .zip, or "files" with "paths".`,
        )
      if (zips > 0) throw errors.invalidRequest('Send either one .zip in "file", or "files" with "paths".')
      files++
      const stored = await intake.addUnnamed(part.stream)
      waiting.push(stored)
      pair()
    },
    onEnd() {
      if (zips + files === 0)
        throw errors.invalidRequest('There is no file in the body. Send "files" with "paths", or one .zip in "file".')
      if (paths.length !== 0 || waiting.length !== 0)
        throw errors.invalidRequest(
          `Send one "paths" field per "files" field: ${files} files have arrived, and the number of paths differs.`,
        )
    },
  })
}

/** A document that is meant as one says so; without an account there are none. */
function requirePage(filename: string, owner: Limits['owner']): void {
  const kind = fileKindOf(filename)
  if (isPageFormat(kind) || owner.kind === 'network') return
  throw kind === undefined || kind === 'archive'
    ? errors.unsupportedFileType(filename, 'anything')
    : errors.documentNotMeant(filename)
}

/** Without a filename a part is a text field to every reader of forms. */
function requireFilename(name: string): void {
  if (name === 'file') throw errors.missingFilename()
}

/** What a form means: called with its parts in the order they arrive. */
export interface FormReader {
  onField(name: string, value: string): void
  onFile(part: FilePart, intake: Intake): Promise<void>
  /** The field that carries content, where one was named. */
  onContent?(stream: Readable, intake: Intake): Promise<void>
  /** All parts are there: how to finish, or undefined when there is nothing to publish. */
  onEnd(intake: Intake): Promise<FinishOptions | undefined>
}

/** Walks a form into an intake, one part at a time. */
export function receiveForm(
  request: Pick<Request, 'multipart'>,
  publishing: Pick<Publishing, 'receive'>,
  limits: Limits,
  { reader, ...options }: { reader: FormReader } & MultipartOptions,
): Promise<PreparedVersion | undefined> {
  return receiveContent(publishing, limits, async (intake) => {
    await request.multipart(async (part) => {
      if (part.kind === 'file') await reader.onFile(part, intake)
      else if (part.kind === 'content') await reader.onContent?.(part.stream, intake)
      else reader.onField(part.name, part.value)
    }, options)
    return reader.onEnd(intake)
  })
}

/** What the forms of the API have in common: text fields beside the files. */
interface ApiFormReader {
  onField?(name: string, value: string): void
  onFile(part: FilePart, intake: Intake, fields: ReadonlyMap<string, string>): Promise<void>
  /** Throws when something is missing. */
  onEnd(): void
}

async function receive(
  request: Request,
  publishing: Pick<Publishing, 'receive'>,
  limits: Limits,
  form: ApiFormReader,
): Promise<Received> {
  const fields = new Map<string, string>()
  const resolved: string[] = []
  const reader: FormReader = {
    onField(name, value) {
      form.onField?.(name, value)
      if (name === 'resolves') resolved.push(...namedIn(value))
      else if (name !== 'paths') fields.set(name, value)
    },
    onFile: (part, intake) => form.onFile(part, intake, fields),
    async onEnd() {
      form.onEnd()
      const { access } = optionsOf(fields, resolved)
      if (limits.owner.kind === 'network') requireOpen(access)
      const secrets = parse(allowSecrets, fields.get('allow_secrets')) ? 'allow' : 'withhold'
      return { title: fields.get('title'), secrets }
    },
  }
  const prepared = await receiveForm(request, publishing, limits, { reader })
  if (!prepared) throw errors.invalidRequest('There is no file in the body.')
  return { options: optionsOf(fields, resolved), prepared, fields }
}

/** Without an account there is no one who could let viewers in, or take that back. */
function requireOpen({ access_mode = 'public', viewers, guest_link }: AccessInput = {}): void {
  if (access_mode !== 'public' || viewers !== undefined || guest_link === true)
    throw errors.needsAccount('A drop that not everyone may see')
}

/** A field may be repeated, or hold several ids. */
function namedIn(value: string): string[] {
  return value.split(/[\s,]+/).filter((id) => id !== '')
}

/** A page alone says nothing else; what that means is found out once. */
function optionsOf(fields: ReadonlyMap<string, string>, resolved: readonly string[]): PublishOptions {
  return fields.size === 0 && resolved.length === 0 ? sayingNothing() : readOptions(fields, resolved)
}

const sayingNothing = onFirstUse((): PublishOptions => readOptions(new Map(), []))

const optionFields = z.object({
  message,
  if_version: ifVersion.optional(),
  purge,
  preview: previewName.optional(),
  resolves,
})

function readOptions(fields: ReadonlyMap<string, string>, resolved: readonly string[]): PublishOptions {
  const version = fields.get('if_version')
  const { if_version, ...said } = parse(optionFields, {
    message: fields.get('message') ?? '',
    if_version: version === undefined ? undefined : Number(version),
    purge: fields.get('purge'),
    preview: fields.get('preview'),
    resolves: resolved,
  })
  return { ...said, ...(if_version === undefined ? {} : { ifVersion: if_version }), access: accessOfForm(fields) }
}
