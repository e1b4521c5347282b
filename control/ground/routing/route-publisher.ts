/**
 * Carries the outbox to Redis. Everything here happens under the publication lock of Postgres.
 *
 * 1. Which history do we write, and may we (history-rules.ts)? A new one begins by taking Redis for itself, so that a
 *    database that was left behind cannot write any more. If a publisher dies on the way, the next one can go on: a
 *    restored database goes on seeing that it was restored until it commits its new history, and any other database
 *    commits its new history before it takes Redis.
 * 2. Is everything in Redis? Without an epoch (new, flushed), or in another life of Redis itself (a promoted replica or a
 *    server that was started again from its file may lack what the last one had confirmed), all is published again,
 *    the epoch is set when all is there, and the life of Redis as the last step.
 *    In the ordinary case nothing has changed since the last flush. Its facts were read again behind its EXEC, under a
 *    watch that lasts until now, so that the next rows go out without another look: they are written only if no one has
 *    touched what was read.
 * 3. Rows leave the outbox in order. Each becomes HSET (snapshot) + XADD (log) in one MULTI; only then is it deleted.
 *    A crash in between publishes it twice, which is harmless: revisions make it idempotent.
 */
import { decodeHistory, encodeEpoch, encodeHistory, type History } from '../../../shared/contracts/history.ts'
import { keys, LOG_LENGTH } from '../../../shared/redis/keys.ts'
import type { Log } from '../../../shared/running/log.ts'
import type { RedisCommands, RedisTransaction, WatchingConnection } from '../../../shared/redis/commands.ts'
import { encodeStreamMessage } from '../../../shared/redis/stream.ts'
import {
  nextOrdinal,
  standingOf,
  unknownAllowance,
  type EdgeHistories,
  type PublishedState,
  type Standing,
  NO_HISTORY_ORDINAL,
} from './history-rules.ts'
import { NO_CHANGES, type RouteChanges } from './changes.ts'
import { endOfLog } from './redis.ts'
import type { OutboxRow, Publication, PublicationStore } from './publication.ts'
import { lifeOf } from '../../../shared/redis/life.ts'

export interface RoutePublisherDependencies {
  readonly store: PublicationStore
  /** A connection of its own: WATCH belongs to a connection. */
  readonly redis: RedisCommands
  /** Facts that are still watched since the last flush. */
  readonly watched: WatchedFacts
  readonly log: Log
  /** Letters and digits that were never used before. */
  newToken(): string
  /** Further things that live in the snapshot (certificates); called while everything is republished. */
  readonly republishers: readonly (() => Promise<void>)[]
}

/** Where an acknowledgement must come from to count. */
export interface Position {
  /** Includes everything that was committed before the flush began. */
  readonly position: string
  readonly epoch: string
  /** The life of Redis in which this position was given out. */
  readonly life: string
  readonly history: History
}

export interface DecidedUnknown {
  /** Addresses that are served and that the database does not know. */
  readonly unknown: number
  /** How many of them were removed: all, or none. */
  readonly removed: number
}

export interface RoutePublisher {
  /** Publishes all committed rows. Throws when this database may not publish. */
  flush(edges: EdgeHistories): Promise<Position>
  /** Writes the whole snapshot once more. Returns the number of routes and the ordinal of their history. */
  republish(edges: EdgeHistories, newHistory: boolean): Promise<{ routes: number; history: number }>
  /** Decides about addresses that edges serve and the table does not know: up to `limit`, else a few per history. */
  decideUnknown(limit?: number): Promise<DecidedUnknown & { changes: RouteChanges }>
}

/** This database is not the one that may publish; an operator has to say so if it shall be. */
export class NotTheWriter extends Error {}

const NOTHING_UNKNOWN = { unknown: 0, removed: 0, changes: NO_CHANGES }

const BATCH_ROWS = 500
const REPUBLISH_BATCH_ROWS = 1000
const SCAN_PAGE = 5000

interface RedisFacts {
  readonly writer: string | null
  readonly epoch: string | null
  readonly newest: string | null
  readonly knownLife: string | null
  readonly life: string
}

export function createRoutePublisher(deps: RoutePublisherDependencies): RoutePublisher {
  const { store, redis, watched } = deps
  return {
    async flush(edges) {
      for (;;) {
        const asked = watched.peek()
        const flushed = await store.locked((publication) => flushOnce(deps, publication, edges, asked), {
          rows: BATCH_ROWS,
          host: newestOf(asked)?.host,
        })
        if (flushed?.complete) return flushed
      }
    },

    async republish(edges, newHistory) {
      for (let wantNew = newHistory; ; wantNew = false) {
        const published = await store.locked(async (publication) => {
          watched.take()
          const facts = await readFacts(redis)
          const history = await takeStand(deps, publication, facts, edges, wantNew)
          if (history === undefined) return undefined
          const { routes } = await publishAll(deps, publication, history, facts)
          return { routes, history: history.ordinal }
        })
        if (published !== undefined) return published
      }
    },

    decideUnknown: (limit) => decideUnknown(deps, limit),
  }
}

