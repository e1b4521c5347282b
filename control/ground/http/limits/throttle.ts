/** Counts attempts in Postgres: every control counts together, and a restart forgets nothing. */
import type { Clock } from '../../../../shared/running/clock.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { hashSecret } from '../../../../shared/secrets/secrets.ts'
import type { Sql } from '../../database/sql.ts'
import { countAttempt, deleteEndedThrottles, forgetAttempts, refundAttempt } from './queries.ts'

export interface Allowance {
  readonly limit: number
  readonly windowMs: number
}

export interface Throttle<Name extends string> {
  /** Counts one attempt; false when it is over the allowance. */
  admit(name: Name, subject: string): Promise<boolean>
  /** Counts one attempt; how many times the allowance has been used by now: up to 1 is within it. */
  use(name: Name, subject: string): Promise<number>
  /** Counts one attempt; throws 429 when it is over the allowance. */
  require(name: Name, subject: string): Promise<void>
  /** After a success: the attempts so far no longer count. */
  forget(name: Name, subject: string): Promise<void>
  /** After a success: this one attempt no longer counts, those before it do. */
  refund(name: Name, subject: string): Promise<void>
  /** Removes what no longer counts. A job. */
  sweep(): Promise<void>
}

export function createThrottle<Name extends string>({
  sql,
  clock,
  allowances,
}: {
  readonly sql: Sql
  readonly clock: Clock
  readonly allowances: Readonly<Record<Name, Allowance>>
}): Throttle<Name> {
  async function count(name: Name, subject: string): Promise<{ over: boolean; used: number; retryAfterMs: number }> {
    const { limit, windowMs } = allowances[name]
    const now = clock.now()
    const row = await countAttempt(sql, keyOf(name, subject), {
      now: new Date(now),
      resetsAt: new Date(now + windowMs),
    })
    return { over: row.count > limit, used: row.count / limit, retryAfterMs: row.resetsAt.getTime() - now }
  }

  return {
    use: async (name, subject) => (await count(name, subject)).used,
    admit: async (name, subject) => !(await count(name, subject)).over,
    async require(name, subject) {
      const { over, retryAfterMs } = await count(name, subject)
      if (over) throw errors.rateLimited(retryAfterMs / 1000, 'Too many attempts. Wait a while, then try again.')
    },
    forget: (name, subject) => forgetAttempts(sql, keyOf(name, subject)),
    refund: (name, subject) => refundAttempt(sql, keyOf(name, subject)),
    sweep: () => deleteEndedThrottles(sql, new Date(clock.now())),
  }
}

function keyOf(name: string, subject: string): string {
  return `${name}:${hashSecret(subject).slice(0, 32)}`
}
