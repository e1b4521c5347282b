/**
 * What was typed into a form whose files are not taken: it comes back to its sender. Files are read past, because
 * fields may follow them, up to a bound: a sender who is refused cannot keep us reading.
 */
import type { Readable } from 'node:stream'
import { errors } from '../../../../shared/contracts/errors.ts'
import { MAX_FORM_BYTES, MAX_FORM_PAIRS } from '../../../../shared/http/form.ts'
import type { Request } from '../../../ground/http/route.ts'

/** The files of a form are read past up to this size together; the answer cuts off the rest of the body. */
const MAX_SKIPPED_BYTES = 10_000_000
/** A longer text is published like any other, but a refusal does not bring it back. */
export const MAX_RETURNED_BYTES = 1_000_000
/** The field of a publish form that holds a page. */
export const TEXT_FIELD = 'text'

/** There was more than is read for someone who is refused. */
export class UnreadRest extends Error {}

/** Reads past files of one form; throws UnreadRest when they are too large together. */
export function createSkip(): (stream: Readable) => Promise<void> {
  const skipChunk = createChunkSkip()
  return async (stream) => {
    for await (const chunk of stream as AsyncIterable<Buffer>) skipChunk(chunk)
  }
}

function createChunkSkip(): (chunk: Buffer) => void {
  let leftBytes = MAX_SKIPPED_BYTES
  return (chunk) => {
    leftBytes -= chunk.length
    if (leftBytes < 0) throw new UnreadRest()
  }
}

/** A form with files has no more fields than one without, and they are no longer; the page in it has its own bound. */
export function addField(sent: URLSearchParams, { name, value }: { name: string; value: string }): void {
  if (sent.size >= MAX_FORM_PAIRS) throw errors.tooManyFields(MAX_FORM_PAIRS)
  if (name !== TEXT_FIELD && name.length + value.length > MAX_FORM_BYTES) throw errors.fieldTooLarge(MAX_FORM_BYTES)
  sent.append(name, value)
}

/** Files that a form may bring, of any field. */
export interface FilesOfForm {
  readonly most: number
  readonly maxBytes: number
}

/**
 * Reads a form whose files are small into memory. Of a file that is too large, and of files that are too many, so much is
 * kept that who looks at them sees that, and refuses in its own words.
 */
export async function readWithFiles(
  request: Pick<Request, 'multipart' | 'hold'>,
  { most, maxBytes }: FilesOfForm,
): Promise<{ sent: URLSearchParams; files: Buffer[] }> {
  const sent = new URLSearchParams()
  const files: Buffer[] = []
  const skipChunk = createChunkSkip()
  try {
    await request.multipart(async (part) => {
      if (part.kind === 'field') return addField(sent, part)
      const chunks: Buffer[] = []
      let size = 0
      for await (const chunk of part.stream as AsyncIterable<Buffer>) {
        if (files.length > most || size > maxBytes) {
          skipChunk(chunk)
          continue
        }
        request.hold(chunk.length)
        size += chunk.length
        chunks.push(chunk)
      }
      // Where nothing was chosen a file without a byte arrives.
      if (size > 0) files.push(Buffer.concat(chunks))
    })
  } catch (error) {
    if (error instanceof UnreadRest) throw errors.invalidRequest('The files are too large together.')
    throw error
  }
  return { sent, files }
}

/** Collects the fields of a form in `sent`. False when there was more than is read. */
export async function readTyped(request: Pick<Request, 'multipart'>, sent: URLSearchParams): Promise<boolean> {
  const skip = createSkip()
  const take = { contentField: TEXT_FIELD }
  try {
    await request.multipart(async (part) => {
      if (part.kind === 'field') addField(sent, part)
      else if (part.kind === 'content') sent.append(part.name, await readText(part.stream))
      else await skip(part.stream)
    }, take)
    return true
  } catch (error) {
    if (error instanceof UnreadRest) return false
    throw error
  }
}

async function readText(stream: Readable): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MAX_RETURNED_BYTES) throw new UnreadRest()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
