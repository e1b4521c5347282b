/**
 * Is Postgres there? A query on a connection that died silently, or to a server that is frozen, would wait for minutes;
 * callers of the API learn it within two seconds instead.
 *
 *   asked every PING_EVERY_MS on a connection of its own ─▶ answered: available
 *                                                        └▶ error, or silent for PING_MS: away; asked anew on a new connection
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { errors } from '../../../shared/contracts/errors.ts'
import type { Log } from '../../../shared/running/log.ts'
import { patiently } from '../../../shared/settings/patience.ts'
import { newCall, runAs } from './call.ts'
import { openDatabase, type Pool } from './sql.ts'

const PING_EVERY_MS = 400
const PING_MS = patiently(1400)
/** Sooner while it is away: it may be back any moment. */
const RETRY_MS = 200

export interface DatabaseWatch {
  start(): void
  stop(): Promise<void>
  /** Does the work unless Postgres is away; gives up on it, with a 503, when Postgres goes away meanwhile: nothing of it
   *  is committed after that. */
  guard<Result>(work: () => Promise<Result> | Result): Promise<Result>
  /** Why changes fail now, as a sentence without an end; undefined when nothing is known to be wrong. */
  trouble(): string | undefined
}

/** Postgres's code for a disk that is full (class 53). Only a change that fails tells. */
const DISK_FULL = '53100'
/** No question finds out that there is space again; without another failure for so long there is. */
const DISK_FULL_BELIEVED_MS = 30_000

export interface DatabaseWatchOptions {
  readonly url: string
  readonly isPooled?: boolean | undefined
  readonly log: Log
}

export function createDatabaseWatch({ url, isPooled = false, log }: DatabaseWatchOptions): DatabaseWatch {
  const waiting = new Set<() => void>()
  let running = false
  let isAway = false
  let isReadOnly = false
  let diskFullAt: number | undefined
  let sql: Pool | undefined
  let loop: Promise<void> = Promise.resolve()

  async function ping(): Promise<void> {
    sql ??= openDatabase({ url, maxConnections: 1, isPooled })
    const asked = sql<Writability[]>`select current_setting('transaction_read_only')::boolean as is_read_only`
    const answered = asked.then(([row]) => {
      noteReadOnly(row?.is_read_only ?? false)
      return true
    })
    answered.catch(() => {})
    const late = sleep(PING_MS, false, { ref: false })
    // An answer that came while this process was busy counts: it is read before the last turn ends.
    if (await Promise.race([answered, late.then(() => sleep(0, false))])) return
    if (!(await Promise.race([answered, sleep(10, false)]))) throw new Error(`Postgres is silent for ${PING_MS} ms`)
  }

  function noteReadOnly(now: boolean): void {
    if (now && !isReadOnly) log.error('Postgres only reads: nothing can be changed until it is the primary again')
    if (!now && isReadOnly) log.info('Postgres takes changes again')
    isReadOnly = now
  }

  function noteFailure(error: unknown): void {
    if ((error as { code?: string } | null)?.code === DISK_FULL) diskFullAt = performance.now()
  }

  async function watch(): Promise<void> {
    while (running) {
      try {
        await ping()
        if (isAway) log.info('Postgres is back')
        isAway = false
      } catch (error) {
        if (!isAway && running) log.error({ err: error }, 'Postgres is away')
        isAway = true
        for (const giveUp of waiting) giveUp()
        void sql?.end({ timeout: 0 }).catch(() => {})
        sql = undefined
      }
      await sleep(isAway ? RETRY_MS : PING_EVERY_MS, undefined, { ref: false })
    }
  }

  return {
    start() {
      running = true
      loop = watch()
    },
    async stop() {
      running = false
      await Promise.race([loop, sleep(PING_MS, undefined, { ref: false })])
      await sql?.end({ timeout: 0 }).catch(() => {})
    },
    guard(work) {
      return new Promise((resolve, reject) => {
        const call = newCall()
        const giveUp = (): void => {
          call.givenUp = true
          reject(errors.unavailable('A part of the service is not reachable right now. Try again in a moment.'))
        }
        if (isAway) return giveUp()
        waiting.add(giveUp)
        // In a function of its own: what it throws at once is a rejection too.
        runAs(call, async () => work())
          .then(resolve, (error: unknown) => {
            noteFailure(error)
            reject(error as Error)
          })
          .finally(() => waiting.delete(giveUp))
      })
    },
    trouble() {
      if (isAway) return 'Postgres is away'
      if (isReadOnly) return 'Postgres only reads'
      const isFull = diskFullAt !== undefined && performance.now() - diskFullAt < DISK_FULL_BELIEVED_MS
      return isFull ? 'the disk of Postgres is full' : undefined
    },
  }
}

interface Writability {
  readonly is_read_only: boolean
}
