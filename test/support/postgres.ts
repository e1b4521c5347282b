/** One real Postgres for the whole run; a database of its own for each test file, copied from a migrated template. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { inject } from 'vitest'
import { migrate } from '../../control/ground/database/migrate.ts'
import { openDatabase, type Pool } from '../../control/ground/database/sql.ts'
import { startPostgres } from '../../control/operations/supervisor/postgres/postgres.ts'
import { askBroker, type SharedThing } from './broker.ts'

const TEMPLATE = 'template_dropway'

export interface TestDatabase {
  /** For openDatabase() and DATABASE_URL. */
  readonly url: string
  readonly sql: Pool
  /** Call it in afterAll. */
  close(): Promise<void>
}

/** `const database = await createTestDatabase()`: migrated, empty, no one else's. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const server = await askBroker<{ url: string }>(inject('broker'), 'postgres')
  const name = `test_${randomBytes(6).toString('hex')}`
  await whenUnused(() =>
    asAdministrator(server.url, (sql) => sql.unsafe(`create database ${name} template ${TEMPLATE}`)),
  )
  const url = `${server.url}?database=${name}`
  const sql = openDatabase({ url, maxConnections: 8 })
  return {
    url,
    sql,
    async close() {
      await sql.end({ timeout: 2 })
      await whenUnused(() => asAdministrator(server.url, (admin) => admin.unsafe(`drop database ${name} with (force)`)))
    },
  }
}

/** An empty database without migrations, for the tests of the migrations themselves. */
export async function createBareDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase()
  await database.sql.unsafe('drop schema public cascade; create schema public')
  return database
}

export async function startSharedPostgres(): Promise<SharedThing<{ url: string }>> {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-postgres-'))
  const server = await startPostgres({ dataDir, durable: false })
  await asAdministrator(server.url, (sql) => sql.unsafe(`create database ${TEMPLATE}`))
  const template = openDatabase({ url: `${server.url}?database=${TEMPLATE}`, maxConnections: 2 })
  await migrate(template)
  await template.end()
  return {
    description: { url: server.url },
    async stop() {
      await server.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

const IN_USE = '55006'

/** A process of Postgres may look after a database just then, and stand still on a busy machine: it waits five seconds for it. */
async function whenUnused(work: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if ((error as { code?: string }).code !== IN_USE || tries === 20) throw error
    }
  }
}

async function asAdministrator(serverUrl: string, work: (sql: Pool) => Promise<unknown>): Promise<void> {
  const sql = openDatabase({ url: `${serverUrl}?database=postgres`, maxConnections: 1 })
  try {
    await work(sql)
  } finally {
    await sql.end()
  }
}
