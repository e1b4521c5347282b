/**
 * Encoded variants of a file. `quick` is made before a version goes live or right after, `good` and `best` later (see
 * refine.ts): br 11 is eighty times slower than br 5 for a tenth fewer bytes, and a publisher waits only for the first.
 *
 * Measured on 130 kB of text (share of the original, speed of one core): br 5 14.6 %, 54 MB/s · br 11 12.6 %, 0.7 MB/s ·
 * gzip 6 15.4 %, 54 MB/s · gzip 9 15.3 %, 21 MB/s · zstd 19 13.9 %, 2 MB/s. zstd is never smaller than br at
 * the effort we can afford (zstd 12: 14.6 % at 16 MB/s), and no browser has zstd without br: it does not pay here.
 */
import zlib from 'node:zlib'
import type { Encoding } from '../../../../shared/contracts/manifest.ts'

export type Effort = 'quick' | 'good' | 'best'

/** Below this the headers weigh more than what is saved; it all fits one packet anyway. */
export const MIN_COMPRESSED_BYTES = 256
/** Larger files stay as they are: a variant would be held in memory while it is made. */
export const MAX_COMPRESSED_BYTES = 32_000_000
/** br 11 takes 1.5 s per megabyte. */
const BEST_BROTLI_BYTES = 1_000_000
/** A variant must save at least a twentieth, or the identity bytes are simpler for everyone. */
const MAX_KEPT_RATIO = 0.95
const MADE = ['br', 'gzip'] as const
/** Bytes that decide whether the rest is worth trying. */
const SAMPLE_BYTES = 16_384

export interface Variant {
  readonly encoding: Encoding
  readonly bytes: Buffer
}

/** Blocks the thread it runs on. */
export function compress(bytes: Buffer, effort: Effort): Variant[] {
  if (bytes.length < MIN_COMPRESSED_BYTES || bytes.length > MAX_COMPRESSED_BYTES || !looksCompressible(bytes)) return []
  const variants: Variant[] = []
  for (const encoding of MADE) {
    const encoded = encode(bytes, encoding, effort)
    if (encoded.length <= bytes.length * MAX_KEPT_RATIO) variants.push({ encoding, bytes: encoded })
  }
  return variants
}

/** A JPEG called .bin or a base64 of random bytes: found out on a sample, at the price of the sample. */
function looksCompressible(bytes: Buffer): boolean {
  if (bytes.length <= 2 * SAMPLE_BYTES) return true
  const middle = Math.floor((bytes.length - SAMPLE_BYTES) / 2)
  const sample = bytes.subarray(middle, middle + SAMPLE_BYTES)
  return zlib.deflateRawSync(sample, { level: 1 }).length <= SAMPLE_BYTES * MAX_KEPT_RATIO
}

function encode(bytes: Buffer, encoding: (typeof MADE)[number], effort: Effort): Buffer {
  switch (encoding) {
    case 'br':
      return zlib.brotliCompressSync(bytes, {
        params: {
          [zlib.constants.BROTLI_PARAM_QUALITY]: brotliQuality(bytes.length, effort),
          [zlib.constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
        },
      })
    case 'gzip':
      return zlib.gzipSync(bytes, { level: effort === 'quick' ? 6 : 9 })
    default:
      return encoding satisfies never
  }
}

function brotliQuality(size: number, effort: Effort): number {
  if (effort === 'quick') return 5
  return effort === 'best' && size <= BEST_BROTLI_BYTES ? 11 : 7
}
