/**
 * Memory for what is read of files and sent at once. Each chunk in new memory would be forgotten the moment after, and V8
 * looks through all of the heap whenever 64 MB are: a worker that sent large files did so eight times a second.
 *
 * Whoever is the last to use a chunk may give it back, when nobody else can have it any more. One that is not given back is
 * collected as usual, and one that was never lent is left alone.
 */

/** Of each size. Readers give back before they ask for more, so that few wait here. */
const MAX_KEPT = 64

const kept = new Map<number, Buffer[]>()
const lent = new WeakSet<ArrayBufferLike>()

/** What is in it is of no one's concern: the taker uses as much as they have written. */
export function lendChunk(bytes: number): Buffer {
  const chunk = kept.get(bytes)?.pop() ?? Buffer.allocUnsafeSlow(bytes)
  lent.add(chunk.buffer)
  return chunk
}

/** `chunk`: what was lent, or a part of it. Once: it may be another's already. */
export function giveBack({ buffer }: Uint8Array): void {
  if (!lent.delete(buffer)) return
  let chunks = kept.get(buffer.byteLength)
  if (chunks === undefined) kept.set(buffer.byteLength, (chunks = []))
  if (chunks.length < MAX_KEPT) chunks.push(Buffer.from(buffer))
}
