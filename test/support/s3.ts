/** An S3-compatible server on loopback, with one empty bucket. */
import { createRequire } from 'node:module'

interface S3rver {
  run(): Promise<{ port: number }>
  close(): Promise<void>
}
const S3rver = createRequire(import.meta.url)('s3rver') as new (options: object) => S3rver

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
