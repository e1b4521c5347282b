/** Postgres freezes under a call: the caller is told soon, and what he was told stays true when it goes on. */
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { freeze } from '../support/processes.ts'
import { openDatabase, transaction, type Pool } from '../../control/ground/database/sql.ts'
import { createDatabaseWatch, type DatabaseWatch } from '../../control/ground/database/watch.ts'
import { startPostgres } from '../../control/operations/supervisor/postgres/postgres.ts'
import { silentLog } from '../../shared/running/log.ts'

let dataDir: string
let server: Awaited<ReturnType<typeof startPostgres>>
let sql: Pool
let watch: DatabaseWatch

beforeAll(async () => {
  dataDir = await mkdtemp(path.join(os.tmpdir(), 'dropway-watch-'))
  server = await startPostgres({ dataDir, durable: false })
  const url = `${server.url}?database=postgres`
  sql = openDatabase({ url, maxConnections: 1 })
  await sql`create table written (note text)`
  watch = createDatabaseWatch({ url, log: silentLog })
  watch.start()
})

afterAll(async () => {
  await watch?.stop()
  await sql?.end({ timeout: 1 })
  await server?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

beforeEach(async () => {
  await expect.poll(isAvailable).toBe(true)
  await sql`truncate written`
})

const isAvailable = () =>
  watch
    .guard(() => true)
    .then(
      () => true,
      () => false,
    )
const write = (note: string) => transaction(sql, (tx) => tx`insert into written values (${note})`)
const notes = async () => (await sql<{ note: string }[]>`select note from written`).map(({ note }) => note)

async function whileFrozen(work: () => Promise<void>): Promise<void> {
  const goOn = freeze(server.pid)
  try {
    await work()
  } finally {
    goOn()
  }
}

const away = { status: 503, code: 'unavailable' }

test('before its first statement: nothing is written afterwards', async () => {
  let ended: Promise<unknown> = Promise.resolve()
  await whileFrozen(async () => {
    const answer = watch.guard(() => (ended = sql`select 1`.then(() => write('late'))))
    await expect(answer).rejects.toMatchObject(away)
    await expect(watch.guard(() => write('refused'))).rejects.toMatchObject(away)
  })
  await expect(ended).rejects.toThrow('nothing is changed')
  expect(await notes()).toEqual([])
})

test('within its transaction: what it wrote is rolled back', async () => {
  let ended: Promise<unknown> = Promise.resolve()
  let freeze = (): void => {}
  const written = new Promise<void>((resolve) => (freeze = resolve))
  const answer = watch.guard(
    () =>
      (ended = transaction(sql, async (tx) => {
        await tx`insert into written values ('half')`
        freeze()
        await new Promise((resolve) => setTimeout(resolve, 100))
        await tx`insert into written values ('done')`
      })),
  )
  await written
  await whileFrozen(() => expect(answer).rejects.toMatchObject(away))
  await expect(ended).rejects.toThrow('nothing is changed')
  expect(await notes()).toEqual([])
})

test('calls and jobs that come when it is back are not held to that', async () => {
  await whileFrozen(() => expect(watch.guard(() => write('early'))).rejects.toMatchObject(away))
  await write('a job')
  await expect.poll(isAvailable).toBe(true)
  await watch.guard(() => write('a call'))
  expect(await notes()).toEqual(['a job', 'a call'])
})
