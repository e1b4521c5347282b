/**
 * Carries the outbox to Redis and waits until the edges serve it.
 *
 * 1. Rows leave the outbox in order, under one advisory lock, so that two controls never interleave.
 * 2. Each row becomes HSET (snapshot) + XADD (log) in one MULTI; only then is it deleted. A crash in between
 *    publishes it twice, which is harmless: revisions make it idempotent.
 * 3. Without an epoch in Redis (new, flushed) everything is republished first, then the epoch is set.
 * 4. The same when Redis has begun a new history: a replica that was promoted, or a server that was started again from
 *    its file, may lack what the last one had confirmed, and rows of that are in the outbox no longer.
 * 5. `propagate` resolves when every live edge has acknowledged the log position that holds the caller's rows.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Clock } from '../../shared/clock.ts'
import { keys, LOG_LENGTH } from '../../shared/keys.ts'
import { livePositions } from '../../shared/live-edges.ts'
import { PROPAGATION_WAIT_MS } from '../../shared/limits.ts'
import type { Log } from '../../shared/log.ts'
import { compareStreamIds, encodeStreamMessage } from '../../shared/stream.ts'
import { runAs } from '../database/call.ts'
import { transaction, type Pool } from '../database/sql.ts'
import { deleteOutboxRows, lockPublication, readOutbox, routesAfter, type OutboxRow } from './queries.ts'

export interface Events {
  /** Publishes what has been committed; resolves when every live edge serves it, or after 2 s with `pending`. */
  propagate(): Promise<{ pending: boolean }>
  /** Rewrites the whole snapshot from Postgres and starts a new epoch. */
  republish(): Promise<number>
  start(): void
  stop(): Promise<void>
}

interface EventsDeps {
  sql: Pool
  redis: Redis
  clock: Clock
  log: Log
  /** Further things that live in the snapshot (certificates); called while everything is republished. */
  republishers?: readonly ((redis: Redis) => Promise<void>)[]
}

const BATCH_ROWS = 500
const REPUBLISH_BATCH_ROWS = 1000
const ACK_POLL_MS = 4
const HEAL_INTERVAL_MS = 500
/** As a script with a key, so that a cluster asks the server that has our data. */
const READ_HISTORY = `return redis.call('INFO', 'replication')`

export function createEvents({ sql, redis, clock, log, republishers = [] }: EventsDeps): Events {
  // What one run publishes is news of everybody: it does not end with the call that happened to start it.
  const flush = coalesced(() => runAs(undefined, () => flushOutbox(sql, redis, republishAll)))
  const acks = createAckWaiter(redis, clock)
  let running = false
  let loop: Promise<void> = Promise.resolve()

  /** Caller holds the publication lock. */
  async function republishAll(lockedSql: Parameters<typeof readOutbox>[0]): Promise<number> {
    let count = 0
    for (let after = ''; ;) {
      const rows = await routesAfter(lockedSql, after, REPUBLISH_BATCH_ROWS)
      if (rows.length === 0) break
      await redis.hset(keys.routes, ...rows.flatMap((row) => [row.host, JSON.stringify(row.record)]))
      count += rows.length
      after = rows.at(-1)!.host
    }
    for (const republishOther of republishers) await republishOther(redis)
    const history = await historyOf(redis)
    if (history !== undefined) await redis.set(keys.history, history)
    await redis.set(keys.epoch, randomUUID())
    return count
  }

  async function republish(): Promise<number> {
    return transaction(sql, async (locked) => {
      await lockPublication(locked)
      return republishAll(locked)
    })
  }

  /** Two controls may notice at the same time; whoever has the lock second finds it done. */
  async function followHistory(): Promise<void> {
    if (!(await hasNewHistory(redis))) return
    const count = await transaction(sql, async (locked) => {
      await lockPublication(locked)
      return (await hasNewHistory(redis)) ? republishAll(locked) : undefined
    })
    if (count !== undefined) log.warn({ count }, 'Redis has begun a new history; everything is published again')
  }

  async function heal(): Promise<void> {
    let failing = false
    while (running) {
      try {
        await flush()
        await followHistory()
        if (failing) log.info('publication to Redis works again')
        failing = false
      } catch (error) {
        if (!failing) log.warn({ err: error }, 'publication to Redis fails; the outbox keeps the changes')
        failing = true
      }
      await sleep(HEAL_INTERVAL_MS, undefined, { ref: false })
    }
  }

  return {
    async propagate() {
      const deadline = clock.now() + PROPAGATION_WAIT_MS
      let position: string | undefined
      while (position === undefined) {
        // Another control may hold the publication lock, and have vanished with it.
        position = await Promise.race([flush().catch(() => undefined), late(deadline - clock.now())])
        if (position === undefined && clock.now() + 50 >= deadline) return { pending: true }
        if (position === undefined) await sleep(50)
      }
      return { pending: !(await acks.reached(position, deadline)) }
    },
    republish,
    start() {
      running = true
      loop = heal()
    },
    async stop() {
      running = false
      await Promise.race([loop, sleep(2 * HEAL_INTERVAL_MS, undefined, { ref: false })])
    },
  }
}

