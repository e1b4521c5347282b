/**
 * What names a person outlives the account for a while, in the audit logs of organisations and in the records of mails:
 * whoever misused it can be asked about. After the period that the page for deleting an account names, it goes too.
 */
import type { Clock } from '../../../shared/clock.ts'
import { addressesIn, eraseFromAudit } from '../audit/audit.ts'
import { transaction, type Pool } from '../../ground/database/sql.ts'
import { eraseMailsTo } from '../../ground/mail/mail.ts'
import { eraseInvitationsTo } from '../organisations/personal.ts'
import { addressesInUse, lockErasable, markErased } from './queries.ts'

export interface Erasure {
  /** Erases everything that is due; resolves to how many accounts that were. */
  run(): Promise<number>
}

export function createErasure({ sql, clock, keptMs }: { sql: Pool; clock: Clock; keptMs: number }): Erasure {
  const eraseNext = (): Promise<boolean> =>
    transaction(sql, async (db) => {
      const userId = await lockErasable(db, new Date(clock.now() - keptMs))
      if (userId === undefined) return false
      const known = await addressesIn(db, userId)
      // Somebody may have signed up again with the same address: that account's records are not this one's.
      const inUse = await addressesInUse(db, known)
      const addresses = known.filter((address) => !inUse.includes(address))
      await eraseFromAudit(db, userId, addresses)
      await eraseMailsTo(db, addresses)
      await eraseInvitationsTo(db, addresses)
      await markErased(db, userId, new Date(clock.now()))
      return true
    })

  return {
    async run() {
      let count = 0
      while (await eraseNext()) count++
      return count
    },
  }
}
