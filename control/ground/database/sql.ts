/** Postgres. `Sql` is a pool or a transaction: query functions take it first, so that either passes through. */
import postgres from 'postgres'
import { MINUTE_MS, SECOND_MS } from '../../../shared/running/clock.ts'
import { patiently } from '../../../shared/settings/patience.ts'
import { arrayTypes } from './array-types.ts'
import { sendBeginAhead } from './begin.ts'
import { currentCall, GivenUp } from './call.ts'
import { createWriteShares, writeShareLimits, type WriteShares } from './write-shares.ts'

export type Sql = postgres.Sql | postgres.TransactionSql
export type Pool = postgres.Sql

export interface DatabaseOptions {
  /** postgres:// URL, or a directory that holds the unix socket of the embedded server (`<dir>` or `<dir>?database=<name>`). */
  readonly url: string
  readonly maxConnections: number
  /**
   * Behind a pooler that gives out connections per transaction, no setting and no prepared statement outlives its
   * transaction, and the next one may run in another session. Settings are then made in each transaction.
   */
  readonly isPooled?: boolean
}

/**
 * A process that vanished with its machine leaves its locks behind for no longer. Longer than any call waits for Stripe
 * or a mail server inside a transaction.
 */
const MAX_IDLE_IN_TRANSACTION_MS = 5 * MINUTE_MS
const STATEMENT_TIMEOUT_MS = 30_000
const CONNECT_TIMEOUT_MS = patiently(2000)
const SETTINGS = {
  statement_timeout: STATEMENT_TIMEOUT_MS,
  idle_in_transaction_session_timeout: MAX_IDLE_IN_TRANSACTION_MS,
}

/** Who may have how much of which pool. */
const sharesOf = new WeakMap<Pool, WriteShares>()
/** How much of which pool is in use. */
const usesOf = new WeakMap<Pool, PoolUse>()
/** Those behind a pooler. */
const pooled = new WeakSet<Pool>()

export function openDatabase(options: DatabaseOptions): Pool {
  const pool = openPool(options, options.isPooled ? {} : SETTINGS)
  sharesOf.set(pool, createWriteShares(writeShareLimits(options.maxConnections)))
  usesOf.set(pool, { connections: options.maxConnections, transactions: 0, waiting: 0 })
  if (options.isPooled) pooled.add(pool)
  else sendBeginAhead(pool)
  return pool
}

/** Transactions, each of which holds a connection, and those that wait for their turn to begin. */
export interface PoolUse {
  readonly connections: number
  transactions: number
  waiting: number
}

export function poolUse(pool: Pool): Readonly<PoolUse> {
  return usesOf.get(pool) ?? { connections: 0, transactions: 0, waiting: 0 }
}

/** Behind a pooler no session is ours: LISTEN hears nothing, a lock of a session is another client's. */
export function isBehindPooler(pool: Pool): boolean {
  return pooled.has(pool)
}

/** One connection that any server and any pooler accepts, for a first question. */
export function openPlainly(url: string): Pool {
  return openPool({ url, maxConnections: 1, isPooled: true }, {})
}

function openPool(
  { url, maxConnections, isPooled = false }: DatabaseOptions,
  settings: Readonly<Record<string, number>>,
): Pool {
  const options: postgres.Options<Record<string, postgres.PostgresType>> = {
    max: maxConnections,
    idle_timeout: 60,
    connect_timeout: CONNECT_TIMEOUT_MS / SECOND_MS,
    // Seconds between attempts. The default grows to twenty: too long for callers who wait for it to be back.
    backoff: () => 0.1 + Math.random() * 0.2,
    onnotice: () => {},
    fetch_types: false,
    types: {
      // Sizes and counts fit a double exactly; strings would be a nuisance.
      bigint: { to: 20, from: [20], parse: Number, serialize: String },
      ...arrayTypes,
    },
    prepare: !isPooled,
    connection: { application_name: 'dropway', ...settings },
  }
  if (!url.startsWith('/')) return postgres(url, options)
  const [directory, database = 'dropway'] = url.split('?database=')
  const socket = `${directory}/.s.PGSQL.5432`
  return postgres({ ...options, host: socket, path: socket, database, username: 'postgres' })
}

/**
 * Runs `work` in one transaction; retries when Postgres says that a retry is safe (serialization, deadlock). What the
 * caller was told has failed is rolled back.
 */
export async function transaction<Result>(
  pool: Pool,
  work: (sql: postgres.TransactionSql) => Promise<Result>,
): Promise<Result> {
  const call = currentCall()
  const wanted = async (sql: postgres.TransactionSql): Promise<Result> => {
    if (pooled.has(pool)) await setForTransaction(sql)
    const result = await work(sql)
    if (call?.givenUp) throw new GivenUp()
    return result
  }
  for (let attempt = 1; ; attempt++) {
    try {
      return (await inTurn(pool, () => pool.begin(wanted))) as Result
    } catch (error) {
      const code = (error as { code?: string }).code
      if (attempt >= 5 || (code !== '40001' && code !== '40P01')) throw error
    }
  }
}

/** Begins when the caller's share of the pool has room, and counts both the wait and the work. */
async function inTurn(pool: Pool, begin: () => Promise<unknown>): Promise<unknown> {
  const use = usesOf.get(pool)
  const shares = sharesOf.get(pool)
  if (!use || !shares) return begin()
  let isWaiting = true
  const stopWaiting = (): void => {
    if (isWaiting) use.waiting -= 1
    isWaiting = false
  }
  use.waiting += 1
  try {
    return await shares.during(currentCall(), async () => {
      stopWaiting()
      use.transactions += 1
      try {
        return await begin()
      } finally {
        use.transactions -= 1
      }
    })
  } finally {
    stopWaiting()
  }
}

async function setForTransaction(sql: postgres.TransactionSql): Promise<void> {
  await sql`
    select set_config('statement_timeout', ${String(SETTINGS.statement_timeout)}, true),
      set_config('idle_in_transaction_session_timeout', ${String(SETTINGS.idle_in_transaction_session_timeout)}, true)`
}

/**
 * Statements of one transaction, sent in this order without waiting for the answer to each: Postgres runs them one after
 * the other, and each sees what those before it did or waited for. Each step sends one statement, at once.
 */
export async function inOrder<const Steps extends readonly (() => PromiseLike<unknown>)[]>(
  ...steps: Steps
): Promise<{ -readonly [Step in keyof Steps]: Awaited<ReturnType<Steps[Step]>> }> {
  const answers: Promise<unknown>[] = []
  for (const step of steps) {
    const answer = Promise.resolve(step())
    // The others fail with it; the caller hears of it below.
    answer.catch(() => {})
    answers.push(answer)
    // A query is handed over a few microtasks after it was asked for; what is handed over before I/O is one packet.
    await new Promise<void>((resolve) => process.nextTick(resolve))
  }
  return (await Promise.all(answers)) as { -readonly [Step in keyof Steps]: Awaited<ReturnType<Steps[Step]>> }
}

/** The row of a query that always has one, such as a count; none is a mistake in the query. */
export function one<Row>(rows: readonly Row[]): Row {
  const [row] = rows
  if (row === undefined) throw new Error('A query that always has a row has none')
  return row
}

export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  const { code, constraint_name } = error as { code?: string; constraint_name?: string }
  return code === '23505' && (constraint === undefined || constraint_name === constraint)
}

/** A document for a `jsonb` column. What it holds has been checked by its maker. */
export function jsonb(sql: Sql, document: object): postgres.Parameter {
  return sql.json(document as postgres.JSONValue)
}
