/** What an edge says of itself to control, and how it gets onto the list of those that control waits for, and off it. */
import { encodeHistory, type History } from '../../../shared/contracts/history.ts'
import { encodeEdgeState, READS_KEPT_FILES, READS_THREADS } from '../../../shared/contracts/live-edges.ts'
import type { RedisConnection } from '../../../shared/redis/commands.ts'
import { keys } from '../../../shared/redis/keys.ts'
import type { Replica } from '../replica/replica.ts'

/** What all workers serve, all of one moment: a position stands together with the snapshot and refusals it was reached with. */
export interface Served {
  readonly position: string
  readonly epoch: string
  readonly history: History | undefined
  readonly refused: [string, string][]
  readonly refusesMore: boolean
}

export function servedBy(replica: Replica, position: string): Served {
  return {
    position,
    epoch: replica.progress().epoch,
    history: replica.history(),
    refused: [...replica.refusals()],
    refusesMore: replica.forgotten() > 0,
  }
}

/** Tells control of this edge. Returns whether Redis took all of it: control does not wait for half of an edge. */
export async function register(
  commands: RedisConnection,
  edgeId: string,
  served: Served,
  ttlMs: number,
): Promise<boolean> {
  const state = encodeEdgeState({
    v: 1,
    position: served.position,
    epoch: served.epoch,
    ...(served.history ? { history: encodeHistory(served.history) } : {}),
    refused: served.refused,
    refusedCount: served.refused.length,
    ...(served.refusesMore ? { refusesMore: true } : {}),
    reads: [READS_KEPT_FILES, READS_THREADS],
  })
  const results = await commands
    .multi()
    .set(keys.edge(edgeId), served.position, 'PX', ttlMs)
    .set(keys.edgeState(edgeId), state, 'PX', ttlMs)
    .sadd(keys.edges, edgeId)
    .exec()
  return results !== null && results.every(([error]) => error === null)
}

/** Takes this edge off the list that control waits for. */
export async function deregister(commands: RedisConnection, edgeId: string): Promise<void> {
  await commands.multi().del(keys.edge(edgeId)).del(keys.edgeState(edgeId)).srem(keys.edges, edgeId).exec()
}

/** Takes edges that were killed off the list. One that was only slow, and registers meanwhile, stays on it. */
export async function forgetGone(connection: RedisConnection): Promise<void> {
  const goneOf = async (ids: readonly string[]): Promise<string[]> => {
    const positions = ids.length === 0 ? [] : await connection.mget(ids.map((id) => keys.edge(id)))
    return ids.filter((_, index) => positions[index] === null)
  }
  const ids = await goneOf(await connection.smembers(keys.edges))
  if (ids.length === 0) return
  await Promise.all(ids.map((id) => connection.watch(keys.edge(id))))
  const gone = await goneOf(ids)
  if (gone.length === 0) await connection.unwatch()
  else
    await connection
      .multi()
      .srem(keys.edges, ...gone)
      .exec()
}
