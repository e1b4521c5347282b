/**
 * Publishes what was committed and waits until the edges serve it (route-publisher.ts, acknowledgements.ts).
 */
import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { encodeHistory, type History } from '../../../shared/contracts/history.ts'
import { keys } from '../../../shared/redis/keys.ts'
import { PROPAGATION_WAIT_MS } from '../../../shared/contracts/limits.ts'
import { liveEdges } from '../../../shared/contracts/live-edges.ts'
import type { Log } from '../../../shared/running/log.ts'
import { patiently } from '../../../shared/settings/patience.ts'
import type { RedisCommands, WatchingConnection } from '../../../shared/redis/commands.ts'
import { systemTimers, type Timers } from '../../../shared/running/timers.ts'
import { runAs } from '../database/call.ts'
import type { Pool } from '../database/sql.ts'
import { createAcknowledgements } from './acknowledgements.ts'
import { listenForHints, type AcknowledgementHints } from './hints.ts'
import { NO_CHANGES, type RouteChanges } from './changes.ts'
import type { EdgeHistories } from './history-rules.ts'
import type { PublicationStore } from './publication.ts'
import { createRoutePublisher, createWatchedFacts, type Position, type DecidedUnknown } from './route-publisher.ts'
import { createPublicationStore } from './queries.ts'

export interface RepublishOptions {
  readonly newHistory?: boolean
  /** How many addresses that edges serve and the database does not know may be removed. Unset: a few per history. */
  readonly removeUnknown?: number | undefined
}

export interface Republished extends DecidedUnknown {
  readonly routes: number
  /** Ordinal of the history that was published. */
  readonly history: number
  readonly pending: boolean
}

export interface Propagation {
  /** Some edge may still serve what was before. */
  readonly pending: boolean
  /** Why an edge will go on with what was before: it cannot use the news. */
  readonly refused?: string
}

export interface Routing {
  /** Publishes what has been committed; resolves when every live edge serves these changes, or after 2 s with `pending`. */
  propagate(changes: RouteChanges): Promise<Propagation>
  /**
   * Rewrites the whole snapshot from Postgres, as a new history where that is asked for, waits until the edges have taken
   * it, and decides about what they serve beyond it.
   */
  republish(options?: RepublishOptions): Promise<Republished>
  /** Whether a host stands in the snapshot, or an edge has told that it serves it. */
  isServed(host: string): Promise<boolean>
  /** Whether every edge that was alive a moment ago says that it reads this (shared/contracts/live-edges.ts). */
  everyEdgeReads(what: string): boolean
  start(): void
  stop(): Promise<void>
}

interface RoutingDependencies {
  sql: Pool
  redis: Redis
  /** A second connection to the same Redis. */
  publisherRedis: Redis
  log: Log
  republishers?: readonly ((redis: Redis) => Promise<void>)[]
}

export function createRouting({ sql, redis, publisherRedis, log, republishers = [] }: RoutingDependencies): Routing {
  return createPropagation({
    store: createPublicationStore(sql),
    redis,
    publisherRedis,
    // A cluster's connections come and go without a word.
    saysWhenLost: !publisherRedis.isCluster,
    hints: listenForHints(redis),
    log,
    timers: systemTimers,
    newToken: () => randomBytes(12).toString('hex'),
    republishers: republishers.map((republish) => () => republish(redis)),
    waitMs: patiently(PROPAGATION_WAIT_MS),
  })
}

export interface PropagationDependencies {
  store: PublicationStore
  redis: Pick<RedisCommands, 'get' | 'hget' | 'smembers' | 'mget' | 'eval'>
  publisherRedis: WatchingConnection
  saysWhenLost: boolean
  hints?: AcknowledgementHints
  log: Log
  timers: Timers
  newToken(): string
  republishers?: readonly (() => Promise<void>)[]
  /** How long a caller waits for the edges. */
  waitMs?: number
}

/** The history of a database that has never published has this id (migration 0140). */
const NO_HISTORY_ID = 'none'
const RETRY_MS = 50
/** An edge reads a snapshot of a million hosts in half a minute. */
const REPUBLISH_WAIT_MS = 60_000
const HEAL_INTERVAL_MS = 500
/** A database whose controls are alive takes an empty Redis within this time. */
const LASTING_MS = 5000

