/** A Postgres and a streaming replica of it, at one address that leads to the primary. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase, type Pool } from '../../control/ground/database/sql.ts'
import { findPostgresBinaries } from '../../control/operations/supervisor/postgres/binaries.ts'
import { serviceUser } from '../../control/operations/supervisor/postgres/service-user.ts'

export interface PostgresPair {
  /** For DATABASE_URL. After `promote` it leads to what was the replica. */
  readonly url: string
  /** When the replica has what the primary has now. */
  caughtUp(): Promise<void>
  /** From here on the replica hears nothing of the primary. */
  cutReplication(): Promise<void>
  /** Kills the primary; resolves when the replica takes writes. */
  promote(): Promise<void>
  stop(): Promise<void>
}

const START_TIMEOUT_MS = 60_000
const POLL_MS = 100

export async function startPostgresPair(): Promise<PostgresPair> {
  const user = serviceUser()
  const folder = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'dropway-pair-')))
  // The server's user passes through; what is inside is for that user alone.
  chmodSync(folder, 0o711)
  const binaries = path.join(findPostgresBinaries(user, folder), 'bin')
  const env = { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
  const running = new Set<ChildProcess>()
  const pools: Pool[] = []

  const place = (name: string): string => path.join(folder, name)
  function ownFolder(name: string): string {
    mkdirSync(place(name), { mode: 0o700 })
    if (user) chownSync(place(name), user.uid, user.gid)
    return place(name)
  }

  /** Resolves when it answers. */
  async function start(name: 'first' | 'second'): Promise<{ server: ChildProcess; sql: Pool }> {
    const sockets = place(`${name}-socket`)
    const settings = ['listen_addresses=', `unix_socket_directories=${sockets}`, 'wal_level=replica', 'fsync=off']
    const server = spawn(
      path.join(binaries, 'postgres'),
      ['-D', place(name), ...settings.flatMap((each) => ['-c', each])],
      { ...user, env, cwd: '/', stdio: 'ignore' },
    )
    running.add(server)
    const sql = openDatabase({ url: `${sockets}?database=postgres`, maxConnections: 1 })
    pools.push(sql)
    await until(
      async () => (await sql`select 1`).length === 1,
      () => server.exitCode !== null,
    )
    return { server, sql }
  }

  async function end(server: ChildProcess, signal: NodeJS.Signals): Promise<void> {
    running.delete(server)
    if (server.exitCode !== null || server.signalCode !== null) return
    const gone = once(server, 'exit')
    server.kill(signal)
    await gone
  }

  function leadTo(name: 'first' | 'second'): void {
    symlinkSync(place(`${name}-socket`), place('next'))
    renameSync(place('next'), place('current'))
  }

  ownFolder('first')
  for (const sockets of ['first-socket', 'second-socket']) ownFolder(sockets)
  execFileSync(
    path.join(binaries, 'initdb'),
    ['-D', place('first'), '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--no-locale', '--no-sync'],
    { ...user, env, cwd: '/', stdio: 'ignore' },
  )
  const fresh = await start('first')
  await fresh.sql`create database dropway`
  await end(fresh.server, 'SIGINT')
  // A copy of a stopped cluster is a base backup.
  execFileSync('cp', ['-a', place('first'), place('second')])
  const signalFile = path.join(place('second'), 'standby.signal')
  writeFileSync(signalFile, '')
  if (user) chownSync(signalFile, user.uid, user.gid)
  appendFileSync(
    path.join(place('second'), 'postgresql.auto.conf'),
    `primary_conninfo = 'host=${place('first-socket')} user=postgres'\n`,
  )
  const primary = await start('first')
  const replica = await start('second')
  leadTo('first')

  return {
    url: place('current'),
    async caughtUp() {
      const [row] = await primary.sql<{ lsn: string }[]>`select pg_current_wal_lsn()::text as lsn`
      await until(async () => {
        const [at] = await replica.sql<{ has: boolean }[]>`
          select coalesce(pg_last_wal_replay_lsn() >= ${row!.lsn}::pg_lsn, false) as has`
        return at!.has
      })
    },
    async cutReplication() {
      await replica.sql`alter system set primary_conninfo = ''`
      await replica.sql`select pg_reload_conf()`
      await until(async () => (await replica.sql`select 1 from pg_stat_wal_receiver`).length === 0)
    },
    async promote() {
      await end(primary.server, 'SIGKILL')
      leadTo('second')
      await replica.sql`select pg_promote()`
    },
    async stop() {
      await Promise.all(pools.map((sql) => sql.end({ timeout: 1 })))
      await Promise.all([...running].map((server) => end(server, 'SIGQUIT')))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function until(holds: () => Promise<boolean>, isHopeless = () => false): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS
  while (!(await holds().catch(() => false))) {
    if (isHopeless() || performance.now() > deadline) throw new Error('Postgres did not come to it')
    await sleep(POLL_MS)
  }
}