/** The watch is on from here until the next EXEC. One from before may have noticed something that is known by now. */
async function readFacts(redis: RedisCommands): Promise<RedisFacts> {
  const [, , values, life] = await Promise.all([
    redis.unwatch(),
    redis.watch(keys.writer, keys.epoch, keys.newest, keys.redisLife),
    redis.mget([keys.writer, keys.epoch, keys.newest, keys.redisLife]),
    lifeOf(redis),
  ])
  const [writer = null, epoch = null, newest = null, knownLife = null] = values
  return { writer, epoch, newest, knownLife, life }
}

/** Facts that were read under a watch which no EXEC has ended yet. Whoever uses the connection takes them first. */
export interface WatchedFacts {
  peek(): RedisFacts | undefined
  /** They are good for one EXEC. */
  take(): RedisFacts | undefined
  keep(facts: RedisFacts): void
}

/** Nothing is kept without a connection that says when it is lost: the one after it watches nothing. */
export function createWatchedFacts(connection: WatchingConnection | undefined): WatchedFacts {
  let kept: RedisFacts | undefined
  const peek = (): RedisFacts | undefined => (connection?.status === 'ready' ? kept : undefined)
  connection?.on('close', () => (kept = undefined))
  return {
    peek,
    take() {
      const facts = peek()
      kept = undefined
      return facts
    },
    keep: (facts) => (kept = facts),
  }
}

/** The newest revision that was published, and its host. */
function newestOf(facts: RedisFacts | undefined): { revision: number; host: string } | undefined {
  const [revision, host] = facts?.newest?.split(' ') ?? []
  return revision && host ? { revision: Number(revision), host } : undefined
}

async function published(publication: Publication, facts: RedisFacts, edges: EdgeHistories): Promise<PublishedState> {
  const newest = newestOf(facts)
  return publishedState(facts, newest && (await publication.revisionOf(newest.host)), edges)
}

function publishedState(facts: RedisFacts, ours: number | undefined, edges: EdgeHistories): PublishedState {
  const newest = newestOf(facts)
  return { writer: decodeHistory(facts.writer), newest: newest && { revision: newest.revision, ours }, edges }
}

/** Writes only while this history is the one that may write: nothing of a database that was left behind comes through. */
async function write(
  redis: RedisCommands,
  history: History,
  fill: (multi: RedisTransaction) => void,
): Promise<unknown[]> {
  const written = await writeUnlessChanged(redis, history, fill)
  if (written === undefined) throw new Error('Redis was taken by another history meanwhile')
  return written
}

/** Undefined: something that was watched has changed, and nothing was written. */
async function writeUnlessChanged(
  redis: RedisCommands,
  history: History,
  fill: (multi: RedisTransaction) => void,
): Promise<unknown[] | undefined> {
  const multi = redis.multi().get(keys.writer)
  fill(multi)
  const results = await multi.exec()
  if (results === null) return undefined
  const failed = results.find(([error]) => error)
  if (failed) throw failed[0]
  const [writer, ...written] = results.map(([, result]) => result)
  // A connection that was made anew on the way watches nothing.
  if (writer !== encodeHistory(history)) throw new Error('Redis has lost what was just read from it')
  return written
}

async function watchWriter(redis: RedisCommands, history: History): Promise<void> {
  const [, , writer] = await Promise.all([redis.unwatch(), redis.watch(keys.writer), redis.get(keys.writer)])
  if (writer !== encodeHistory(history)) throw new Error('Redis was taken by another history meanwhile')
}

/** Returns the history that may be published now; undefined: a new one has begun, and has to be committed first. */
async function takeStand(
  { redis, log, newToken }: RoutePublisherDependencies,
  publication: Publication,
  facts: RedisFacts,
  edges: EdgeHistories,
  wantNew: boolean,
): Promise<History | undefined> {
  const own = publication.history
  const known = await published(publication, facts, edges)
  const standing: Standing = wantNew
    ? { kind: 'begin', ordinal: nextOrdinal(own, known), why: 'it was asked for' }
    : standingOf(own, known)
  switch (standing.kind) {
    case 'go on':
      return own
    case 'refuse':
      throw new NotTheWriter(
        `${standing.why}. If this database is the right one: "admin republish --new-history". If not, stop this control.`,
      )
    case 'begin': {
      const history = { ordinal: standing.ordinal, id: newToken() }
      await publication.beginHistory(history)
      // The first one is what every new installation begins with; any other tells of a restore or a failover.
      const level = own.ordinal === NO_HISTORY_ORDINAL ? 'info' : 'warn'
      log[level]({ history: history.ordinal, why: standing.why }, 'a new history of the routing table begins')
      if (!own.ofThisLife) return history
      // To the next publisher, a history that was never committed would be another database's.
      await redis.unwatch()
      return undefined
    }
    default:
      return standing satisfies never
  }
}

