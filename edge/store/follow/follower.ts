/**
 * Follows the change log in Redis and keeps the replica up to date. Runs in the primary process only; no visitor's
 * request ever waits for anything in here.
 *
 *   connect ─▶ register ─▶ reconcile? ─▶ follow ─▶ apply ─▶ workers confirm ─▶ acknowledge ─┐
 *      ▲                     (snapshot)     ▲─────────────────────────────────────────────────┘
 *      └── any error: wait, connect again; the replica keeps serving meanwhile
 *
 * Level is a follower that serves a complete snapshot and all that stood in the log when it had reconciled. An edge that
 * starts listens then, however long that takes; with what it has where Redis is away, or gives it nothing to read.
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
 * have been the blob store. What takes long to read is no more than that: it is told as being read, and served once it is
 * (`examinations.ts`). Where something unusable is found in a snapshot, and something that was acknowledged may have stood between
 * it and what is held here, the name is answered with 503 (`completeSnapshot`): a password may be among what was missed.
 */
import { MAX_HOST_CHARS } from '../../../shared/contracts/limits.ts'
import { CHALLENGE_LIFETIME_MS } from '../../../shared/certificates/challenges.ts'
import { decodeHistory, historyOfRevision, relationOf, type History } from '../../../shared/contracts/history.ts'
import { EDGE_HEARTBEAT_MS, EDGE_TTL_MS, keys } from '../../../shared/redis/keys.ts'
import { STILL_READING } from '../../../shared/contracts/live-edges.ts'
import type { Log } from '../../../shared/running/log.ts'
import { pairs } from '../../../shared/redis/pairs.ts'
import type { RedisConnection } from '../../../shared/redis/commands.ts'
import { lifeOf } from '../../../shared/redis/life.ts'
import { sideBySide } from '../../../shared/values/side-by-side.ts'
import { compareStreamIds, nextStreamId, START_OF_LOG } from '../../../shared/redis/stream.ts'
import type { Timers } from '../../../shared/running/timers.ts'
import { deregister, forgetGone, register, servedBy, type Served } from './registration.ts'
import { createExaminations, LOOK_MS, type Examinations } from './examinations.ts'
import { isAbout, readLog, readSnapshot, type Read } from './read-entries.ts'
import { BLOCK_MS } from './redis.ts'
import {
  beginSnapshotSearch,
  SEARCH_PAUSE_MS,
  SEARCH_TURN_ENTRIES,
  SEARCH_TURN_MS,
  type SnapshotSearch,
} from './search.ts'
import { refusalKey, type Change, type Entry, type Refusal, type Replica } from '../replica/replica.ts'
import type { ProblemOf } from './usable.ts'

/** One round trip's worth of log; a slow edge must not hold a huge reply in memory. */
const LOG_BATCH = 1000
const SNAPSHOT_PAGE = 5000
/** An operator who waits for a large snapshot wants to see it grow. */
const REPORT_HOSTS = 100_000
const RECONNECT_MS = 250
/** Between two looks for a snapshot while there is none: an edge that starts beside its control waits for the first one. */
const NO_SNAPSHOT_MS = 200
/** How long an edge that starts waits for a snapshot to read, before it serves what it has. */
const FIRST_SNAPSHOT_MS = 3000
/** How long it reads what there is. A million hosts take half a minute, and a supervisor gives a start a whole one. */
const FIRST_SYNC_MS = 45_000
/** Looks of an edge that catches up which took as long as they may: those after them are short. */
const MAX_LONG_LOOKS = 3
const SHORT_LOOK_MS = 50
const TRY_AGAIN_MS = 5000
const TRY_AGAIN_AT_ONCE = 100
/** Refusals of one batch that are logged by name; the others are counted. */
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
  /** How long control believes that this edge is alive when nothing more is heard of it. */
  readonly ttlMs?: number
  /** Entries in one reply; never more than the log keeps. */
  readonly logBatch?: number
}

export interface Follower {
  /** Resolves when the replica was level with Redis once, or when Redis turned out to give nothing that it could wait for. */
  readonly firstSync: Promise<void>
  /** True while connected and level. */
  isFollowing(): boolean
  position(): string
  /** Takes this edge off the list that control waits for, then stops. */
  stop(): Promise<void>
}

