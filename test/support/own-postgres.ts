/** A Postgres of a test's own, for what must not happen to the one that all files share; and PgBouncer in front of it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { openDatabase, type Pool } from '../../control/ground/database/sql.ts'
import { startPostgres } from '../../control/operations/supervisor/postgres/postgres.ts'
import { serviceUser } from '../../control/operations/supervisor/postgres/service-user.ts'
import { until } from './processes.ts'
import { freePorts } from './stack.ts'

export interface OwnPostgres {
  /** For DATABASE_URL. */
  readonly url: string
  /** Holds its files. */
  readonly dataDir: string
  /** Straight to the server, for whoever sets it up. */
  readonly sql: Pool
  /** Settings of the server, for new and running sessions; `undefined` takes one back. */
  set(name: string, value: string | undefined): Promise<void>
  stop(): Promise<void>
}

/** `parent`: where its files are, such as a small disk. */
export async function startOwnPostgres(parent = os.tmpdir()): Promise<OwnPostgres> {
  const dataDir = realpathSync(mkdtempSync(path.join(parent, 'dropway-own-postgres-')))
  const server = await startPostgres({ dataDir, durable: false })
  const sql = openDatabase({ url: server.url, maxConnections: 2 })
  return {
    url: server.url,
    dataDir,
    sql,
    async set(name, value) {
      await sql.unsafe(value === undefined ? `alter system reset ${name}` : `alter system set ${name} = ${value}`)
      await sql`select pg_reload_conf()`
    },
    async stop() {
      await sql.end({ timeout: 1 })
      await server.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** The same behind PgBouncer, which gives a connection to a client for one transaction at a time. */
export async function startPooledPostgres(): Promise<OwnPostgres> {
  const postgres = await startOwnPostgres()
  const folder = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'dropway-pgbouncer-')))
  const user = serviceUser()
  if (user) chownSync(folder, user.uid, user.gid)
  await admitPooler(postgres)
  const [port] = await freePorts(1)
  const settings = path.join(folder, 'pgbouncer.ini')
  writeFileSync(
    settings,
    `[databases]
dropway = host=${postgres.url} port=5432 dbname=dropway user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 200
`,
  )
  chmodSync(settings, 0o644)
  // It refuses to run as root, and the socket of Postgres is its own user's.
  const pooler = spawn('pgbouncer', [settings], { ...user, cwd: '/', stdio: 'ignore', env: { PATH: POOLER_PATH } })
  await until(() => answers(port!), 'PgBouncer to listen')
  return {
    ...postgres,
    url: `postgres://dropway@127.0.0.1:${port}/dropway`,
    async stop() {
      pooler.kill('SIGKILL')
      if (pooler.exitCode === null && pooler.signalCode === null) await once(pooler, 'exit')
      await postgres.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const POOLER_PATH = '/usr/sbin:/usr/bin:/sbin:/bin'

/** The pooler runs as the server's user, whom the server's rules do not name. */
async function admitPooler({ sql, dataDir }: OwnPostgres): Promise<void> {
  writeFileSync(path.join(dataDir, 'postgres', 'pg_hba.conf'), 'local all all trust\n')
  await sql`select pg_reload_conf()`
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1')
    const settle = (answer: boolean): void => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => settle(true))
    socket.once('error', () => settle(false))
  })
}
