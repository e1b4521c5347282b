/**
 * Follows the change log in Redis and keeps the replica up to date. Runs in the primary process only; no visitor's
 * request ever waits for anything in here.
 *
 *   connect ─▶ register ─▶ reconcile? ─▶ follow ─▶ apply ─▶ workers confirm ─▶ acknowledge ─┐
 *      ▲                     (snapshot)     ▲─────────────────────────────────────────────────┘
 *      └── any error: wait, connect again; the replica keeps serving meanwhile
 *
 * Level is a follower that serves a complete snapshot and all that stood in the log when it had reconciled. An edge that
 * starts listens then.
 *
 * Reconciling: when the epoch in Redis is not the one the replica was built from, or the log was trimmed past our
 * position, the whole snapshot is applied. Nothing is ever forgotten on the way: without an epoch (FLUSHALL, a new Redis,
 * one that was promoted) control republishes everything first and sets the epoch as its last step; and a host that a
 * complete snapshot does not name is told to control, which says what becomes of it.
 *
 * A snapshot of an older history than ours, or of a rival one, is not taken: Postgres was set back and does not know it
 * yet. We say what we hold, acknowledge nothing, are not level, and wait for control to begin a newer history than ours.
 *
 * What cannot be read or served does not stop what stands behind it. Its name goes on as it was, and is told to control
 * beside the position: an acknowledgement never covers it. It is tried again every few seconds, since what was wrong may
 * have been the blob store. Where it is found in a snapshot, and something that was acknowledged may have stood between
 * it and what is held here, the name is answered with 503 (`completeSnapshot`): a password may be among what was missed.
 */
import { MAX_HOST_CHARS } from '../../shared/contracts/limits.ts'
import { CHALLENGE_LIFETIME_MS } from '../../shared/certificates/challenges.ts'
import {
  decodeHistory,
  encodeHistory,
  historyOfRevision,
  relationOf,
  type History,
} from '../../shared/contracts/history.ts'
import { EDGE_HEARTBEAT_MS, EDGE_TTL_MS, keys } from '../../shared/redis/keys.ts'
import { encodeEdgeState } from '../../shared/contracts/live-edges.ts'
import type { Log } from '../../shared/running/log.ts'
import { pairs } from '../../shared/redis/pairs.ts'
import type { RedisConnection } from '../../shared/redis/commands.ts'
import { lifeOf } from '../../shared/redis/life.ts'
import { compareStreamIds, nextStreamId, START_OF_LOG } from '../../shared/redis/stream.ts'
import type { Timers } from '../../shared/running/timers.ts'
import { isAbout, readLog, readSnapshot, type Read } from './read-entries.ts'
import { BLOCK_MS } from './redis.ts'
import { refusalKey, type Change, type Entry, type Refusal, type Replica } from './replica.ts'
import type { ProblemOf } from './usable.ts'

/** One round trip's worth of log; a slow edge must not hold a huge reply in memory. */
const LOG_BATCH = 1000
const SNAPSHOT_PAGE = 5000
/** An operator who waits for a large snapshot wants to see it grow. */
const REPORT_HOSTS = 100_000
const RECONNECT_MS = 250
/** One blob store that does not answer must not hold up all other news. */
const EXAMINE_MS = 1000
const TRY_AGAIN_MS = 5000
const TRY_AGAIN_AT_ONCE = 100
/** Of one batch; the others are counted. */
const MAX_LOGGED_REFUSALS = 20

export interface FollowerDependencies {
  readonly edgeId: string
  readonly replica: Replica
  /** A fresh connection for commands (with timeouts), and one that may block. */
  connect(use: 'commands' | 'blocking'): RedisConnection
  /** Resolves when no worker serves the old value of these any more; undefined: everything may have changed. */
  announce(changes: readonly Change[] | undefined): Promise<void>
  /** What would keep this edge from serving an entry that it can read. */
  readonly problemOf?: ProblemOf
  readonly log: Log
  readonly timers: Timers
  /** Entries in one reply; never more than the log keeps. */
  readonly logBatch?: number
}