async function late(ms: number): Promise<undefined> {
  await sleep(ms, undefined, { ref: false })
}

async function hasNewHistory(redis: Redis): Promise<boolean> {
  const history = await historyOf(redis)
  return history !== undefined && history !== (await redis.get(keys.history))
}

/** Undefined: this server does not say (the stand-in without scripts), and has no replicas that could be promoted. */
async function historyOf(redis: Redis): Promise<string | undefined> {
  const info = await redis.eval(READ_HISTORY, 1, keys.history).catch((error: unknown) => {
    if ((error as Error).name === 'ReplyError') return ''
    throw error
  })
  return /master_replid:(\w+)/.exec(String(info))?.[1]
}

/** Publishes all committed rows; returns a log position that includes them. */
async function flushOutbox(
  pool: Pool,
  redis: Redis,
  republishAll: (sql: Parameters<typeof readOutbox>[0]) => Promise<number>,
): Promise<string> {
  for (;;) {
    const position = await transaction(pool, async (sql) => {
      await lockPublication(sql)
      if (!(await redis.exists(keys.epoch))) await republishAll(sql)
      const rows = await readOutbox(sql, BATCH_ROWS)
      if (rows.length === 0) return endOfLog(redis)
      const position = await publishRows(redis, rows)
      await deleteOutboxRows(
        sql,
        rows.map((row) => row.id),
      )
      return rows.length < BATCH_ROWS ? position : undefined
    })
    if (position !== undefined) return position
  }
}

/** Returns the log position of the last row. */
async function publishRows(redis: Redis, rows: readonly OutboxRow[]): Promise<string> {
  const multi = redis.multi()
  for (const row of rows) {
    if (row.kind === 'route') multi.hset(keys.routes, row.name, row.value)
    if (row.kind === 'domain') multi.hset(keys.domains, row.name, row.value)
    multi.xadd(
      keys.log,
      'MAXLEN',
      '~',
      LOG_LENGTH,
      '*',
      ...encodeStreamMessage({ kind: row.kind, name: row.name, value: row.value }),
    )
  }
  const results = await multi.exec()
  const failed = results?.find(([error]) => error)
  if (!results || failed) throw failed?.[0] ?? new Error('Redis discarded the publication')
  return results.at(-1)![1] as string
}

async function endOfLog(redis: Redis): Promise<string> {
  const [last] = (await redis.xrevrange(keys.log, '+', '-', 'COUNT', 1)) as [string, string[]][]
  return last?.[0] ?? '0-0'
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

/** One poller for all waiting callers; it runs only while somebody waits. */
function createAckWaiter(redis: Redis, clock: Clock) {
  const waiting = new Set<{ position: string; deadline: number; settle: (reached: boolean) => void }>()
  let polling = false

  async function poll(): Promise<void> {
    polling = true
    while (waiting.size > 0) {
      const positions = await livePositions(redis).catch(() => undefined)
      for (const waiter of waiting) {
        const reached =
          positions !== undefined &&
          positions.length > 0 &&
          positions.every((position) => compareStreamIds(position, waiter.position) >= 0)
        if (!reached && clock.now() < waiter.deadline) continue
        waiting.delete(waiter)
        waiter.settle(reached)
      }
      if (waiting.size > 0) await sleep(ACK_POLL_MS)
    }
    polling = false
  }

  return {
    reached(position: string, deadline: number): Promise<boolean> {
      return new Promise((settle) => {
        waiting.add({ position, deadline, settle })
        if (!polling) void poll()
      })
    },
  }
}
