/**
 * Waits until every live edge serves what was published. An edge counts when it has reached the log position on the very
 * snapshot that we published to, and serves the news of the hosts that the caller changed: one that could not read
 * them, or is still reading them, says so, and has acknowledged nothing about them. All of that must be of one life of Redis: one that was promoted
 * may have lost our entry, and what others write to its log brings the edges past the position all the same.
 */
import { decodeHistory, encodeHistory } from '../../../shared/contracts/history.ts'
import { keys } from '../../../shared/redis/keys.ts'
import { liveEdges, STILL_READING, type EdgeRegistry, type LiveEdge } from '../../../shared/contracts/live-edges.ts'
import type { RedisCommands } from '../../../shared/redis/commands.ts'
import { compareStreamIds } from '../../../shared/redis/stream.ts'
import type { Timers } from '../../../shared/running/timers.ts'
import { lifeOf } from '../../../shared/redis/life.ts'

const POLL_MS = 4

export interface Awaited {
  readonly position: string
  readonly epoch: string
  readonly life: string
  readonly hosts: ReadonlySet<string>
}

export type Acknowledgement =
  | { readonly kind: 'reached' | 'late' }
  /** Everything was published again meanwhile; ask what position that is at. */
  | { readonly kind: 'superseded' }
  /** An edge has come as far and says that it cannot serve it. */
  | { readonly kind: 'refused'; readonly reason: string }

export interface Acknowledgements {
  /** Resolves by the deadline. */
  reached(awaited: Awaited, deadline: number): Promise<Acknowledgement>
}

interface Waiter {
  readonly awaited: Awaited
  readonly deadline: number
  readonly answer: (outcome: Acknowledgement) => void
}

interface Edges {
  readonly epoch: string | null
  /** Whose history may write. It changes before the epoch does. */
  readonly writer: string | null
  readonly live: readonly LiveEdge[]
}

/** One poller for all waiting callers; it runs only while one waits. */
export function createAcknowledgements(
  redis: EdgeRegistry & Pick<RedisCommands, 'mget' | 'eval'>,
  timers: Timers,
): Acknowledgements {
  const waiting = new Set<Waiter>()
  let polling = false

  async function look(): Promise<Edges | undefined> {
    try {
      // The edges first: what they served then is ours if no other history has taken Redis until now.
      const live = await liveEdges(redis)
      const [epoch = null, writer = null] = await redis.mget([keys.epoch, keys.writer])
      return { epoch, writer, live }
    } catch {
      return undefined
    }
  }

  /** Asked last, and only of what would be answered: a life that goes on now went on when the edges were looked at. */
  async function judge(awaited: readonly Awaited[]): Promise<(Acknowledgement | undefined)[]> {
    const edges = await look()
    const outcomes = awaited.map((each) => edges && outcomeOf(each, edges))
    if (outcomes.every((outcome) => outcome === undefined)) return outcomes
    const life = await lifeOf(redis).catch(() => undefined)
    if (life === undefined) return []
    return outcomes.map((outcome, index) => (outcome && awaited[index]!.life !== life ? SUPERSEDED : outcome))
  }

  async function poll(): Promise<void> {
    polling = true
    while (waiting.size > 0) {
      // Who begins to wait while the answer is on its way is judged by the next one.
      const judged = [...waiting]
      const outcomes = await judge(judged.map(({ awaited }) => awaited))
      for (const [index, waiter] of judged.entries()) {
        const outcome = outcomes[index]
        if (outcome === undefined && timers.now() < waiter.deadline) continue
        waiting.delete(waiter)
        waiter.answer(outcome ?? { kind: 'late' })
      }
      if (waiting.size > 0) await timers.sleep(POLL_MS)
    }
    polling = false
  }

  return {
    reached(awaited, deadline) {
      return new Promise((answer) => {
        waiting.add({ awaited, deadline, answer })
        if (!polling) void poll()
      })
    },
  }
}

const SUPERSEDED: Acknowledgement = { kind: 'superseded' }

/** Undefined: not yet. */
function outcomeOf(awaited: Awaited, { epoch, writer, live }: Edges): Acknowledgement | undefined {
  const history = decodeHistory(awaited.epoch)
  if (epoch !== awaited.epoch || (history && writer !== encodeHistory(history))) return SUPERSEDED
  if (live.length > 0 && live.every((edge) => hasReached(edge, awaited))) return { kind: 'reached' }
  const reason = live.map((edge) => refusalOf(edge, awaited)).find((each) => each !== undefined)
  return reason === undefined ? undefined : { kind: 'refused', reason }
}

function hasReached({ position, state }: LiveEdge, { position: wanted, epoch, hosts }: Awaited): boolean {
  if (compareStreamIds(position, wanted) < 0) return false
  return state === undefined || (state.epoch === epoch && !hosts.values().some((host) => state.refusedRoutes.has(host)))
}

/**
 * Why an edge refuses this publish or a later one. What it says before it has come as far is about an earlier one, and
 * one that is still reading refuses nothing.
 */
function refusalOf({ position, state }: LiveEdge, { position: wanted, epoch, hosts }: Awaited): string | undefined {
  if (compareStreamIds(position, wanted) < 0 || state?.epoch !== epoch) return undefined
  return hosts
    .values()
    .map((host) => state.refusedRoutes.get(host))
    .find((reason) => reason !== undefined && reason !== STILL_READING)
}
