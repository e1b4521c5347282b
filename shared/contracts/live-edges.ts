/** Which log position every live edge serves. Asked before a caller, or a certificate authority, is told to look. */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { decodeHistory, type History } from './history.ts'
import { keys } from '../redis/keys.ts'
import { compareStreamIds, START_OF_LOG } from '../redis/stream.ts'

const POLL_MS = 10

/** The two commands it takes of a Redis client. */
export interface EdgeRegistry {
  smembers(key: string): Promise<string[]>
  mget(keys: string[]): Promise<(string | null)[]>
}

/** What an edge says beside its position. Fields are only ever added: a reader skips those that it does not know. */
const edgeStateSchema = z.object({
  v: z.literal(1),
  /** The log position that all of this is about: what is written beside it may have been written at another time. */
  position: z.string(),
  /** The snapshot that its replica is built on. Control believes an acknowledgement only together with this. */
  epoch: z.string(),
  /** The newest history that its replica holds, encoded. */
  history: z.string().optional(),
  /** What it could not use; it goes on with what it had before: [`<kind> <name>`, reason]. */
  refused: z.array(z.tuple([z.string(), z.string()])).default([]),
  refusedCount: z.int().default(0),
  /** It refuses more than it lists: what is not in the list may be refused as well. */
  refusesMore: z.boolean().default(false),
  /** What it understands beyond the formats of the release before: control writes such things once every edge does. */
  reads: z.array(z.string()).default([]),
})

/** Manifests that keep files of former versions. */
export const READS_KEPT_FILES = 'kept-files'
/** News of threads on the log. */
export const READS_THREADS = 'threads'

/**
 * The reason that an edge gives for news that it is reading: it has heard of them, and serves what was before until it has
 * read them. Slow is not unable: nothing is taken back for it.
 */
export const STILL_READING = 'it is still being read'

export type EdgeState = z.input<typeof edgeStateSchema>

export interface LiveEdge {
  readonly id: string
  /** The position that it says together with its state, where it says one. */
  readonly position: string
  /** Undefined for an edge of the release before, which says its position only. */
  readonly state?:
    | {
        readonly epoch: string
        readonly history: History | undefined
        /** Reasons by name, whatever the kind. */
        readonly refused: ReadonlyMap<string, string>
        /** Reasons by host: its record, or something that this release does not know, was refused. */
        readonly refusedRoutes: ReadonlyMap<string, string>
        readonly refusedCount: number
        /** Names that it does not list may be refused too. */
        readonly refusesMore: boolean
        readonly reads: ReadonlySet<string>
      }
    | undefined
}

export function encodeEdgeState(state: EdgeState): string {
  return JSON.stringify(state)
}

/** A certificate that cannot be used is no reason to doubt the publish of a drop. */
const BESIDE_ROUTES = /^(?:certificate|domain|challenge|threads) /

function nameOf(key: string): string {
  return key.slice(key.indexOf(' ') + 1)
}

function decodeEdgeState(text: string): NonNullable<LiveEdge['state']> & { readonly position: string } {
  const { position, epoch, history, refused, refusedCount, refusesMore, reads } = edgeStateSchema.parse(
    JSON.parse(text),
  )
  return {
    position,
    epoch,
    history: decodeHistory(history),
    refused: new Map(refused.map(([key, reason]) => [nameOf(key), reason])),
    refusedRoutes: new Map(
      refused.filter(([key]) => !BESIDE_ROUTES.test(key)).map(([key, reason]) => [nameOf(key), reason]),
    ),
    refusedCount,
    refusesMore,
    reads: new Set(reads),
  }
}

/** The edges that are alive. One that has gone does not count: its key has expired. */
export async function liveEdges(redis: EdgeRegistry): Promise<LiveEdge[]> {
  return edgesNamed(redis, await redis.smembers(keys.edges))
}

/** Those of these that are alive. */
export async function edgesNamed(redis: EdgeRegistry, ids: readonly string[]): Promise<LiveEdge[]> {
  if (ids.length === 0) return []
  const values = await redis.mget(ids.flatMap((id) => [keys.edge(id), keys.edgeState(id)]))
  return ids.flatMap((id, index) => {
    const position = values[2 * index]
    return typeof position === 'string' ? [withState({ id, position }, values[2 * index + 1] ?? null)] : []
  })
}

/** The id of an edge that says its state ends with this. Releases before this one said their position only. */
const SAYS_STATE = '.state'

export function edgeIdOf(unique: string): string {
  return unique + SAYS_STATE
}

/** The state of an edge that owes us one: it names no snapshot that anyone waits for. */
const NOTHING_SAID: LiveEdge['state'] = {
  epoch: '',
  history: undefined,
  refused: new Map(),
  refusedRoutes: new Map(),
  refusedCount: 0,
  refusesMore: false,
  reads: new Set(),
}

/** An edge that says something that cannot be read, or half of it, has acknowledged nothing. */
function withState(edge: LiveEdge, text: string | null): LiveEdge {
  const nothing = { ...edge, position: START_OF_LOG, state: NOTHING_SAID }
  if (text === null) return edge.id.endsWith(SAYS_STATE) ? nothing : edge
  try {
    const state = decodeEdgeState(text)
    return { ...edge, position: state.position, state }
  } catch {
    return nothing
  }
}

/** True once every live edge serves the position; false when that took too long or no edge is alive. */
export async function everyEdgeReached(redis: EdgeRegistry, position: string, waitMs: number): Promise<boolean> {
  const deadline = performance.now() + waitMs
  for (;;) {
    const edges = await liveEdges(redis)
    if (edges.length > 0 && edges.every((edge) => compareStreamIds(edge.position, position) >= 0)) return true
    if (performance.now() >= deadline) return false
    await sleep(POLL_MS)
  }
}
