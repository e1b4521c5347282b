/** Reads a small body whole. */
import type { Readable } from 'node:stream'
import { FORM_MS } from '../timeouts.ts'

export function readForm(
  source: Readable,
  maxBytes: number,
  onPiece: (bytes: number) => void,
): Promise<Buffer | undefined> {
  const { promise, resolve } = Promise.withResolvers<Buffer | undefined>()
  const chunks: Buffer[] = []
  let size = 0
  const giveUp = (): void => resolve(undefined)
  const timer = setTimeout(giveUp, FORM_MS)
  source.on('data', (chunk: Buffer) => {
    size += chunk.length
    onPiece(chunk.length)
    if (size > maxBytes) giveUp()
    else chunks.push(chunk)
  })
  source.once('end', () => resolve(Buffer.concat(chunks)))
  source.once('error', giveUp)
  source.once('close', giveUp)
  return promise.finally(() => clearTimeout(timer))
}
