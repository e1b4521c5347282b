/**
 * This machine's copy of everything the edges are told: one LMDB file, written by the primary process alone and
 * memory-mapped by all workers. It is the only thing that a visitor's request reads routes from.
 */
import { mkdirSync } from 'node:fs'
import { open, type Database } from 'lmdb'
import type { RouteRecord } from '../../shared/route-record.ts'
import type { StreamMessage } from '../../shared/stream.ts'
import type { ServedRoute } from '../context.ts'
import { fromStored, manifestOf, revisionOf, STORED_FORMAT, toStored } from './stored-route.ts'

/** How far this copy has come: the life of the Redis data set and the log position in it. */
export interface Progress {
  readonly epoch: string
  readonly position: string
}

export type Kind = StreamMessage['kind']

/** One thing that changed; without a name: anything of any kind may have. */
export interface Change {
  readonly kind: Kind
  readonly name: string
}

/** A message whose content has been read and found good. */
export type Entry =
  | { readonly kind: 'route'; readonly name: string; readonly record: RouteRecord }
  /** An empty value removes. */
  | { readonly kind: Exclude<Kind, 'route'>; readonly name: string; readonly value: string }

export const START_OF_LOG = '0-0'

const MAX_READERS = 512

/** LMDB refuses longer keys; a host has at most 253 bytes, a token is short. */
const MAX_NAME_BYTES = 500

export interface Replica {
  /** What a host stands for, or undefined when it was never heard of. */
  route(host: string): ServedRoute | undefined
  /** The manifest of a version that the host's site retains. */
  manifestOf(host: string, versionNumber: number): string | undefined
  value(kind: Exclude<Kind, 'route'>, name: string): string | undefined
  entries(kind: Exclude<Kind, 'route'>): Iterable<{ readonly name: string; readonly value: string }>
  hosts(): Iterable<string>
  /** Undefined until a whole snapshot has been applied once: until then "not found" is not known. */
  snapshotEpoch(): string | undefined
  progress(): Progress
  /** A reader sees the newest commit of the primary from here on. */
  refresh(): void
  /**
   * Applies entries and the progress they stand for in one transaction; returns what really changed.
   * An older revision of a route never replaces a newer one.
   */
  apply(entries: readonly Entry[], progress: Partial<Progress>): Promise<Change[]>
  /** Ends a reconciliation: forgets hosts that the snapshot did not name, and says which. */
  completeSnapshot(hosts: ReadonlySet<string>, progress: Progress): Promise<Change[]>
  /** Touches every page that reading and writing need; throws or ends the process where one is damaged. */
  readAll(): void
  close(): Promise<void>
}

export function openReplica(dir: string, options: { readOnly: boolean }): Replica {
  if (!options.readOnly) mkdirSync(dir, { recursive: true, mode: 0o700 })
  const root = open({
    path: dir,
    readOnly: options.readOnly,
    maxDbs: 8,
    maxReaders: MAX_READERS,
    // Visible first, on disk a moment later: the position is in the same transaction, so a crash only replays.
    separateFlushed: true,
  })
  const table = (name: string): Database<string, string> => root.openDB<string, string>(name, { encoding: 'string' })
  const routes = root.openDB<Buffer, string>('routes', { encoding: 'binary' })
  const meta = table('meta')
  const others = { certificate: table('certificates'), domain: table('domains'), challenge: table('challenges') }

  if (!options.readOnly && meta.get('format') !== STORED_FORMAT) {
    routes.clearSync()
    meta.clearSync()
    meta.putSync('format', STORED_FORMAT)
  }

  const write = (entry: Entry): Change | undefined => {
    const { kind, name } = entry
    if (Buffer.byteLength(name) > MAX_NAME_BYTES) return undefined
    if (kind === 'route') {
      const known = routes.getBinaryFast(name)
      if (known !== undefined && revisionOf(known) >= entry.record.revision) return undefined
      void routes.put(name, toStored(entry.record))
    } else if (entry.value === '') void others[kind].remove(name)
    else void others[kind].put(name, entry.value)
    return { kind, name }
  }

  return {
    route(host) {
      const stored = routes.getBinaryFast(host)
      return stored && fromStored(host, stored)
    },
    manifestOf(host, versionNumber) {
      const stored = routes.getBinaryFast(host)
      return stored && manifestOf(stored, versionNumber)
    },
    value: (kind, name) => others[kind].get(name),
    entries: (kind) => others[kind].getRange({ snapshot: false }).map(({ key, value }) => ({ name: key, value })),
    hosts: () => routes.getKeys({ snapshot: false }),
    snapshotEpoch: () => meta.get('snapshot'),
    progress: () => ({ epoch: meta.get('epoch') ?? '', position: meta.get('position') ?? START_OF_LOG }),
    refresh: () => root.resetReadTxn(),
    async apply(entries, progress) {
      return root.transaction(() => {
        const changes: Change[] = []
        for (const entry of entries) {
          const change = write(entry)
          if (change) changes.push(change)
        }
        for (const [key, value] of Object.entries(progress)) void meta.put(key, value)
        return changes
      })
    },
    async completeSnapshot(hosts, progress) {
      const forgotten = [...routes.getKeys().filter((host) => !hosts.has(host))]
      return root.transaction(() => {
        for (const host of forgotten) void routes.remove(host)
        for (const [key, value] of Object.entries(progress)) void meta.put(key, value)
        void meta.put('snapshot', progress.epoch)
        return forgotten.map((name): Change => ({ kind: 'route', name }))
      })
    },
    readAll() {
      for (const each of [routes, meta, ...Object.values(others)]) for (const { key } of each.getRange()) void key
      meta.putSync('format', STORED_FORMAT)
    },
    close: async () => {
      await root.flushed
      await root.close()
    },
  }
}
