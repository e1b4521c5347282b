/**
 * Memory for chunks that are read from files and sent at once. A chunk in new memory would be garbage a moment later, and
 * V8 looks through the whole heap for every 64 MB of garbage: a worker that sent large files did so eight times a second.
 *
 * The last user of a chunk may give it back, when no one else can hold it any more. A chunk that is not given back is
 * collected as usual, and one that was never lent is left alone.
 */

/** This many chunks of each size wait at most. Readers give back before they ask for more, so that few do. */
const MAX_KEPT = 64

const kept = new Map<number, Buffer[]>()
const lent = new WeakSet<ArrayBufferLike>()

/** A chunk whose content means nothing: the taker uses as much as they have written. */
export function lendChunk(bytes: number): Buffer {
  const chunk = kept.get(bytes)?.pop() ?? Buffer.allocUnsafeSlow(bytes)
  lent.add(chunk.buffer)
  return chunk
}

/** Takes back what was lent, or a part of it. The last user calls it once: the chunk may be another's already. */
export function giveBack({ buffer }: Uint8Array): void {
  if (!lent.delete(buffer)) return
  let chunks = kept.get(buffer.byteLength)
  if (chunks === undefined) kept.set(buffer.byteLength, (chunks = []))
  if (chunks.length < MAX_KEPT) chunks.push(Buffer.from(buffer))
}