/** What was being read is not the snapshot any more: the next attempt finds the one that is. */
class SnapshotReplaced extends Error {}

export function startFollower(dependencies: FollowerDependencies): Follower {
  const follower = new LogFollower(dependencies)
  const running = follower.run()
  return {
    firstSync: follower.firstSync.promise,
    isFollowing: () => follower.isLevel,
    position: () => follower.position,
    async stop() {
      await follower.stop()
      await running
    },
  }
}

class LogFollower {
  readonly firstSync = Promise.withResolvers<void>()
  /** True while connected and level. */
  isLevel = false
  readonly #dependencies: FollowerDependencies
  readonly #replica: Replica
  readonly #commands: RedisConnection
  readonly #log: Log
  readonly #timers: Timers
  readonly #logBatch: number
  readonly #stopHeartbeat: () => void
  readonly #examinations: Examinations | undefined
  #blocking: RedisConnection | undefined
  #isStopped = false
  /** From here on a change of the epoch means that we have to reconcile again. */
  #isReconciled = false
  #mustReconcile = false
  /** An attempt is under way that may well end level: it has not failed, nor found Redis without a snapshot for us. */
  #isCatchingUp = false
  /** No longer is an attempt that failed followed by another before this edge serves what it has. */
  #isOverdue = false
  #hasComplained = false
  /** Since this edge was level. */
  #longLooks = 0
  #triedAgainAt = 0
  /** Refused names whose turn to be tried again is still to come. */
  #untried: string[] = []
  /** For what was refused and forgotten, while there is such a thing. */
  #search: SnapshotSearch | undefined
  /** When the next search may begin. */
  #searchesFrom = 0
  /** The epoch that we do not take part in, while there is one. */
  #asideFrom: string | undefined
  /** What all workers serve. The replica is ahead of it while they are being told. */
  #served: Served

  constructor(dependencies: FollowerDependencies) {
    this.#dependencies = dependencies
    this.#replica = dependencies.replica
    this.#log = dependencies.log
    this.#timers = dependencies.timers
    this.#logBatch = dependencies.logBatch ?? LOG_BATCH
    this.#examinations = dependencies.problemOf && createExaminations(dependencies.problemOf, dependencies.timers)
    this.#commands = dependencies.connect('commands')
    this.#served = servedBy(this.#replica, this.#replica.progress().position)
    this.#stopHeartbeat = this.#timers.every(EDGE_HEARTBEAT_MS, () => void this.#beat().catch(() => {}))
  }

  get position(): string {
    return this.#served.position
  }