/** Returns the number of routes and the epoch that says that they are all there. */
async function publishAll(
  { redis, newToken, republishers }: RoutePublisherDependencies,
  publication: Publication,
  history: History,
  { newest, life }: RedisFacts,
): Promise<{ routes: number; epoch: string }> {
  const taken = await redis.multi().set(keys.writer, encodeHistory(history)).exec()
  const failure = taken?.[0]?.[0]
  if (!taken || failure) throw failure ?? new Error('Redis was taken by another history meanwhile')
  let routes = 0
  let newestRevision = revisionIn(newest)
  for (let after = ''; ;) {
    const rows = await publication.routesAfter(after, REPUBLISH_BATCH_ROWS)
    const last = rows.at(-1)
    if (!last) break
    await watchWriter(redis, history)
    const newestRow = rows.reduce((a, b) => (b.record.revision > a.record.revision ? b : a))
    const { revision } = newestRow.record
    await write(redis, history, (multi) => {
      // Not behind them: a database that is set back meanwhile would give the same revisions out again.
      if (revision > newestRevision) multi.set(keys.newest, `${revision} ${newestRow.host}`)
      multi.hset(keys.routes, ...rows.flatMap((row) => [row.host, JSON.stringify(row.record)]))
    })
    newestRevision = Math.max(newestRevision, revision)
    routes += rows.length
    after = last.host
  }
  for (const republishOther of republishers) await republishOther()
  await collectUnknown(redis, publication)
  const epoch = encodeEpoch(history, newToken())
  // One after the other: each says that those before it are there.
  for (const [key, value] of [
    [keys.epoch, epoch],
    [keys.redisLife, life],
  ] as const) {
    await watchWriter(redis, history)
    await write(redis, history, (multi) => multi.set(key, value))
  }
  return { routes, epoch }
}

/** Hosts that stand in the snapshot and not in the table: of a history that was lost. */
async function collectUnknown(redis: RedisCommands, publication: Publication): Promise<void> {
  let cursor = '0'
  do {
    const [next, flat] = await redis.hscan(keys.routes, cursor, 'COUNT', SCAN_PAGE)
    const hosts = flat.filter((_, index) => index % 2 === 0)
    const unknown = hosts.length === 0 ? [] : await publication.withoutRoute(hosts)
    if (unknown.length > 0) await redis.sadd(keys.unknown, ...unknown)
    cursor = next
  } while (cursor !== '0')
}

/** Undefined: something that was watched has changed, and nothing was published. */
async function publishRows(
  { redis, watched }: RoutePublisherDependencies,
  facts: RedisFacts & { readonly epoch: string },
  writer: History,
  rows: readonly OutboxRow[],
): Promise<string | undefined> {
  const { epoch, newest } = facts
  const last = rows.filter(({ kind }) => kind === 'route').reduce<OutboxRow | undefined>(later, undefined)
  const writing = writeUnlessChanged(redis, writer, (multi) => {
    multi.get(keys.epoch)
    if (last && last.revision > revisionIn(newest)) multi.set(keys.newest, `${last.revision} ${last.name}`)
    for (const { kind, name, value } of rows) {
      if (kind === 'route') multi.hset(keys.routes, name, value)
      if (kind === 'domain') multi.hset(keys.domains, name, value)
      multi.xadd(keys.log, 'MAXLEN', '~', LOG_LENGTH, '*', ...encodeStreamMessage({ kind, name, value }))
    }
  })
  // In the same turn, for the next flush. What it read counts only if all of this was written.
  const [results, next] = await Promise.all([writing, readFacts(redis)])
  if (results === undefined) return undefined
  if (results[0] !== epoch) throw new Error('Redis has lost its snapshot meanwhile')
  watched.keep(next)
  return results.at(-1) as string
}

type Flushed = Position & { complete: boolean }

