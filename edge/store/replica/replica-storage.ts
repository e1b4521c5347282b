/**
 * Where a replica is kept. LMDB in production: one file, written by the primary alone and mapped by all workers. The
 * simulation (test/simulation/) has one in memory, which loses at a crash what was not on disk yet.
 */
import { mkdirSync } from 'node:fs'
import { open, type Database } from 'lmdb'

const MAX_READERS = 512

export interface Table<Value> {
  get(key: string): Value | undefined
  put(key: string, value: Value): void
  /** Outside of a transaction, and done when it returns. */
  putNow(key: string, value: Value): void
  remove(key: string): void
  keys(): Iterable<string>
  entries(): Iterable<{ readonly key: string; readonly value: Value }>
  clear(): void
}

export interface ReplicaStorage {
  /** What `get` returns may be overwritten by the next one. */
  readonly routes: Table<Buffer>
  readonly meta: Table<string>
  readonly certificates: Table<string>
  readonly domains: Table<string>
  readonly challenges: Table<string>
  /** Hosts whose newest record cannot be read, where something before it may have been missed, and its revision. */
  readonly unsure: Table<string>
  /** All or nothing, at once visible to readers, on disk a moment later: a crash takes away the last ones, in order. */
  transaction<Result>(work: () => Result): Promise<Result>
  /** A reader sees the newest commit of the primary from here on. */
  refresh(): void
  /** When it is all on disk. */
  close(): Promise<void>
}

export function openLmdbStorage(dir: string, options: { readOnly: boolean }): ReplicaStorage {
  if (!options.readOnly) mkdirSync(dir, { recursive: true, mode: 0o700 })
  const root = open({
    path: dir,
    readOnly: options.readOnly,
    maxDbs: 8,
    maxReaders: MAX_READERS,
    // Visible first, on disk a moment later: the position is in the same transaction, so a crash only replays.
    separateFlushed: true,
  })
  const table = (name: string): Table<string> => {
    const database: Database<string, string> = root.openDB(name, { encoding: 'string' })
    return tableOf(database, (key) => database.get(key))
  }
  const routes: Database<Buffer, string> = root.openDB('routes', { encoding: 'binary' })
  return {
    routes: tableOf(routes, (key) => routes.getBinaryFast(key)),
    meta: table('meta'),
    certificates: table('certificates'),
    domains: table('domains'),
    challenges: table('challenges'),
    unsure: table('unsure'),
    transaction: (work) => root.transaction(work),
    refresh: () => root.resetReadTxn(),
    async close() {
      await root.flushed
      await root.close()
    },
  }
}

function tableOf<Value>(database: Database<Value, string>, get: (key: string) => Value | undefined): Table<Value> {
  return {
    get,
    put: (key, value) => void database.put(key, value),
    putNow: (key, value) => database.putSync(key, value),
    remove: (key) => void database.remove(key),
    keys: () => database.getKeys({ snapshot: false }),
    entries: () => database.getRange({ snapshot: false }),
    clear: () => database.clearSync(),
  }
}
