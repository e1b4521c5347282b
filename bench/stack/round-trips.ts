/** Counts how often control waits for Postgres and for Redis: a relay in front of each sees every turn of the talk. */
import { mkdtempSync, rmSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { startPostgres } from '../../control/operations/supervisor/postgres/postgres.ts'
import { startTestRedis } from '../../test/support/redis.ts'

export interface CountedServices {
  /** For startStack(): its planes talk to Postgres and Redis through the relays. */
  readonly env: Readonly<Record<string, string>>
  /** So far, of every process of the stack. */
  turns(): { postgres: number; redis: number }
  stop(): Promise<void>
}

export async function startCountedServices(): Promise<CountedServices> {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'dropway-bench-relays-'))
  const postgres = await startPostgres({ dataDir: path.join(dir, 'data') })
  const redis = await startTestRedis()
  const databaseRelay = await relay(path.join(dir, '.s.PGSQL.5432'), `${postgres.url}/.s.PGSQL.5432`)
  const redisRelay = await relay(path.join(dir, 'redis.sock'), redis.url)
  return {
    env: { DATABASE_URL: dir, REDIS_URL: path.join(dir, 'redis.sock') },
    turns: () => ({ postgres: databaseRelay.turns(), redis: redisRelay.turns() }),
    async stop() {
      databaseRelay.close()
      redisRelay.close()
      await Promise.all([postgres.stop(), redis.stop()])
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** A turn: the client speaks after the server has spoken. Statements sent together are one. */
async function relay(from: string, to: string): Promise<{ turns(): number; close(): void }> {
  let turns = 0
  const server = net.createServer((client) => {
    const upstream = net.connect(to)
    let serverSpokeLast = true
    client.on('data', (chunk) => {
      if (serverSpokeLast) turns++
      serverSpokeLast = false
      upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      serverSpokeLast = true
      client.write(chunk)
    })
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => {})
      one.on('close', () => other.destroy())
    }
  })
  await new Promise<void>((resolve) => server.listen(from, resolve))
  return { turns: () => turns, close: () => server.close() }
}
