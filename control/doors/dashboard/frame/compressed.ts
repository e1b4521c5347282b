/**
 * Pages in fewer bytes, where that tells nothing. The length of a compressed page tells someone on the wire how much of it
 * repeats: with a guess of theirs in the address of the page, they find out a secret in it letter by letter (BREACH). So
 * only pages without a form's token are compressed, and none that shows something of one person.
 */
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Reply } from '../../../ground/http/route.ts'

/** Nearly as small as the best, in a tenth of the time: every page has a nonce of its own, so none can be kept. */
const BROTLI_QUALITY = 5
/** A smaller page fits into one packet anyway. */
const MIN_BYTES = 1400

const brotli = promisify<string, { params: Record<number, number> }, Buffer>(brotliCompress)
const zip = promisify<string, Buffer>(gzip)

export type PageEncoding = 'br' | 'gzip'

/** The best that a browser takes. */
export function encodingOf(accepted: string | undefined): PageEncoding | undefined {
  const names = (accepted ?? '').split(',').map((part) => part.trim().toLowerCase())
  return (['br', 'gzip'] as const).find((name) => names.some((given) => given === name || isWanted(given, name)))
}

function isWanted(given: string, name: PageEncoding): boolean {
  return given.startsWith(`${name};`) && !/;\s*q=0(?:\.0*)?$/.test(given)
}

/** The same page compressed, when it holds no token and is nobody's own. */
export async function compressedWhereSafe(
  reply: Reply,
  viewer: { readonly signedIn: unknown; readonly csrf: string; readonly encoding?: PageEncoding | undefined },
): Promise<Reply> {
  const { body, headers } = reply
  if (typeof body !== 'string' || body.length < MIN_BYTES || viewer.signedIn !== undefined) return reply
  if (viewer.csrf !== '' && body.includes(viewer.csrf)) return reply
  const varied = { ...headers, vary: 'accept-encoding' }
  if (viewer.encoding === undefined) return { ...reply, headers: varied }
  const bytes =
    viewer.encoding === 'br'
      ? await brotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } })
      : await zip(body)
  return { ...reply, headers: { ...varied, 'content-encoding': viewer.encoding }, body: bytes }
}
