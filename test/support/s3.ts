/** An S3-compatible server on loopback, with one empty bucket. */
import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'

interface S3rver {
  run(): Promise<{ port: number }>
  close(): Promise<void>
}
interface StoredObject {
  readonly bucket: string
  readonly key: string
  readonly content: Buffer | AsyncIterable<Buffer>
  readonly metadata: unknown
}

interface ObjectStore {
  getResourcePath(bucket: string, key: string, resource: 'object'): string
  putMetadata(bucket: string, key: string, metadata: unknown, md5: string): Promise<void>
  putObject(object: StoredObject): Promise<{ size: number; md5: string }>
}

const require = createRequire(import.meta.url)
const S3rver = require('s3rver') as new (options: object) => S3rver
const { prototype: store } = require('s3rver/lib/stores/filesystem') as { prototype: ObjectStore }

/** S3 has an object when it says so. This server said so while the file was still being written. */
store.putObject = async function ({ bucket, key, content, metadata }) {
  const file = this.getResourcePath(bucket, key, 'object')
  await mkdir(path.dirname(file), { recursive: true })
  const hash = createHash('md5')
  let size = 0
  await pipeline(
    Buffer.isBuffer(content) ? [content] : content,
    async function* count(pieces: AsyncIterable<Buffer>) {
      for await (const piece of pieces) {
        hash.update(piece)
        size += piece.length
        yield piece
      }
    },
    createWriteStream(file),
  )
  const md5 = hash.digest('hex')
  await this.putMetadata(bucket, key, metadata, md5)
  return { size, md5 }
}

export interface TestS3 {
  /** For BLOB_STORE: what is below `prefix` in the bucket, with its copies in `cache`. */
  url(options: { cache: string; prefix?: string; cacheMb?: number }): string
  close(): Promise<void>
}

export async function startTestS3(directory: string): Promise<TestS3> {
  const server = new S3rver({
    port: 0,
    address: '127.0.0.1',
    silent: true,
    directory,
    configureBuckets: [{ name: 'drops', configs: [] }],
  })
  const { port } = await server.run()
  return {
    url({ cache, prefix = '', cacheMb }) {
      const limit = cacheMb === undefined ? '' : `&cache_mb=${cacheMb}`
      return `s3://S3RVER:S3RVER@drops${prefix}?endpoint=http://127.0.0.1:${port}&cache=${cache}${limit}`
    },
    close: () => server.close(),
  }
}
