/** Counts attempts in Postgres: every control counts together, and a restart forgets nothing. */
import type { Clock } from '../../../../shared/clock.ts'
import { errors } from '../../../../shared/errors.ts'
import { hashSecret } from '../../../../shared/secrets.ts'
import type { Sql } from '../../database/sql.ts'
import { countAttempt, forgetAttempts, refundAttempt } from '../../../people/accounts/queries.ts'
import { ALLOWANCES, type AllowanceName } from '../../../people/accounts/rules.ts'

export interface Throttle {
  /** Counts one attempt; false when it is over the allowance. */
  admit(name: AllowanceName, subject: string): Promise<boolean>
  /** Counts one attempt; how many times the allowance has been used by now: up to 1 is within it. */
  use(name: AllowanceName, subject: string): Promise<number>
  /** Counts one attempt; throws 429 when it is over the allowance. */
  require(name: AllowanceName, subject: string): Promise<void>
  /** After a success: the attempts so far no longer count. */
  forget(name: AllowanceName, subject: string): Promise<void>
  /** After a success: this one attempt no longer counts, those before it do. */
  refund(name: AllowanceName, subject: string): Promise<void>
}

export function createThrottle({ sql, clock }: { sql: Sql; clock: Clock }): Throttle {
  async function count(
    name: AllowanceName,
    subject: string,
  ): Promise<{ over: boolean; used: number; retryAfterMs: number }> {
    const { limit, windowMs } = ALLOWANCES[name]
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
  }
}

function keyOf(name: AllowanceName, subject: string): string {
  return `${name}:${hashSecret(subject).slice(0, 32)}`
}
