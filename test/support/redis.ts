/** A real Redis of its own for a test file, on a unix socket, without persistence. */
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { startRedis } from '../../control/operations/supervisor/redis/redis.ts'

export interface TestRedis {
  /** For `new Redis(url)` and REDIS_URL. */
  readonly url: string
  readonly pid: number
  /** Call it in afterAll. */
  stop(): Promise<void>
}

export async function startTestRedis(): Promise<TestRedis> {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-redis-'))
  const server = await startRedis({ dataDir, durable: false, searchPath: process.env['PATH'] ?? '' })
  return {
    url: server.url,
    pid: server.pid,
    async stop() {
      await server.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
