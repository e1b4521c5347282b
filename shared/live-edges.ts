/** Which log position every live edge serves. Asked before a caller, or a certificate authority, is told to look. */
import { setTimeout as sleep } from 'node:timers/promises'
import { keys } from './keys.ts'
import { compareStreamIds } from './stream.ts'

const POLL_MS = 10

/** The two commands it takes of a Redis client. */
export interface EdgeRegistry {
  smembers(key: string): Promise<string[]>
  mget(keys: string[]): Promise<(string | null)[]>
}

/** Positions of the edges that are alive. An edge that has gone does not count: its key has expired. */
export async function livePositions(redis: EdgeRegistry): Promise<string[]> {
  const ids = await redis.smembers(keys.edges)
  if (ids.length === 0) return []
  const positions = await redis.mget(ids.map((id) => keys.edge(id)))
  return positions.filter((position) => position !== null)
}

/** True once every live edge serves the position; false when that took too long or no edge is alive. */
export async function everyEdgeReached(redis: EdgeRegistry, position: string, waitMs: number): Promise<boolean> {
  const deadline = performance.now() + waitMs
  for (;;) {
    const positions = await livePositions(redis)
    if (positions.length > 0 && positions.every((reached) => compareStreamIds(reached, position) >= 0)) return true
    if (performance.now() >= deadline) return false
    await sleep(POLL_MS)
  }
}
