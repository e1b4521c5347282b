/** The services that the supervisor starts, under the circumstances that a machine can put them in. */
import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { Redis as RedisClient } from 'ioredis'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../../../control/ground/database/sql.ts'
import { startPostgres, type Postgres } from '../../../control/operations/supervisor/postgres/postgres.ts'
import { isAlive } from '../../../control/operations/supervisor/processes/processes.ts'
import { startRedis, type Redis } from '../../../control/operations/supervisor/redis/redis.ts'

const searchPath = process.env['PATH']!

let home: string
const running: { stop(): Promise<void> }[] = []
beforeEach(async () => {
  // Mode 0700: when we are root, the user that runs Postgres cannot enter it.
  home = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-services-'))
})
afterEach(async () => {
  for (const service of running.splice(0)) await service.stop()
  await rm(home, { recursive: true, force: true })
})

async function postgres(dataDir: string, durable = false): Promise<Postgres> {
  const server = await startPostgres({ dataDir, durable })
  running.push(server)
  return server
}

async function query(server: Postgres, text: string): Promise<unknown> {
  const sql = openDatabase({ url: server.url, maxConnections: 1 })
  try {
    return (await sql.unsafe(text))[0]
  } finally {
    await sql.end()
  }
}

describe('Postgres', () => {
  test('keeps its data over a stop, a kill -9, and a start beside a server that no one supervises any more', async () => {
    const dataDir = path.join(home, 'data')
    const first = await postgres(dataDir, true)
    await query(first, 'create table kept (word text)')
    await query(first, "insert into kept values ('stop')")
    await first.stop()

    const second = await postgres(dataDir, true)
    await query(second, "insert into kept values ('kill')")
    process.kill(second.pid, 'SIGKILL')
    await second.exited

    const third = await postgres(dataDir, true)
    await query(third, "insert into kept values ('orphan')")

    const fourth = await postgres(dataDir, true)
    expect(isAlive(third.pid)).toBe(false)
    expect(await query(fourth, "select string_agg(word, ' ') as words from kept")).toEqual({
      words: 'stop kill orphan',
    })
    expect(fourth.url).toBe(first.url)
  })

  test('starts although its pid file names another living process', async () => {
    const dataDir = path.join(home, 'data')
    await (await postgres(dataDir)).stop()
    await writeFile(path.join(dataDir, 'postgres', 'postmaster.pid'), `${process.pid}\n`)
    expect(await query(await postgres(dataDir), 'select 1 as one')).toEqual({ one: 1 })
    expect(isAlive(process.pid)).toBe(true)
  })

  test('starts with a path that is too long for a unix socket, and in a directory that everyone may enter', async () => {
    const long = path.join(home, 'x'.repeat(120))
    const server = await postgres(long)
    expect(server.url.length).toBeLessThan(90)
    expect(await query(server, 'select current_database() as name')).toEqual({ name: 'dropway' })

    const open = path.join(home, 'open')
    await mkdir(open)
    await chmod(home, 0o755)
    expect((await postgres(open)).url).toBe(path.join(open, 'postgres-socket'))
  })

  test('an interrupted first start is begun anew', async () => {
    await mkdir(path.join(home, 'data', 'postgres.new', 'base'), { recursive: true })
    expect(await query(await postgres(path.join(home, 'data')), 'select 1 as one')).toEqual({ one: 1 })
  })
})

describe('Redis', () => {
  async function redis(options: { dataDir: string; searchPath: string; standInPort?: number }): Promise<Redis> {
    const server = await startRedis(options)
    running.push(server)
    return server
  }

  async function ask<Answer>(server: Redis, question: (client: RedisClient) => Promise<Answer>): Promise<Answer> {
    const client = new RedisClient(server.url)
    try {
      return await question(client)
    } finally {
      client.disconnect()
    }
  }

  test('keeps what was written over a stop and over a server that no one supervises any more', async () => {
    const dataDir = path.join(home, 'data')
    const first = await redis({ dataDir, searchPath })
    await ask(first, (client) => client.set('stopped', 'kept'))
    await first.stop()
    const second = await redis({ dataDir, searchPath })
    await ask(second, (client) => client.set('orphaned', 'kept'))

    const third = await redis({ dataDir, searchPath })
    expect(isAlive(second.pid)).toBe(false)
    expect(await ask(third, (client) => client.mget('stopped', 'orphaned'))).toEqual(['kept', 'kept'])
    expect(third.url).toBe(path.join(dataDir, 'redis.sock'))
  })

  test('has no TCP port, and a short socket where the path is too long', async () => {
    const server = await redis({ dataDir: path.join(home, 'x'.repeat(120)), searchPath })
    expect(server.url.length).toBeLessThan(107)
    expect(await ask(server, (client) => client.config('GET', 'port'))).toEqual(['port', '0'])
  })

  test('without a redis-server the stand-in answers, and comes back at the same address', async () => {
    const first = await redis({ dataDir: home, searchPath: '' })
    expect(first.engine).toBe('stand-in')
    expect(await ask(first, (client) => client.set('a', 'b'))).toBe('OK')
    process.kill(first.pid, 'SIGKILL')
    await first.exited
    const second = await redis({ dataDir: home, searchPath: '', standInPort: Number(new URL(first.url).port) })
    expect(second.url).toBe(first.url)
    expect(await ask(second, (client) => client.get('a'))).toBe(null)
  })
})

test('the data of Postgres and its socket are for its own user alone', async () => {
  const dataDir = path.join(home, 'data')
  const server = await postgres(dataDir)
  for (const folder of [path.join(dataDir, 'postgres'), server.url]) {
    expect(((await stat(folder)).mode & 0o077).toString(8)).toBe('0')
  }
})
