import { promisify } from 'node:util'
import zlib from 'node:zlib'
import type { Encoding } from '../../shared/contracts/manifest.ts'

/** What is made here is compressed here and not at publish; at a low level, once. */
const LIVE_BROTLI_QUALITY = 5
const LIVE_GZIP_LEVEL = 6

const brotli = promisify(zlib.brotliCompress)
const gzip = promisify<zlib.InputType, zlib.ZlibOptions, Buffer>(zlib.gzip)
const zstd = promisify<zlib.InputType, Buffer>(zlib.zstdCompress)

/** Compresses what the edge has made, off the event loop. */
export function compressLive(bytes: Buffer, encoding: Encoding): Promise<Buffer> {
  switch (encoding) {
    case 'br':
      return brotli(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: LIVE_BROTLI_QUALITY } })
    case 'gzip':
      return gzip(bytes, { level: LIVE_GZIP_LEVEL })
    case 'zstd':
      return zstd(bytes)
    default:
      return encoding satisfies never
  }
}
