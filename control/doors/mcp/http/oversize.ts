/**
 * A message that is too large to be kept is answered all the same, as a tool's error that says how to publish it: a
 * client shows that to its model, but hides an HTTP 413. The answer needs the id of the call, which clients write before
 * or behind the parameters: the first and the last kilobytes of the message are enough to find it.
 */
import { errors } from '../../../../shared/contracts/errors.ts'

type RpcId = string | number

/** What a body turned out to be. An oversize one without an id is refused, since no answer could name its call. */
export type Body =
  | { readonly kind: 'whole'; readonly bytes: Buffer }
  | { readonly kind: 'oversize'; readonly id: RpcId }

export interface MessageLimits {
  /** A message up to this size is kept whole. */
  readonly maxBytes: number
  /** A larger one is read past up to this size; of one that declares more, only the beginning is looked at. */
  readonly maxDrainedBytes: number
}

/** The members of a call beside its parameters take a few hundred bytes. */
const END_BYTES = 4096

/** Linear in the body. `declared` is its Content-Length; `hold` hears of every byte that is kept. */
export async function readBody(
  body: AsyncIterable<Buffer>,
  declared: string | undefined,
  { maxBytes, maxDrainedBytes }: MessageLimits,
  hold: (bytes: number) => void,
): Promise<Body> {
  const readsToEnd = Number(declared ?? 0) <= maxDrainedBytes
  const most = readsToEnd ? maxDrainedBytes : END_BYTES
  let head: Buffer = Buffer.alloc(0)
  let tail: Buffer = head
  let chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (head.length < END_BYTES) head = Buffer.concat([head, chunk]).subarray(0, END_BYTES)
    tail = chunk.length < END_BYTES ? Buffer.concat([tail, chunk]).subarray(-END_BYTES) : chunk.subarray(-END_BYTES)
    if (size > most) break
    if (size <= maxBytes) {
      hold(chunk.length)
      chunks.push(chunk)
    } else if (chunks.length > 0) {
      hold(chunk.length - size)
      chunks = []
    }
  }
  if (readsToEnd && size <= maxBytes) return { kind: 'whole', bytes: Buffer.concat(chunks) }
  const id = idAtBeginning(head.toString()) ?? idAtEnd(tail.toString())
  if (id === undefined) throw errors.uploadTooLarge(maxBytes)
  return { kind: 'oversize', id }
}

/** The id of a message whose parameters come later. */
export function idAtBeginning(text: string): RpcId | undefined {
  const before = text.slice(0, Math.max(0, text.indexOf('"params"'))).trimEnd()
  return idOf(`${before.endsWith(',') ? before.slice(0, -1) : before}}`)
}

/** The id of a message whose parameters came before: members that end with the text are the outermost object's. */
export function idAtEnd(text: string): RpcId | undefined {
  return idOf(`{${text.slice(Math.max(0, text.lastIndexOf('"id"')))}`)
}

function idOf(text: string): RpcId | undefined {
  try {
    const { id } = JSON.parse(text) as { id?: unknown }
    return typeof id === 'string' || typeof id === 'number' ? id : undefined
  } catch {
    return undefined
  }
}
