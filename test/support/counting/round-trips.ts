/**
 * Counts how often a plane waits for Postgres and for Redis. A relay in front of each reads the talk of every connection:
 * a turn begins when the plane speaks while no answer is owed to it. What it sends behind that, without waiting, belongs
 * to the same turn, so that the count does not depend on how busy the machine is.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { startPostgres } from '../../../control/operations/supervisor/postgres/postgres.ts'
import { startTestRedis } from '../redis.ts'
import { postgresTalk, redisTalk, type Talk } from './talks.ts'

/** Turns so far, by who speaks: only control asks Postgres; both planes ask Redis. */
export interface Turns {
  readonly postgres: number
  readonly redisOfControl: number
  readonly redisOfEdge: number
}

export interface CountedServices {
  /** For startStack(): its planes talk to Postgres and Redis through the relays. */
  readonly env: Readonly<Record<string, string>>
  turns(): Turns
  stop(): Promise<void>
}

/** `onTurn` hears what begins each turn, for those who look for the ones that could be saved. */
export async function startCountedServices(onTurn?: (service: string, said: string) => void): Promise<CountedServices> {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'dropway-bench-relays-'))
  const postgres = await startPostgres({ dataDir: path.join(dir, 'data') })
  const redis = await startTestRedis()
  const databaseRelay = await relay(path.join(dir, '.s.PGSQL.5432'), `${postgres.url}/.s.PGSQL.5432`, () =>
    postgresTalk((said) => onTurn?.('postgres', said)),
  )
  const redisRelay = await relay(path.join(dir, 'redis.sock'), redis.url, () =>
    redisTalk((said) => onTurn?.('redis', said)),
  )
  return {
    env: { DATABASE_URL: dir, REDIS_URL: path.join(dir, 'redis.sock') },
    turns: () => {
      const redisOfEdge = redisRelay.turns((name) => name === 'dropway-edge')
      return {
        postgres: databaseRelay.turns(() => true),
        redisOfControl: redisRelay.turns(() => true) - redisOfEdge,
        redisOfEdge,
      }
    },
    async stop() {
      databaseRelay.close()
      redisRelay.close()
      await Promise.all([postgres.stop(), redis.stop()])
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

export interface Relay {
  /** Of the connections whose name suits. */
  turns(suits: (name: string) => boolean): number
  close(): void
}

/** Relays every connection from one socket to another, and listens. */
export async function relay(from: string, to: string, listenTo: () => Talk): Promise<Relay> {
  const talks: Talk[] = []
  const server = net.createServer((client) => {
    const upstream = net.connect(to)
    const talk = listenTo()
    talks.push(talk)
    client.on('data', (chunk: Buffer) => {
      talk.said(chunk)
      upstream.write(chunk)
    })
    upstream.on('data', (chunk: Buffer) => {
      talk.answered(chunk)
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
  return {
    turns: (suits) => talks.filter(({ name }) => suits(name)).reduce((sum, { turns }) => sum + turns, 0),
    close: () => server.close(),
  }
}
