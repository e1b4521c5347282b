/** The note that a mail is being handed over: written beforehand, committed in the moment of the hand-over itself. */
import { transaction, type Pool } from '../database/sql.ts'
import { insertHandover } from './queries.ts'
import type { Handover } from './sinks.ts'

/** Another sender has noted this mail: it is that sender's. */
export class HandedOverElsewhere extends Error {}

/** What ends the transaction of a note whose mail was not handed over. */
class NotHandedOver extends Error {}

export interface HandoverNote extends Handover {
  /**
   * Resolves when the note is committed, or gone if nothing was handed over. A commit that failed is no failure of the
   * mail: its sender is alive and says itself what came of it.
   */
  settle(): Promise<void>
}

export function createHandoverNote({ sql, mailId, now }: { sql: Pool; mailId: string; now: Date }): HandoverNote {
  const outcome = Promise.withResolvers<'handed over' | 'not handed over'>()
  let noted: Promise<void> = Promise.resolve()

  return {
    async prepare() {
      const written = Promise.withResolvers<void>()
      noted = transaction(sql, async (tx) => {
        if (!(await insertHandover(tx, mailId, now))) throw new HandedOverElsewhere(mailId)
        written.resolve()
        if ((await outcome.promise) === 'not handed over') throw new NotHandedOver(mailId)
      })
      noted.catch(written.reject)
      await written.promise
    },
    happens: () => outcome.resolve('handed over'),
    async settle() {
      // Changes nothing when it has happened.
      outcome.resolve('not handed over')
      await noted.catch(() => {})
    },
  }
}
