/** Mails that tell owners what others said about their drops: at once, hourly, daily or never, as each drop says. */
import { DAY_MS, HOUR_MS, type Clock } from '../../../shared/running/clock.ts'
import { transaction, type Pool } from '../../ground/database/sql.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import { dropNameOf } from '../viewers/lists.ts'
import { listDueDigests, takeUnmailed } from './queries.ts'
import { reviewUrlOf, threadMailKeyOf } from './threads.ts'

/** As many as a person reads in a mail; it says how many more there are. */
const MAX_TOLD = 10

/** Safe on several controls at once: what one has taken, the others do not tell. */
export async function mailDigests({
  sql,
  clock,
  enqueueMail,
  baseUrl,
}: {
  readonly sql: Pool
  readonly clock: Clock
  readonly enqueueMail: EnqueueMail
  readonly baseUrl: string
}): Promise<void> {
  const now = new Date(clock.now())
  const before = { now, hourly: new Date(clock.now() - HOUR_MS), daily: new Date(clock.now() - DAY_MS) }
  for (const due of await listDueDigests(sql, before))
    await transaction(sql, async (tx) => {
      const taken = await takeUnmailed(tx, due.site_id, now)
      const [first] = taken
      if (!first) return
      await enqueueMail(tx, {
        eventKey: `${threadMailKeyOf(due.site_id)}digest:${first.id}`,
        to: due.email,
        template: 'thread_digest',
        data: {
          link: reviewUrlOf(baseUrl, due.slug),
          drop: dropNameOf(due),
          messages: taken.slice(0, MAX_TOLD).map(({ author_name: name, page, body }) => ({ name, page, body })),
          more: Math.max(0, taken.length - MAX_TOLD),
        },
      })
    })
}
