/**
 * Follows the change log in Redis and keeps the replica up to date. Runs in the primary process only; no visitor's
 * request ever waits for anything in here.
 *
 *   connect ─▶ register ─▶ reconcile? ─▶ follow ─▶ apply ─▶ workers confirm ─▶ acknowledge ─┐
 *      ▲                     (snapshot)     ▲─────────────────────────────────────────────────┘
 *      └── any error: wait, connect again; the replica keeps serving meanwhile
 *
 * Reconciling: when the epoch in Redis is not the one the replica was built from, or the log was trimmed past our
 * position, the whole snapshot is applied. Without an epoch (FLUSHALL, a new Redis) nothing is ever removed:
 * control republishes everything first and sets the epoch as its last step.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { CHALLENGE_LIFETIME_MS } from '../../shared/challenges.ts'
import { EDGE_HEARTBEAT_MS, EDGE_TTL_MS, keys } from '../../shared/keys.ts'
import type { Log } from '../../shared/log.ts'
import { decodeRouteRecord } from '../../shared/route-record.ts'
import { compareStreamIds, decodeStreamMessage, nextStreamId } from '../../shared/stream.ts'
import { BLOCK_MS } from './redis.ts'
import { START_OF_LOG, type Change, type Entry, type Kind, type Replica } from './replica.ts'

/** One round trip's worth of log; a slow edge must not hold a huge reply in memory. */
const LOG_BATCH = 1000
const SNAPSHOT_PAGE = 5000
/** Whoever waits for a large snapshot wants to see it grow. */
const REPORT_HOSTS = 100_000
const RECONNECT_MS = 250