export interface Follower {
  /** Settles when the replica was level with Redis once, or when the first attempt failed. */
  readonly firstSync: Promise<void>
  /** True while connected and level. */
  isFollowing(): boolean
  position(): string
  /** Takes this edge off the list that control waits for, then stops. */
  stop(): Promise<void>
}

export function startFollower(dependencies: FollowerDependencies): Follower {
  const { edgeId, replica, connect, announce, problemOf, log, timers, logBatch = LOG_BATCH } = dependencies
  let stopped = false
  /** From here on a change of the epoch means that we have to reconcile again. */
  let reconciled = false
  let following = false
  let reconcileNeeded = false
  let complained = false
  let triedAgainAt = 0
  /** The epoch that we do not take part in, while there is one. */
  let asideFrom: string | undefined
  /** What all workers serve. The replica is ahead of it while they are being told. */
  let served = servedBy(replica, replica.progress().position)
  let blocking: RedisConnection | undefined
  const commands = connect('commands')
  const { promise: firstSync, resolve: firstSyncDone } = Promise.withResolvers<void>()

  /** Tells control of this edge. Returns whether Redis took all of it: control does not wait for half of an edge. */
  const register = async (): Promise<boolean> => {
    const state = encodeEdgeState({
      v: 1,
      position: served.position,
      epoch: served.epoch,
      ...(served.history ? { history: encodeHistory(served.history) } : {}),
      refused: served.refused,
      refusedCount: served.refused.length,
    })
    const results = await commands
      .multi()
      .set(keys.edge(edgeId), served.position, 'PX', EDGE_TTL_MS)
      .set(keys.edgeState(edgeId), state, 'PX', EDGE_TTL_MS)
      .sadd(keys.edges, edgeId)
      .exec()
    return results !== null && results.every(([error]) => error === null)
  }
  const acknowledge = async (): Promise<void> => {
    if (!(await register())) throw new Error('Redis refused what this edge says of itself')
  }

  /** Ids of edges that were killed. One that was only slow, and registers meanwhile, stays on the list. */
  const forgetGone = async (connection: RedisConnection): Promise<void> => {
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

  /** Whatever happens to Redis between two beats (flushed, replaced, connection lost), the next one notices. */
  const heartbeat = async (): Promise<void> => {
    if (await isAsReconciled()) return
    reconcileNeeded = true
    blocking?.disconnect()
  }
  const isAsReconciled = async (): Promise<boolean> => {
    // Only this connection keeps us on the list; the one that follows can be well without it.
    if (commands.status !== 'ready') return !reconciled
    const [epoch, isRegistered] = await Promise.all([completeEpoch(), register()])
    return !reconciled || (isRegistered && (epoch ?? '') === (asideFrom ?? replica.progress().epoch))
  }
  const stopHeartbeat = timers.every(EDGE_HEARTBEAT_MS, () => void heartbeat().catch(() => {}))

  /** Of what can be read, what can be served; of several entries of one name the last one that can. */
  async function examine(read: Read, isAsked: (entry: Entry) => boolean = () => true): Promise<Read> {
    if (!problemOf) return read
    const deadline = timers.sleep(EXAMINE_MS).then(() => `it could not be read within ${EXAMINE_MS} ms`)
    const problems = await Promise.all(
      read.entries.map(async (entry) => (isAsked(entry) ? Promise.race([problemOf(entry), deadline]) : undefined)),
    )
    const refused = new Map<string, Refusal>()
    const entries = read.entries.filter((entry, index) => {
      const reason = problems[index]
      if (reason === undefined) refused.delete(refusalKey(entry))
      else refused.set(refusalKey(entry), { kind: entry.kind, name: entry.name, reason, revision: revisionOf(entry) })
      return reason === undefined
    })
    for (const refusal of read.refused) refused.set(refusalKey(refusal), refusal)
    return { entries, refused: [...refused.values()] }
  }

  /** Each once, not with every attempt, and never so many that the log is nothing else. */
  function tellOperator(refused: readonly Refusal[]): void {
    const known = replica.refusals()
    const news = refused.filter((refusal) => known.get(refusalKey(refusal)) !== refusal.reason)
    for (const { kind, name, reason } of news.slice(0, MAX_LOGGED_REFUSALS))
      log.error(
        { kind, name: name.slice(0, MAX_HOST_CHARS), reason },
        'news of a host cannot be used; it goes on as it was',
      )
    const more = news.length - MAX_LOGGED_REFUSALS
    if (more > 0) log.error({ more }, 'news of further hosts cannot be used')
  }

  async function publish(read: Read, position: string): Promise<void> {
    const { entries, refused } = await examine(read)
    tellOperator(refused)
    const { changes } = await replica.apply(entries, { position }, refused)
    if (changes.length > 0) await announce(changes)
    served = servedBy(replica, position)
    await acknowledge()
  }

  /** Also where it ends halfway: what was applied of it is not announced by anything else. */
  async function loadSnapshot(epoch: string): Promise<void> {
    await applySnapshot(epoch).finally(() => announce(undefined))
  }

  async function applySnapshot(epoch: string): Promise<void> {
    const history = decodeHistory(epoch)
    if (history) await replica.adopt(history)
    const [tip] = await commands.xrevrange(keys.log, '+', '-', 'COUNT', 1)
    const named = new Set<string>()
    const refused: Refusal[] = []
    const wasRefused = replica.refusals()
    let reported = 0
    const apply = async (kind: 'route' | 'certificate', page: readonly (readonly [string, string])[]) => {
      const found = readSnapshot(kind, page)
      if (isNewerThan(history, found)) throw new Error('a newer history is being written over the snapshot')
      // All of a snapshot are too many to be asked for; those that were refused are not forgotten by it.
      const read = await examine(found, (entry) => wasRefused.has(refusalKey(entry)))
      // A record that is older than ours is not taken, and so not acknowledged: its database lacks what it had published.
      const { outdated } = await replica.apply(read.entries, {})
      refused.push(...read.refused, ...outdated)
    }
    await scan(keys.routes, async (page) => {
      for (const [host] of page) named.add(host)
      await apply('route', page)
      if (named.size >= reported + REPORT_HOSTS) log.info({ hosts: (reported = named.size) }, 'reading the snapshot')
    })
    // Certificates are only ever added: losing one from Redis is no reason to stop serving a domain.
    await scan(keys.certificates, (page) => apply('certificate', page))
    if (tip) await learnChallenges(tip[0])
    await reportUnknown(named)
    if ((await commands.get(keys.epoch)) !== epoch) throw new Error('the snapshot changed while it was read')
    tellOperator(refused)
    await replica.completeSnapshot({ epoch, position: tip?.[0] ?? START_OF_LOG }, refused)
    log.info({ epoch, hosts: named.size }, 'snapshot applied')
  }

  /** Hosts of a history that was lost: they go on until control says what becomes of them. */
  async function reportUnknown(named: ReadonlySet<string>): Promise<void> {
    const unknown = [...replica.hosts()].filter((host) => !named.has(host) && replica.route(host)?.kind !== 'none')
    for (let at = 0; at < unknown.length; at += SNAPSHOT_PAGE)
      await commands.sadd(keys.unknown, ...unknown.slice(at, at + SNAPSHOT_PAGE))
    if (unknown.length > 0)
      log.warn({ hosts: unknown.length }, 'hosts that the snapshot does not name; control is told')
  }

  /** Open challenges are in the log only: a CA that is about to look may come to an edge that has just started. */
  async function learnChallenges(tip: string): Promise<void> {
    let from = `${Math.max(0, Number.parseInt(tip, 10) - CHALLENGE_LIFETIME_MS)}-0`
    for (;;) {
      const page = await commands.xrange(keys.log, from, tip, 'COUNT', logBatch)
      await replica.apply(readLog(page.filter(([, fields]) => isAbout('challenge', fields))).entries, {})
      const last = page.at(-1)
      if (!last || page.length < logBatch) return
      from = nextStreamId(last[0])
    }
  }

  /** The next page is on its way while this one is written. */
  async function scan(key: string, take: (page: [string, string][]) => Promise<void>): Promise<void> {
    const page = (cursor: string): Promise<[string, string[]]> => commands.hscan(key, cursor, 'COUNT', SNAPSHOT_PAGE)
    let [cursor, flat] = await page('0')
    for (;;) {
      const next = cursor === '0' ? undefined : page(cursor)
      next?.catch(() => {})
      await take([...pairs(flat)])
      if (next === undefined) return
      ;[cursor, flat] = await next
    }
  }

  /**
   * The snapshot that Redis has all of. One that it took over from another life may lack what the other had confirmed,
   * until control has published everything again. A release without histories does not say in which life it did.
   */
  async function completeEpoch(): Promise<string | null> {
    const [[epoch = null, lifeOfSnapshot], life] = await Promise.all([
      commands.mget([keys.epoch, keys.redisLife]),
      lifeOf(commands),
    ])
    return decodeHistory(epoch) === undefined || lifeOfSnapshot === life ? epoch : null
  }

  /** Brings the replica to a position from which the log can be followed without a gap. Returns where we are level. */
  async function reconcile(): Promise<string> {
    const epoch = await completeEpoch()
    const [first] = await commands.xrange(keys.log, '-', '+', 'COUNT', 1)
    const [tip] = await commands.xrevrange(keys.log, '+', '-', 'COUNT', 1)
    const known = replica.progress()
    asideFrom = undefined
    if (epoch === null) {
      // A new life of Redis whose snapshot is not complete: follow its log, forget nothing.
      const rewound = tip !== undefined && compareStreamIds(tip[0], known.position) < 0
      await replica.apply([], { epoch: '', position: rewound ? START_OF_LOG : known.position })
    } else if (isBehind(decodeHistory(epoch), replica.history())) {
      asideFrom = epoch
      log.warn({ epoch }, 'Redis holds an older history than this replica; waiting for control to begin a new one')
    } else if (epoch !== known.epoch || replica.refusals().size > 0 || hasGap(known.position, first?.[0], tip?.[0])) {
      await loadSnapshot(epoch)
    }
    served = servedBy(replica, asideFrom === undefined ? replica.progress().position : START_OF_LOG)
    return asideFrom === undefined ? (tip?.[0] ?? START_OF_LOG) : START_OF_LOG
  }

  /** What was refused, as the snapshot has it now. Between two batches: nothing newer is replaced or cleared by it. */
  async function tryAgain(position: string): Promise<void> {
    if (!problemOf || replica.refusals().size === 0 || timers.now() - triedAgainAt < TRY_AGAIN_MS) return
    triedAgainAt = timers.now()
    for (const kind of ['route', 'certificate'] as const) {
      const names = [...replica.refusals().keys()].filter((key) => key.startsWith(`${kind} `)).slice(-TRY_AGAIN_AT_ONCE)
      const page: [string, string][] = []
      for (const name of names.map((key) => key.slice(kind.length + 1))) {
        const value = await commands.hget(kind === 'route' ? keys.routes : keys.certificates, name)
        if (value !== null) page.push([name, value])
      }
      const found = readSnapshot(kind, page)
      // Of a newer history: its snapshot comes first.
      if (isNewerThan(replica.history(), found)) return
      const news = (await examine(found)).entries.filter(isNews)
      if (news.length > 0) await publish({ entries: news, refused: [] }, position)
    }
  }

  /** What is served already was not what was refused. */
  function isNews(entry: Entry): boolean {
    if (entry.kind !== 'route') return entry.value !== replica.value(entry.kind, entry.name)
    return entry.record.revision > (replica.route(entry.name)?.revision ?? 0)
  }

  async function follow(connection: RedisConnection, level: string): Promise<void> {
    let { position } = replica.progress()
    while (!stopped && !reconcileNeeded) {
      if (asideFrom !== undefined) {
        await timers.sleep(RECONNECT_MS)
        continue
      }
      if (!following && hasSnapshot() && compareStreamIds(position, level) >= 0) becomeLevel()
      const reply = await connection.xread('COUNT', logBatch, 'BLOCK', BLOCK_MS, 'STREAMS', keys.log, position)
      const entries = reply?.[0]?.[1] ?? []
      await tryAgain(position)
      const last = entries.at(-1)
      if (!last) continue
      // The log is longer than a batch: where something was trimmed behind our position, the reply is a full one.
      if (entries.length === logBatch && (await isTrimmedPast(position))) return
      const read = readLog(entries)
      // Its snapshot comes first: a record alone does not tell which history it is of.
      if (isNewerThan(replica.history() ?? (replica.progress().epoch === '' ? BEFORE_ALL : undefined), read)) return
      position = last[0]
      await publish(read, position)
    }
  }

  async function isTrimmedPast(position: string): Promise<boolean> {
    const [first] = await commands.xrange(keys.log, '-', '+', 'COUNT', 1)
    return hasGap(position, first?.[0], undefined)
  }

  async function run(): Promise<void> {
    while (!stopped) {
      try {
        reconcileNeeded = false
        blocking = connect('blocking')
        await Promise.all([ready(commands), ready(blocking)])
        // Registered first: from here on control waits for this edge, also while it catches up.
        await acknowledge()
        // On the connection that no beat uses: a watch ends with the next transaction.
        await forgetGone(blocking)
        const level = await reconcile()
        await acknowledge()
        reconciled = true
        await follow(blocking, level)
      } catch (error) {
        firstSyncDone()
        if (!stopped && !reconcileNeeded) complain(error)
      }
      following = reconciled = false
      blocking?.disconnect()
      if (!stopped && !reconcileNeeded) await timers.sleep(RECONNECT_MS)
    }
  }

  function hasSnapshot(): boolean {
    return replica.progress().epoch !== ''
  }

  function becomeLevel(): void {
    following = true
    complained = false
    firstSyncDone()
  }

  /** Once per outage, not once per attempt. */
  function complain(error: unknown): void {
    if (complained) return
    complained = true
    log.warn({ err: error }, 'redis is away; serving from the replica')
  }

  const running = run()
  return {
    firstSync,
    isFollowing: () => following,
    position: () => served.position,
    async stop() {
      stopped = true
      stopHeartbeat()
      if (reconciled)
        await commands
          .multi()
          .del(keys.edge(edgeId))
          .del(keys.edgeState(edgeId))
          .srem(keys.edges, edgeId)
          .exec()
          .catch(() => {})
      blocking?.disconnect()
      commands.disconnect()
      await running
    },
  }
}

/** All of one moment: a position is acknowledged together with the snapshot and the refusals that it was reached with. */
function servedBy(replica: Replica, position: string) {
  return { position, epoch: replica.progress().epoch, history: replica.history(), refused: [...replica.refusals()] }
}

/** Whether Redis lacks what our replica holds: its database was set back and does not know it yet. */
function isBehind(theirs: History | undefined, ours: History | undefined): boolean {
  return theirs !== undefined && ours !== undefined && ['older', 'rival'].includes(relationOf(theirs, ours))
}

function revisionOf(entry: Entry): number | undefined {
  return entry.kind === 'route' ? entry.record.revision : undefined
}

/** The history of a replica that has never begun to read a snapshot. */
const BEFORE_ALL: History = { ordinal: 0, id: 'none' }

/** Whether anything was written by a newer history than this one. A release without histories writes what it likes. */
function isNewerThan(history: History | undefined, { entries }: Read): boolean {
  if (history === undefined) return false
  return entries.some((entry) => entry.kind === 'route' && historyOfRevision(entry.record.revision) > history.ordinal)
}

/** True when entries between our position and the log may be lost, or when the log is not the one we followed. */
function hasGap(position: string, first: string | undefined, tip: string | undefined): boolean {
  if (first === undefined) return position !== START_OF_LOG
  return compareStreamIds(position, first) < 0 || (tip !== undefined && compareStreamIds(tip, position) < 0)
}

async function ready(redis: RedisConnection): Promise<void> {
  if (redis.status === 'ready') return
  if (redis.status === 'wait' || redis.status === 'end' || redis.status === 'close') return redis.connect()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  redis.once('ready', resolve)
  redis.once('close', () => reject(new Error('redis connection closed')))
  return promise
}
