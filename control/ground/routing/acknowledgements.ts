/**
 * Waits until every live edge serves what was published. An edge counts when it has reached the log position on the very
 * snapshot that we published to, and serves the news of the hosts that the caller changed: one that could not read
 * them, or is still reading them, says so, and has acknowledged nothing about them. All of that must be of one life of Redis: one that was promoted
 * may have lost our entry, and what others write to its log brings the edges past the position all the same.
 */
import { decodeHistory, encodeHistory } from '../../../shared/contracts/history.ts'
import { keys } from '../../../shared/redis/keys.ts'
import { edgesNamed, STILL_READING, type EdgeRegistry, type LiveEdge } from '../../../shared/contracts/live-edges.ts'
import type { RedisCommands } from '../../../shared/redis/commands.ts'
import { compareStreamIds, START_OF_LOG } from '../../../shared/redis/stream.ts'
import type { Timers } from '../../../shared/running/timers.ts'
import { lifeOf } from '../../../shared/redis/life.ts'
import type { AcknowledgementHints } from './hints.ts'

/** No edge serves anything sooner. */
const POLL_MS = 4
/** Where edges call out, nothing is looked for before they do; this is for a hint that got lost. */
const UNHEARD_MS = 25

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
  /** It was looked for since all edges called out that they are there. */
  isLookedFor: boolean
}

interface Edges {
  readonly epoch: string | null
  /** Whose history may write. It changes before the epoch does. */
  readonly writer: string | null
  /** The life of Redis in which all of this was read. */
  readonly life: string
  readonly live: readonly LiveEdge[]
}

/** One poller for all waiting callers; it runs only while one waits. */
export function createAcknowledgements(
  redis: EdgeRegistry & Pick<RedisCommands, 'mget' | 'eval'>,
  timers: Timers,
  hints?: Pick<AcknowledgementHints, 'onHint'>,
): Acknowledgements {
  const waiting = new Set<Waiter>()
  let polling = false
  /** Who was there at the last look, so that everything is asked for in one turn. */
  let known: readonly string[] = []
  /** How far those have called out that they are. */
  let called = new Map<string, string>()
  /** Whether the last answer was called out before it was found. */
  let isHearing = false
  let wake: () => void = () => {}

  hints?.onHint((edgeId, position) => {
    called.set(edgeId, position)
    if (isTimeToLook()) wake()
  })

  const isCalledOut = ({ position }: Awaited): boolean =>
    known.length > 0 && known.every((id) => compareStreamIds(called.get(id) ?? START_OF_LOG, position) >= 0)

  const isTimeToLook = (): boolean =>
    waiting.values().some(({ awaited, isLookedFor }) => !isLookedFor && isCalledOut(awaited))

  async function untilTimeToLook(): Promise<void> {
    if (isTimeToLook()) return
    const woken = new Promise<void>((resolve) => (wake = resolve))
    await timers.within(isHearing ? UNHEARD_MS : POLL_MS, woken)
  }

  /**
   * The edges first, the life of Redis last: what they served then is ours if no other history has taken Redis, and no
   * other life has begun, until the last answer. A connection answers in the order in which it was asked.
   */
  async function look(): Promise<Edges | undefined> {
    try {
      for (;;) {
        const named = known
        const [ids, live, [epoch = null, writer = null], life] = await Promise.all([
          redis.smembers(keys.edges),
          edgesNamed(redis, named),
          redis.mget([keys.epoch, keys.writer]),
          lifeOf(redis),
        ])
        known = ids
        called = new Map([...called].filter(([id]) => ids.includes(id)))
        if (isSame(ids, named)) return { epoch, writer, life, live }
      }
    } catch {
      return undefined
    }
  }

  async function poll(): Promise<void> {
    polling = true
    while (waiting.size > 0) {
      await untilTimeToLook()
      // Who begins to wait while the answer is on its way is judged by the next one.
      const judged = [...waiting]
      for (const waiter of judged) waiter.isLookedFor = isCalledOut(waiter.awaited)
      const edges = await look()
      for (const waiter of judged) {
        const outcome = edges && outcomeOf(waiter.awaited, edges)
        if (outcome !== undefined) isHearing = waiter.isLookedFor
        if (outcome === undefined && timers.now() < waiter.deadline) continue
        waiting.delete(waiter)
        waiter.answer(outcome ?? { kind: 'late' })
      }
    }
    polling = false
  }

  return {
    reached(awaited, deadline) {
      return new Promise((answer) => {
        waiting.add({ awaited, deadline, answer, isLookedFor: false })
        if (!polling) void poll()
        else if (isTimeToLook()) wake()
      })
    },
  }
}

const SUPERSEDED: Acknowledgement = { kind: 'superseded' }

function isSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((each) => others.includes(each))
}

/** Undefined: not yet. */
function outcomeOf(awaited: Awaited, edges: Edges): Acknowledgement | undefined {
  const outcome = outcomeInLife(awaited, edges)
  return outcome && awaited.life !== edges.life ? SUPERSEDED : outcome
}

function outcomeInLife(awaited: Awaited, { epoch, writer, live }: Edges): Acknowledgement | undefined {
  const history = decodeHistory(awaited.epoch)
  if (epoch !== awaited.epoch || (history && writer !== encodeHistory(history))) return SUPERSEDED
  if (live.length > 0 && live.every((edge) => hasReached(edge, awaited))) return { kind: 'reached' }
  const reason = live.map((edge) => refusalOf(edge, awaited)).find((each) => each !== undefined)
  return reason === undefined ? undefined : { kind: 'refused', reason }
}

function hasReached({ position, state }: LiveEdge, { position: wanted, epoch, hosts }: Awaited): boolean {
  if (compareStreamIds(position, wanted) < 0) return false
  // It may have refused one of them among those that it does not list. Nothing is taken back for that.
  if (state?.refusesMore && hosts.size > 0) return false
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