/** Undefined: a new history was committed, and nothing published yet. */
async function flushOnce(
  deps: RoutePublisherDependencies,
  publication: Publication,
  edges: EdgeHistories,
  asked: RedisFacts | undefined,
): Promise<Flushed | undefined> {
  const { redis, log, watched } = deps
  const flushed = await flushAsBefore(deps, publication, edges, asked)
  if (flushed) return flushed
  const read = await readFacts(redis)
  const history = await takeStand(deps, publication, read, edges, false)
  if (history === undefined) return undefined
  let facts = { ...read, epoch: read.epoch ?? '' }
  let rows = publication.waiting
  if (!isComplete(facts, history)) {
    const { epoch } = await publishAll(deps, publication, history, facts)
    log.info({ history: history.ordinal }, 'everything was published')
    await watchWriter(redis, history)
    facts = { ...facts, epoch, newest: await redis.get(keys.newest) }
    // A new history has emptied it, and draws other revisions.
    rows = await publication.outbox(BATCH_ROWS)
  }
  const { epoch, life } = facts
  if (rows.length === 0) {
    const position = await endOfLog(redis)
    if (isComplete(facts, history)) watched.keep(facts)
    else await redis.unwatch()
    return { position, epoch, life, history, complete: true }
  }
  const position = await publishRows(deps, facts, history, rows)
  if (position === undefined) throw new Error('Redis was taken by another history meanwhile')
  publication.deleteOutbox(rows.map(({ id }) => id))
  return { position, epoch, life, history, complete: rows.length < BATCH_ROWS }
}

/** Publishes what waits by the facts of the last flush; undefined when these, or what they mean, may have changed. */
async function flushAsBefore(
  deps: RoutePublisherDependencies,
  { history, waiting, askedRevision, deleteOutbox }: Publication,
  edges: EdgeHistories,
  asked: RedisFacts | undefined,
): Promise<Flushed | undefined> {
  const facts = deps.watched.take()
  if (facts === undefined || facts !== asked || waiting.length === 0) return undefined
  const { epoch, life } = facts
  const standing = standingOf(history, publishedState(facts, askedRevision, edges))
  if (standing.kind !== 'go on' || epoch === null || !isComplete(facts, history)) return undefined
  const position = await publishRows(deps, { ...facts, epoch }, history, waiting)
  if (position === undefined) return undefined
  deleteOutbox(waiting.map(({ id }) => id))
  return { position, epoch, life, history, complete: waiting.length < BATCH_ROWS }
}

/**
 * Only by whose history may write: a control whose database was left behind knows other addresses, and must not take a
 * report away from the one that has to act on it. What was decided is committed before the report goes.
 */
async function decideUnknown(
  deps: RoutePublisherDependencies,
  limit?: number,
): Promise<DecidedUnknown & { changes: RouteChanges }> {
  const { store, redis } = deps
  const reported = await redis.smembers(keys.unknown)
  if (reported.length === 0) return NOTHING_UNKNOWN
  const done = await store.locked(async (publication) => {
    const { history } = publication
    if ((await redis.get(keys.writer)) !== encodeHistory(history)) return undefined
    const unknown = await publication.withoutRoute(reported)
    const unknownHosts = new Set(unknown)
    // Known all the same: the edge has missed it, or reported it before it came to be.
    const announced = await publication.announceAgain(reported.filter((host) => !unknownHosts.has(host)))
    const allowance = limit ?? unknownAllowance(history, await publication.countRoutes())
    const removable = unknown.length <= allowance ? unknown : []
    const removed = removable.length > 0 ? await publication.removeUnknown(removable) : []
    return { history, unknown, announced, removable, removed }
  })
  if (!done) return NOTHING_UNKNOWN
  await forgetReports(deps, done.history, [...done.announced, ...done.removable])
  return {
    unknown: done.unknown.length,
    removed: done.removed.length,
    changes: { hosts: new Set(done.removed), histories: new Set([done.history.id]) },
  }
}

/** Under the lock, since a watch belongs to the whole connection. */
async function forgetReports(
  { store, redis, watched }: RoutePublisherDependencies,
  history: History,
  hosts: readonly string[],
): Promise<void> {
  for (let at = 0; at < hosts.length; at += SCAN_PAGE)
    await store.locked(async () => {
      watched.take()
      await watchWriter(redis, history)
      await write(redis, history, (multi) => multi.srem(keys.unknown, ...hosts.slice(at, at + SCAN_PAGE)))
    })
}

/** The revision in `keys.newest`, which names a revision and its host. */
function revisionIn(newest: string | null): number {
  return Number.parseInt(newest ?? '0', 10)
}

function later(newest: OutboxRow | undefined, row: OutboxRow): OutboxRow {
  return newest === undefined || row.revision > newest.revision ? row : newest
}

/** Whether all of this history is in this life of Redis. */
function isComplete({ writer, epoch, knownLife, life }: RedisFacts, history: History): boolean {
  const encoded = encodeHistory(history)
  const ofSnapshot = decodeHistory(epoch)
  return writer === encoded && ofSnapshot !== undefined && encodeHistory(ofSnapshot) === encoded && knownLife === life
}