export interface FollowerDependencies {
  readonly edgeId: string
  readonly replica: Replica
  /** A fresh connection for commands (with timeouts), and one that may block. */
  connect(use: 'commands' | 'blocking'): Redis
  /** Resolves when no worker serves the old value of these any more; undefined: everything may have changed. */
  announce(changes: readonly Change[] | undefined): Promise<void>
  readonly log: Log
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

export function startFollower({ edgeId, replica, connect, announce, log }: FollowerDependencies): Follower {
  let stopped = false
  let following = false
  let reconcileNeeded = false
  let complained = false
  let acknowledged = replica.progress().position
  let blocking: Redis | undefined
  const commands = connect('commands')
  const { promise: firstSync, resolve: firstSyncDone } = Promise.withResolvers<void>()

  const acknowledge = async (): Promise<void> => {
    await commands.multi().set(keys.edge(edgeId), acknowledged, 'PX', EDGE_TTL_MS).sadd(keys.edges, edgeId).exec()
  }

  /** Ids of edges that were killed; one that was only slow registers again with its next beat. */
  const forgetGone = async (): Promise<void> => {
    const ids = await commands.smembers(keys.edges)
    if (ids.length === 0) return
    const positions = await commands.mget(ids.map((id) => keys.edge(id)))
    const gone = ids.filter((_, index) => positions[index] === null)
    if (gone.length > 0) await commands.srem(keys.edges, ...gone)
  }

  /** Whatever happens to Redis between two beats (flushed, replaced), the next one notices. */
  const heartbeat = async (): Promise<void> => {
    if (commands.status !== 'ready') return
    const [epoch] = await Promise.all([commands.get(keys.epoch), acknowledge()])
    if (!following || (epoch ?? '') === replica.progress().epoch) return
    reconcileNeeded = true
    blocking?.disconnect()
  }
  const timer = setInterval(() => void heartbeat().catch(() => {}), EDGE_HEARTBEAT_MS)

  async function publish(entries: readonly Entry[], position: string): Promise<void> {
    const changes = await replica.apply(entries, { position })
    if (changes.length > 0) await announce(changes)
    acknowledged = position
    await acknowledge()
  }

  async function loadSnapshot(epoch: string): Promise<void> {
    const [tip] = await commands.xrevrange(keys.log, '+', '-', 'COUNT', 1)
    const hosts = new Set<string>()
    let reported = 0
    await scan(keys.routes, async (page) => {
      for (const [host] of page) hosts.add(host)
      await replica.apply(readSnapshot('route', page), {})
      if (hosts.size >= reported + REPORT_HOSTS) log.info({ hosts: (reported = hosts.size) }, 'reading the snapshot')
    })
    // Certificates are only ever added: losing one from Redis is no reason to stop serving a domain.
    await scan(keys.certificates, async (page) => void (await replica.apply(readSnapshot('certificate', page), {})))
    if (tip) await learnChallenges(tip[0])
    if ((await commands.get(keys.epoch)) !== epoch) throw new Error('the snapshot changed while it was read')
    await replica.completeSnapshot(hosts, { epoch, position: tip?.[0] ?? START_OF_LOG })
    await announce(undefined)
    log.info({ epoch, hosts: hosts.size }, 'snapshot applied')
  }

  /** Open challenges are in the log only: a CA that is about to look may come to an edge that has just started. */
  async function learnChallenges(tip: string): Promise<void> {
    let from = `${Math.max(0, Number.parseInt(tip, 10) - CHALLENGE_LIFETIME_MS)}-0`
    for (;;) {
      const page = await commands.xrange(keys.log, from, tip, 'COUNT', LOG_BATCH)
      await replica.apply(readLog(page.filter(([, fields]) => isAbout('challenge', fields))), {})
      if (page.length < LOG_BATCH) return
      from = nextStreamId(page.at(-1)![0])
    }
  }

  /** The next page is on its way while this one is written. */
  async function scan(key: string, take: (page: [string, string][]) => Promise<void>): Promise<void> {
    const page = (cursor: string): Promise<[string, string[]]> => commands.hscan(key, cursor, 'COUNT', SNAPSHOT_PAGE)
    let [cursor, flat] = await page('0')
    for (;;) {
      const next = cursor === '0' ? undefined : page(cursor)
      next?.catch(() => {})
      await take(pairs(flat))
      if (next === undefined) return
      ;[cursor, flat] = await next
    }
  }

  /** What cannot be read is reported and skipped; it must not stop what stands behind it. */
  function readEach<Item extends readonly [string, unknown]>(
    items: readonly Item[],
    read: (item: Item) => Entry,
  ): Entry[] {
    return items.flatMap((item) => {
      try {
        return [read(item)]
      } catch (error) {
        log.error({ err: error, entry: item[0] }, 'an unreadable entry in Redis is skipped')
        return []
      }
    })
  }

  const readSnapshot = (kind: 'route' | 'certificate', page: readonly [string, string][]): Entry[] =>
    readEach(page, ([name, value]) => readEntry(kind, name, value))

  const readLog = (entries: readonly [string, string[]][]): Entry[] =>
    readEach(entries, ([, fields]) => {
      const { kind, name, value } = decodeStreamMessage(fields)
      return readEntry(kind, name, value)
    })

  /** Brings the replica to a position from which the log can be followed without a gap; returns it. */
  async function reconcile(): Promise<string> {
    const epoch = await commands.get(keys.epoch)
    const [first] = await commands.xrange(keys.log, '-', '+', 'COUNT', 1)
    const [tip] = await commands.xrevrange(keys.log, '+', '-', 'COUNT', 1)
    const known = replica.progress()
    if (epoch === null) {
      // A new life of Redis whose snapshot is not complete: follow its log, forget nothing.
      const rewound = tip !== undefined && compareStreamIds(tip[0], known.position) < 0
      await replica.apply([], { epoch: '', position: rewound ? START_OF_LOG : known.position })
    } else if (epoch !== known.epoch || hasGap(known.position, first?.[0], tip?.[0])) {
      await loadSnapshot(epoch)
    }
    return replica.progress().position
  }

  async function follow(from: string): Promise<void> {
    let position = from
    while (!stopped && !reconcileNeeded) {
      const reply = await blocking!.xread('COUNT', LOG_BATCH, 'BLOCK', BLOCK_MS, 'STREAMS', keys.log, position)
      const entries = reply?.[0]?.[1] ?? []
      if (entries.length === 0) continue
      position = entries.at(-1)![0]
      await publish(readLog(entries), position)
      // So far behind that the log may have been trimmed under us.
      if (entries.length === LOG_BATCH) {
        const [first] = await commands.xrange(keys.log, '-', '+', 'COUNT', 1)
        if (hasGap(position, first?.[0], undefined)) return
      }
    }
  }

  async function run(): Promise<void> {
    while (!stopped) {
      try {
        reconcileNeeded = false
        blocking = connect('blocking')
        await Promise.all([ready(commands), ready(blocking)])
        // Registered first: from here on control waits for this edge, also while it catches up.
        await acknowledge()
        await forgetGone()
        const position = await reconcile()
        acknowledged = position
        await acknowledge()
        following = true
        complained = false
        firstSyncDone()
        await follow(position)
      } catch (error) {
        firstSyncDone()
        if (!stopped && !reconcileNeeded) complain(error)
      }
      following = false
      blocking?.disconnect()
      if (!stopped && !reconcileNeeded) await sleep(RECONNECT_MS)
    }
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
    position: () => acknowledged,
    async stop() {
      stopped = true
      clearInterval(timer)
      if (following)
        await commands
          .multi()
          .del(keys.edge(edgeId))
          .srem(keys.edges, edgeId)
          .exec()
          .catch(() => {})
      blocking?.disconnect()
      commands.disconnect()
      await running
    },
  }
}

/** True when entries between our position and the log may be lost, or when the log is not the one we followed. */
function hasGap(position: string, first: string | undefined, tip: string | undefined): boolean {
  if (first === undefined) return position !== START_OF_LOG
  return compareStreamIds(position, first) < 0 || (tip !== undefined && compareStreamIds(tip, position) < 0)
}

async function ready(redis: Redis): Promise<void> {
  if (redis.status === 'ready') return
  if (redis.status === 'wait' || redis.status === 'end' || redis.status === 'close') return redis.connect()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  redis.once('ready', resolve)
  redis.once('close', () => reject(new Error('redis connection closed')))
  return promise
}

function pairs(flat: readonly string[]): [string, string][] {
  const list: [string, string][] = []
  for (let index = 0; index + 1 < flat.length; index += 2) list.push([flat[index]!, flat[index + 1]!])
  return list
}

function isAbout(kind: Kind, fields: readonly string[]): boolean {
  return fields[fields.indexOf('kind') + 1] === kind
}

/** Throws when it is not what the contract says. */
function readEntry(kind: Kind, name: string, value: string): Entry {
  if (kind !== 'route') return { kind, name, value }
  const record = decodeRouteRecord(value)
  if (record.host !== name) throw new Error(`the record of ${record.host} stands under another name`)
  return { kind, name, record }
}
