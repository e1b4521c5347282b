/** multipart/form-data, one part after the other, nothing kept in memory. */
import type { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import busboy from 'busboy'
import { ApiError, errors } from '../../../../shared/contracts/errors.ts'
import { MAX_BUNDLE_FILES } from '../../../../shared/contracts/limits.ts'
import { requireFields } from '../../../../shared/values/text.ts'
import type { MultipartOptions, Part } from '../route.ts'
import { announceContent, boundaryOf, CONTENT_FILENAME } from './content-field.ts'

/** Fields are names and paths; content comes as files. */
const MAX_FIELD_BYTES = 1_000_000
/** Fields are collected in memory, all of a form: 20,000 paths of 200 bytes. Who has more files sends a list of them, or a zip. */
const MAX_FIELDS_BYTES = 4_000_000
/** A `files` and a `paths` part for each file, and room for the bundle rules to say what is wrong. */
const MAX_PARTS = 2 * MAX_BUNDLE_FILES + 1000

export async function walkMultipart(
  body: Readable,
  headers: Readonly<Record<string, string>>,
  onPart: (part: Part) => Promise<void>,
  { contentField }: MultipartOptions = {},
): Promise<void> {
  const parser = openParser(headers)
  const { promise, resolve, reject } = Promise.withResolvers<void>()

  function fail(error: unknown): void {
    // A broken body also breaks the part that a handler is reading: the body's own trouble is the cause.
    reject(body.errored ?? (parser.errored && !(error instanceof ApiError) ? malformed(parser.errored) : error))
    body.unpipe()
    parser.destroy()
  }

  let previous = Promise.resolve()
  function enqueue(part: Part): void {
    previous = previous.then(() => onPart(part)).then(() => skipRest(part))
    previous.catch(fail)
  }

  let fieldsBytes = 0
  function takeField(name: string, value: string, isTruncated: boolean): void {
    checkName(name)
    fieldsBytes += Buffer.byteLength(name) + Buffer.byteLength(value)
    if (isTruncated) throw errors.invalidRequest(`The field "${name}" is too long.`)
    if (fieldsBytes > MAX_FIELDS_BYTES) throw tooManyFields()
    requireFields([[name, value]])
    enqueue({ kind: 'field', name, value })
  }
  function takeFile(name: string, file: Readable, info: busboy.FileInfo): void {
    // The stream also fails when the whole body does; `fail` reports that.
    file.on('error', () => {})
    checkName(name)
    if (info.filename === CONTENT_FILENAME) enqueue({ kind: 'content', name, stream: file })
    else enqueue({ kind: 'file', name, filename: info.filename ?? '', type: info.mimeType, stream: file })
  }
  function attempt(take: () => void): void {
    try {
      take()
    } catch (error) {
      fail(error)
    }
  }
  parser.on('field', (name, value, info) =>
    attempt(() => takeField(name, value, info.nameTruncated || info.valueTruncated)),
  )
  parser.on('file', (name, file, info) => attempt(() => takeFile(name, file, info)))
  parser.on('partsLimit', () => fail(errors.invalidRequest(`The form has more than ${MAX_PARTS} parts.`)))
  parser.on('error', (error) => fail(malformed(error)))
  parser.on('close', () => previous.then(resolve, () => {}))
  body.on('error', fail)
  const boundary = boundaryOf(headers)
  const source =
    contentField === undefined || boundary === undefined ? body : body.pipe(announceContent(boundary, contentField))
  source.pipe(parser)
  return promise
}

function openParser(headers: Readonly<Record<string, string>>): busboy.Busboy {
  if (!/^multipart\/form-data\b/i.test(headers['content-type'] ?? ''))
    throw errors.unsupportedMediaType('multipart/form-data')
  try {
    return busboy({
      headers,
      preservePath: true,
      defParamCharset: 'utf8',
      limits: { fieldSize: MAX_FIELD_BYTES, parts: MAX_PARTS },
    })
  } catch (error) {
    throw malformed(error)
  }
}

/** Busboy hands on a part without one, whatever its types say. */
function checkName(name: string | undefined): void {
  if (name === undefined)
    throw errors.invalidRequest(
      'A part of the form has no name. Each needs one, as in Content-Disposition: form-data; name="file".',
    )
}

function tooManyFields(): ApiError {
  return errors.fieldsTooLarge(MAX_FIELDS_BYTES)
}

function malformed(error: unknown): ApiError {
  const reason = error instanceof Error ? error.message : String(error)
  return errors.invalidRequest(`The multipart body is malformed: ${reason}.`)
}

/** What a handler left unread would hold up the next part. */
async function skipRest(part: Part): Promise<void> {
  if (part.kind === 'field' || part.stream.readableEnded || part.stream.destroyed) return
  part.stream.resume()
  await finished(part.stream)
}