export function createPropagation(deps: PropagationDependencies): Routing {
  const { store, redis, publisherRedis, saysWhenLost, hints, log, timers, newToken, republishers = [] } = deps
  const { waitMs: usualWaitMs = PROPAGATION_WAIT_MS } = deps
  const watched = createWatchedFacts(saysWhenLost ? publisherRedis : undefined)
  const publisher = createRoutePublisher({ store, redis: publisherRedis, watched, log, newToken, republishers })
  const acknowledgements = createAcknowledgements(redis, timers, hints)
  let edgeHistories: EdgeHistories = { all: [], lasting: [] }
  let edgesRead: readonly (ReadonlySet<string> | undefined)[] = []
  /** Since when each history has been seen at an edge, without a break. */
  let seenSince = new Map<string, number>()
  let toldUnknown = 0
  let running = false
  let loop: Promise<void> = Promise.resolve()

  const { flush, isDue } = createFlush(timers, () => publisher.flush(edgeHistories))

  async function lookAtEdges(): Promise<void> {
    const edges = await liveEdges(redis)
    edgesRead = edges.map(({ state }) => state?.reads)
    const all = edges.flatMap(({ state }) => (state?.history ? [state.history] : []))
    const now = timers.now()
    const seen = all.map((history) => {
      const encoded = encodeHistory(history)
      return { history, encoded, since: seenSince.get(encoded) ?? now }
    })
    seenSince = new Map(seen.map(({ encoded, since }) => [encoded, since]))
    const lasting = seen.filter(({ since }) => now - since >= LASTING_MS).map(({ history }) => history)
    edgeHistories = { all, lasting }
  }

  async function decideUnknown(): Promise<void> {
    const { unknown, removed } = await publisher.decideUnknown()
    const left = unknown - removed
    if (removed > 0) log.warn({ removed }, 'addresses that the database does not know were removed from the edges')
    if (left > 0 && left !== toldUnknown)
      log.warn({ unknown: left }, 'edges serve addresses that the database does not know; see "admin republish"')
    toldUnknown = left
  }

  async function heal(): Promise<void> {
    let failing = false
    while (running) {
      try {
        await lookAtEdges()
        // While others publish, they carry what waits.
        if (isDue()) await flush()
        await decideUnknown()
        if (failing) log.info('publication to Redis works again')
        failing = false
      } catch (error) {
        if (!failing) log.warn({ err: error }, 'publication to Redis fails; the outbox keeps the changes')
        failing = true
      }
      await timers.sleep(HEAL_INTERVAL_MS)
    }
  }

  /** Undefined by the deadline: another control may hold the publication lock, and have vanished with it. */
  async function flushBy(deadline: number): Promise<Position | undefined> {
    for (;;) {
      const leftMs = Math.max(0, deadline - timers.now())
      const flushed = await timers.within(
        leftMs,
        flush().catch(() => undefined),
      )
      if (flushed !== undefined) return flushed
      if (timers.now() + RETRY_MS >= deadline) return undefined
      await timers.sleep(RETRY_MS)
    }
  }

  async function propagate(changes: RouteChanges, waitMs = usualWaitMs): Promise<Propagation> {
    const deadline = timers.now() + waitMs
    for (;;) {
      const flushed = await flushBy(deadline)
      if (flushed === undefined || isLost(changes, flushed.history)) return { pending: true }
      const outcome = await acknowledgements.reached({ ...flushed, hosts: changes.hosts }, deadline)
      if (outcome.kind === 'refused') return { pending: true, refused: outcome.reason }
      if (outcome.kind !== 'superseded') return { pending: outcome.kind === 'late' }
    }
  }

  return {
    propagate: (changes) => propagate(changes),

    async republish({ newHistory = false, removeUnknown } = {}) {
      await lookAtEdges()
      const published = await publisher.republish(edgeHistories, newHistory)
      // An edge tells what it holds beyond the snapshot before it acknowledges that.
      await propagate(NO_CHANGES, REPUBLISH_WAIT_MS)
      const { changes, ...decided } = await publisher.decideUnknown(removeUnknown)
      return { ...published, ...decided, ...(await propagate(changes)) }
    },

    async isServed(host) {
      const [record, reported] = await Promise.all([redis.hget(keys.routes, host), redis.smembers(keys.unknown)])
      return record !== null || reported.includes(host)
    },

    everyEdgeReads: (what) => edgesRead.every((reads) => reads?.has(what) === true),

    start() {
      running = true
      hints?.start()
      loop = heal()
    },

    async stop() {
      running = false
      hints?.stop()
      await Promise.race([loop, timers.sleep(2 * HEAL_INTERVAL_MS)])
    },
  }
}

/** `isDue`: no flush that succeeded has begun for a while, so that something may wait that no caller carries. */
function createFlush(
  timers: Timers,
  publish: () => Promise<Position>,
): { flush: () => Promise<Position>; isDue: () => boolean } {
  let flushedAt = -Infinity
  // What one run publishes is news of everyone: it does not end with the call that happened to start it.
  const flush = coalesced(() =>
    runAs(undefined, async () => {
      const startedAt = timers.now()
      const flushed = await publish()
      flushedAt = startedAt
      return flushed
    }),
  )
  return { flush, isDue: () => timers.now() - flushedAt >= HEAL_INTERVAL_MS }
}

/** What was committed before the database was set back may be gone with it. A first history loses nothing. */
function isLost({ histories }: RouteChanges, history: History): boolean {
  return histories.values().some((id) => id !== NO_HISTORY_ID && id !== history.id)
}

/** Calls that arrive while one run is under way share the next run, which starts after all of them. */
function coalesced<Result>(run: () => Promise<Result>): () => Promise<Result> {
  let current: Promise<unknown> | undefined
  let next: Promise<Result> | undefined
  const begin = (): Promise<Result> => {
    const started = run().finally(() => {
      if (current === started) current = undefined
    })
    current = started
    return started
  }
  return () => {
    if (!current) return begin()
    next ??= current
      .catch(() => {})
      .then(() => {
        next = undefined
        return begin()
      })
    return next
  }
}
