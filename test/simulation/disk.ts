/** A replica's storage in memory: readers see a transaction at once, the disk a moment later; a crash loses the rest. */
import type { ReplicaStorage, Table } from '../../edge/store/replica/replica-storage.ts'
import type { World } from './world.ts'

const SYNC_MS = 60

export interface SimulatedDisk {
  /** Of a process that writes, or of one that reads. */
  open(): ReplicaStorage
  /** The machine dies: the last transactions may be gone, in order. */
  crash(): number
}

export function createDisk(world: World): SimulatedDisk {
  const tables: Record<
    'routes' | 'meta' | 'certificates' | 'domains' | 'challenges' | 'unsure',
    Map<string, unknown>
  > = {
    routes: new Map(),
    meta: new Map(),
    certificates: new Map(),
    domains: new Map(),
    challenges: new Map(),
    unsure: new Map(),
  }
  /** How to take back each transaction that is not on disk yet. */
  let unsynced: (() => void)[] = []
  let current: (() => void)[] | undefined

  function note(undo: () => void): void {
    if (current) current.push(undo)
  }

  function tableOf<Value>(map: Map<string, Value>): Table<Value> {
    const restore = (key: string): void => {
      const [had, before] = [map.has(key), map.get(key)]
      note(() => (had ? map.set(key, before!) : map.delete(key)))
    }
    return {
      get: (key) => map.get(key),
      put(key, value) {
        restore(key)
        map.set(key, value)
      },
      putNow: (key, value) => void map.set(key, value),
      remove(key) {
        restore(key)
        map.delete(key)
      },
      keys: () => map.keys(),
      *entries() {
        for (const [key, value] of map) yield { key, value }
      },
      clear: () => map.clear(),
    }
  }

  function sync(): void {
    unsynced = []
  }

  return {
    open: () => ({
      routes: tableOf(tables.routes as Map<string, Buffer>),
      meta: tableOf(tables.meta as Map<string, string>),
      certificates: tableOf(tables.certificates as Map<string, string>),
      domains: tableOf(tables.domains as Map<string, string>),
      challenges: tableOf(tables.challenges as Map<string, string>),
      unsure: tableOf(tables.unsure as Map<string, string>),
      async transaction(work) {
        const undo: (() => void)[] = (current = [])
        const result = work()
        current = undefined
        if (unsynced.length === 0) world.after(SYNC_MS, sync)
        unsynced.push(() => {
          for (const step of undo.toReversed()) step()
        })
        return result
      },
      refresh: () => {},
      close: async () => sync(),
    }),
    crash() {
      const lost = world.random.below(unsynced.length + 1)
      for (let count = 0; count < lost; count++) unsynced.pop()!()
      sync()
      return lost
    },
  }
}