  async run(): Promise<void> {
    void this.#timers.sleep(FIRST_SNAPSHOT_MS).then(() => {
      this.#isOverdue = true
      if (!this.#isCatchingUp) this.firstSync.resolve()
    })
    void this.#timers.sleep(FIRST_SYNC_MS).then(this.firstSync.resolve)
    while (!this.#isStopped) {
      try {
        this.#mustReconcile = false
        this.#isCatchingUp = true
        this.#search = undefined
        const blocking = this.#dependencies.connect('blocking')
        this.#blocking = blocking
        await Promise.all([ready(this.#commands), ready(blocking)])
        // Registered first: from here on control waits for this edge, also while it catches up.
        await this.#acknowledge()
        // On the connection that no beat uses: a watch ends with the next transaction.
        await forgetGone(blocking)
        const level = await this.#reconcile()
        await this.#acknowledge()
        this.#isReconciled = true
        await this.#follow(blocking, level)
      } catch (error) {
        if (error instanceof SnapshotReplaced) this.#mustReconcile = true
        if (!this.#isWorthAnother()) this.firstSync.resolve()
        if (!this.#isStopped && !this.#mustReconcile) this.#complain(error)
      }
      this.isLevel = this.#isReconciled = this.#isCatchingUp = false
      this.#blocking?.disconnect()
      if (!this.#isStopped && !this.#mustReconcile) await this.#timers.sleep(RECONNECT_MS)
    }
  }

  /** Whether the next attempt may well be the one that ends level. */
  #isWorthAnother(): boolean {
    return this.#commands.status === 'ready' && (this.#mustReconcile || !this.#isOverdue)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stopHeartbeat()
    if (this.#commands.status === 'ready') await deregister(this.#commands, this.#dependencies.edgeId).catch(() => {})
    this.#blocking?.disconnect()
    this.#commands.disconnect()
  }

  /** Whatever happens to Redis between two beats (flushed, replaced, connection lost), the next one notices. */
  async #beat(): Promise<void> {
    if (await this.#isAsReconciled()) return
    this.#mustReconcile = true
    this.#blocking?.disconnect()
  }

  async #isAsReconciled(): Promise<boolean> {
    // Only this connection keeps us on the list; the one that follows can be well without it.
    if (this.#commands.status !== 'ready') return !this.#isReconciled
    const [epoch, isRegistered] = await Promise.all([completeEpoch(this.#commands), this.#register()])
    const expected = this.#asideFrom ?? this.#replica.progress().epoch
    return !this.#isReconciled || (isRegistered && (epoch ?? '') === expected)
  }

  #nowServes(position: string): void {
    const { refusesMore } = this.#served
    this.#served = servedBy(this.#replica, position)
    if (this.#served.refusesMore && !refusesMore)
      this.#log.error('news of so many hosts cannot be used that not all are told: all publishes are pending meanwhile')
  }

  async #register(): Promise<boolean> {
    const { edgeId, ttlMs = EDGE_TTL_MS } = this.#dependencies
    // One that takes itself off the list does not come back to it with what it was about to say.
    return !this.#isStopped && register(this.#commands, edgeId, this.#served, ttlMs)
  }

  async #acknowledge(): Promise<void> {
    if (!(await this.#register())) throw new Error('Redis refused what this edge says of itself')
  }

  /** Brings the replica to a position from which the log can be followed without a gap. Returns where we are level. */
  async #reconcile(): Promise<string> {
    const [commands, replica] = [this.#commands, this.#replica]
    const epoch = await completeEpoch(commands)
    const [first] = await commands.xrange(keys.log, '-', '+', 'COUNT', 1)
    const [tip] = await commands.xrevrange(keys.log, '+', '-', 'COUNT', 1)
    const known = replica.progress()
    const isOlder = epoch !== null && isBehind(decodeHistory(epoch), replica.history())
    this.#asideFrom = isOlder ? epoch : undefined
    this.#isCatchingUp = epoch !== null && !isOlder
    if (this.#isOverdue && !this.#isCatchingUp) this.firstSync.resolve()
    if (epoch === null) {
      // A new life of Redis whose snapshot is not complete: follow its log, forget nothing.
      const rewound = tip !== undefined && compareStreamIds(tip[0], known.position) < 0
      await replica.apply([], { epoch: '', position: rewound ? START_OF_LOG : known.position })
    } else if (isOlder) {
      this.#log.warn(
        { epoch },
        'Redis holds an older history than this replica; waiting for control to begin a new one',
      )
    } else if (epoch !== known.epoch || hasRefused(replica) || hasGap(known.position, first?.[0], tip?.[0])) {
      await this.#loadSnapshot(epoch)
    }
    const isAside = this.#asideFrom !== undefined
    this.#nowServes(isAside ? START_OF_LOG : replica.progress().position)
    return isAside ? START_OF_LOG : (tip?.[0] ?? START_OF_LOG)
  }

  /** Also where it ends halfway: what was applied of it is not announced by anything else. */
  async #loadSnapshot(epoch: string): Promise<void> {
    await this.#applySnapshot(epoch).finally(() => this.#dependencies.announce(undefined))
  }

  async #applySnapshot(epoch: string): Promise<void> {
    const [commands, replica, log] = [this.#commands, this.#replica, this.#log]
    const history = decodeHistory(epoch)
    if (history) await replica.adopt(history)
    const [tip] = await commands.xrevrange(keys.log, '+', '-', 'COUNT', 1)
    const named = new Set<string>()
    const refused: Refusal[] = []
    const wasRefused = replica.refusals()
    const hasForgotten = replica.forgotten() > 0
    let reported = 0
    const apply = async (kind: 'route' | 'certificate', page: readonly (readonly [string, string])[]) => {
      const found = readSnapshot(kind, page)
      if (isNewerThan(history, found)) throw new Error('a newer history is being written over the snapshot')
      // All of a snapshot are too many to be asked for; those that were refused are not forgotten by it.
      const read = await this.#examineMissed(
        found,
        (entry) => wasRefused.has(refusalKey(entry)) || (hasForgotten && isNews(replica, entry)),
      )
      // A record that is older than ours is not taken, and so not acknowledged: its database lacks what it had published.
      const { outdated } = await replica.apply(read.entries, {})
      refused.push(...read.refused, ...outdated)
    }
    await scan(commands, keys.routes, async (page) => {
      for (const [host] of page) named.add(host)
      await apply('route', page)
      if (named.size >= reported + REPORT_HOSTS) log.info({ hosts: (reported = named.size) }, 'reading the snapshot')
    })
    // Certificates are only ever added: losing one from Redis is no reason to stop serving a domain.
    await scan(commands, keys.certificates, (page) => apply('certificate', page))
    if (tip) await learnChallenges(commands, replica, tip[0], this.#logBatch)
    await reportUnknown(commands, replica, log, named)
    if ((await commands.get(keys.epoch)) !== epoch) throw new SnapshotReplaced()
    tellOperator(log, replica.refusals(), refused)
    await replica.completeSnapshot({ epoch, position: tip?.[0] ?? START_OF_LOG }, refused)
    log.info({ epoch, hosts: named.size }, 'snapshot applied')
  }

  async #follow(connection: RedisConnection, level: string): Promise<void> {
    const replica = this.#replica
    let { position } = replica.progress()
    while (!this.#isStopped && !this.#mustReconcile) {
      if (this.#asideFrom !== undefined) {
        await this.#timers.sleep(RECONNECT_MS)
        continue
      }
      if (!this.isLevel && hasSnapshot(replica) && compareStreamIds(position, level) >= 0) this.#becomeLevel()
      const blockMs = hasSnapshot(replica) ? BLOCK_MS : NO_SNAPSHOT_MS
      const reply = await connection.xread('COUNT', this.#logBatch, 'BLOCK', blockMs, 'STREAMS', keys.log, position)
      const entries = reply?.[0]?.[1] ?? []
      await this.#tryAgain(position)
      const last = entries.at(-1)
      if (!last) {
        if (!hasSnapshot(replica)) await this.#beat()
        continue
      }
      // The log is longer than a batch: where something was trimmed behind our position, the reply is a full one.
      if (entries.length === this.#logBatch && (await isTrimmedPast(this.#commands, position))) return
      const read = readLog(entries)
      // Its snapshot comes first: a record alone does not tell which history it is of.
      if (isNewerThan(replica.history() ?? (hasSnapshot(replica) ? undefined : BEFORE_ALL), read)) return
      position = last[0]
      const examined = this.isLevel ? await examine(this.#examinations, read) : await this.#examineMissed(read)
      await this.#publish(examined, position)
    }
  }

  /** What an edge catches up with is taken in the end, so a blob store that does not answer is not waited for often. */
  async #examineMissed(read: Read, isAsked?: (entry: Entry) => boolean): Promise<Read> {
    const since = this.#timers.now()
    const lookMs = this.#longLooks < MAX_LONG_LOOKS ? LOOK_MS : SHORT_LOOK_MS
    const examined = await examine(this.#examinations, read, { isAsked, takesUnread: true, lookMs })
    if (this.#timers.now() - since >= LOOK_MS) this.#longLooks += 1
    return examined
  }

  async #publish({ entries, refused }: Read, position: string): Promise<void> {
    tellOperator(this.#log, this.#replica.refusals(), refused)
    const { changes } = await this.#replica.apply(entries, { position }, refused)
    if (changes.length > 0) await this.#dependencies.announce(changes)
    this.#nowServes(position)
    const acknowledged = this.#acknowledge()
    // Right behind it, so that control looks at once. It looks by itself where this is refused or lost.
    this.#commands.publish(keys.acknowledged, `${this.#dependencies.edgeId} ${position}`).catch(() => {})
    await acknowledged
  }

  /** What was refused, as the snapshot has it now. Between two batches: nothing newer is replaced or cleared by it. */
  async #tryAgain(position: string): Promise<void> {
    const replica = this.#replica
    const isDue = this.#timers.now() - this.#triedAgainAt >= TRY_AGAIN_MS
    if (isDue) this.#triedAgainAt = this.#timers.now()
    if (isDue && replica.forgotten() > 0) await this.#searchOn(position)
    const due = this.#dueNames(isDue)
    for (const kind of ['route', 'certificate'] as const) {
      const found = readSnapshot(kind, await snapshotOf(this.#commands, kind, due))
      // A newer history's snapshot comes first.
      if (isNewerThan(replica.history(), found)) return
      const { entries } = await examine(this.#examinations, found)
      const news = entries.filter((entry) => isNews(replica, entry))
      if (news.length > 0) await this.#publish({ entries: news, refused: [] }, position)
    }
  }

  /** Looks at some more pages of the snapshot, and takes what can be used of it. */
  async #searchOn(position: string): Promise<void> {
    const replica = this.#replica
    if (this.#timers.now() < this.#searchesFrom) return
    const search = (this.#search ??= beginSnapshotSearch(this.#commands, replica.forgotten()))
    const end = this.#timers.now() + SEARCH_TURN_MS
    const isOver = (): boolean => this.#isStopped || this.#mustReconcile || this.#timers.now() >= end
    for (let looked = 0; looked < SEARCH_TURN_ENTRIES && !isOver();) {
      const next = await search.pages.next()
      if (next.done) return this.#endSearch(search)
      const found = readSnapshot(next.value.kind, next.value.page)
      // A newer history's snapshot comes first, and ends what was forgotten.
      if (isNewerThan(replica.history(), found)) return void (this.#search = undefined)
      const news = found.entries.filter((entry) => isNews(replica, entry))
      const read = await examine(this.#examinations, { entries: news, refused: found.refused })
      search.note(read.refused)
      if (read.entries.length > 0) await this.#publish({ entries: read.entries, refused: [] }, position)
      looked += next.value.page.length
    }
  }

  async #endSearch(search: SnapshotSearch): Promise<void> {
    this.#search = undefined
    const found = search.found()
    if (found) await this.#replica.remember(found, search.forgotten)
    if (this.#replica.forgotten() > 0) this.#searchesFrom = this.#timers.now() + SEARCH_PAUSE_MS
    this.#nowServes(this.position)
    await this.#acknowledge()
  }

  /** What has been read by now, and every few seconds some of the others: each has its turn before one has its next. */
  #dueNames(withOthers: boolean): string[] {
    const done = this.#examinations?.done() ?? []
    if (!withOthers && done.length === 0) return []
    const refused = this.#replica.refusals()
    const due = new Set(done)
    if (withOthers) {
      if (this.#untried.length === 0) this.#untried = [...refused.keys()].toReversed()
      for (const name of this.#untried.splice(0, TRY_AGAIN_AT_ONCE)) due.add(name)
    }
    return [...due].filter((name) => refused.has(name))
  }

  #becomeLevel(): void {
    this.isLevel = true
    this.#longLooks = 0
    this.#hasComplained = false
    this.firstSync.resolve()
  }

  /** Once per outage, not once per attempt. */
  #complain(error: unknown): void {
    if (this.#hasComplained) return
    this.#hasComplained = true
    this.#log.warn({ err: error }, 'redis is away; serving from the replica')
  }
}

interface LookOptions {
  readonly isAsked?: ((entry: Entry) => boolean) | undefined
  readonly takesUnread?: boolean
  readonly lookMs?: number
}

/**
 * Leaves what can be served of what can be read; of several entries of one name the last one that can. `takesUnread`:
 * what takes long to read is taken all the same, as a snapshot takes nearly all of its entries without a look. An edge
 * that catches up may not go on with what it had before: others have acknowledged what it reads.
 */
async function examine(
  examinations: Examinations | undefined,
  read: Read,
  { isAsked = () => true, takesUnread = false, lookMs }: LookOptions = {},
): Promise<Read> {
  if (!examinations) return read
  const asked = read.entries.filter(isAsked)
  const found = new Map(sideBySide(asked, await examinations.problemsOf(asked, lookMs)))
  const problems = read.entries
    .map((entry) => found.get(entry))
    .map((problem) => (takesUnread && problem === STILL_READING ? undefined : problem))
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

/** Logs each refusal once, not with every attempt, and never so many that the log is nothing else. */
function tellOperator(log: Log, known: ReadonlyMap<string, string>, refused: readonly Refusal[]): void {
  const news = refused.filter(
    (refusal) => refusal.reason !== STILL_READING && known.get(refusalKey(refusal)) !== refusal.reason,
  )
  for (const { kind, name, reason } of news.slice(0, MAX_LOGGED_REFUSALS))
    log.error(
      { kind, name: name.slice(0, MAX_HOST_CHARS), reason },
      'news of a host cannot be used; it goes on as it was',
    )
  const more = news.length - MAX_LOGGED_REFUSALS
  if (more > 0) log.error({ more }, 'news of further hosts cannot be used')
}

/** Tells control of hosts of a history that was lost: they go on until control says what becomes of them. */
async function reportUnknown(
  commands: RedisConnection,
  replica: Replica,
  log: Log,
  named: ReadonlySet<string>,
): Promise<void> {
  const unknown = [...replica.hosts()].filter((host) => !named.has(host) && replica.route(host)?.kind !== 'none')
  for (let at = 0; at < unknown.length; at += SNAPSHOT_PAGE)
    await commands.sadd(keys.unknown, ...unknown.slice(at, at + SNAPSHOT_PAGE))
  if (unknown.length > 0) log.warn({ hosts: unknown.length }, 'hosts that the snapshot does not name; control is told')
}

/** Open challenges are in the log only: a CA that is about to look may come to an edge that has just started. */
async function learnChallenges(
  commands: RedisConnection,
  replica: Replica,
  tip: string,
  logBatch: number,
): Promise<void> {
  let from = `${Math.max(0, Number.parseInt(tip, 10) - CHALLENGE_LIFETIME_MS)}-0`
  for (;;) {
    const page = await commands.xrange(keys.log, from, tip, 'COUNT', logBatch)
    await replica.apply(readLog(page.filter(([, fields]) => isAbout('challenge', fields))).entries, {})
    const last = page.at(-1)
    if (!last || page.length < logBatch) return
    from = nextStreamId(last[0])
  }
}

/** Reads all of a hash. The next page is on its way while this one is written. */
async function scan(
  commands: RedisConnection,
  key: string,
  take: (page: [string, string][]) => Promise<void>,
): Promise<void> {
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

/** The names of a kind, of these (`refusalKey`), with what the snapshot says of them now. */
async function snapshotOf(
  commands: RedisConnection,
  kind: 'route' | 'certificate',
  keysOfNames: readonly string[],
): Promise<[string, string][]> {
  const names = keysOfNames.filter((key) => key.startsWith(`${kind} `))
  const page: [string, string][] = []
  for (const name of names.map((key) => key.slice(kind.length + 1))) {
    const value = await commands.hget(kind === 'route' ? keys.routes : keys.certificates, name)
    if (value !== null) page.push([name, value])
  }
  return page
}

/** What is served already was not what was refused. */
function isNews(replica: Replica, entry: Entry): boolean {
  if (entry.kind === 'threads') return false
  if (entry.kind !== 'route') return entry.value !== replica.value(entry.kind, entry.name)
  return entry.record.revision > (replica.route(entry.name)?.revision ?? 0)
}

/**
 * The snapshot that Redis has all of. One that it took over from another life may lack what the other had confirmed,
 * until control has published everything again. A release without histories does not say in which life it did.
 */
async function completeEpoch(commands: RedisConnection): Promise<string | null> {
  const [[epoch = null, lifeOfSnapshot], life] = await Promise.all([
    commands.mget([keys.epoch, keys.redisLife]),
    lifeOf(commands),
  ])
  return decodeHistory(epoch) === undefined || lifeOfSnapshot === life ? epoch : null
}

async function isTrimmedPast(commands: RedisConnection, position: string): Promise<boolean> {
  const [first] = await commands.xrange(keys.log, '-', '+', 'COUNT', 1)
  return hasGap(position, first?.[0], undefined)
}

function hasSnapshot(replica: Replica): boolean {
  return replica.progress().epoch !== ''
}

function hasRefused(replica: Replica): boolean {
  return replica.refusals().size > 0 || replica.forgotten() > 0
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
