/** An S3-compatible store as a program: `node s3-service.ts <directory>`, on port 9000 of wherever it runs. */
import { createRequire } from 'node:module'

const S3rver = createRequire(import.meta.url)('s3rver') as new (options: object) => { run(): Promise<unknown> }
const [, , directory] = process.argv
await new S3rver({
  port: 9000,
  address: '0.0.0.0',
  silent: true,
  // Its own name is not that of a bucket.
  vhostBuckets: false,
  directory,
  configureBuckets: [{ name: 'drops', configs: [] }],
}).run()
process.stdout.write('ready\n')
