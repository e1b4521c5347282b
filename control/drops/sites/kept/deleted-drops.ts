/** What is left of a drop that was deleted long ago: its rows, and the word "gone" at its address. */
import { siteHost } from '../../../../shared/http/hosts.ts'
import type { Pool } from '../../../ground/database/sql.ts'
import { changeRoutes } from '../../../ground/routing/changes.ts'
import { setRoute } from '../../../ground/routing/outbox.ts'
import { buriedHosts, deleteDrop, lockDeletedBefore } from './queries.ts'

/** So many at most in one run; the rest is for the next. */
const MAX_DROPS = 2000

/** Forgets drops that were deleted before then, each in a transaction. Their addresses are those of no drop from then on. */
export async function forgetDeletedDrops(sql: Pool, sitesDomain: string, before: Date): Promise<number> {
  let forgotten = 0
  while (forgotten < MAX_DROPS && (await forgetNext(sql, sitesDomain, before))) forgotten++
  return forgotten
}

async function forgetNext(sql: Pool, sitesDomain: string, before: Date): Promise<boolean> {
  const { value } = await changeRoutes(sql, async (tx) => {
    const id = await lockDeletedBefore(tx, before)
    if (id === undefined) return false
    for (const host of await buriedHosts(tx, id, (slug) => siteHost(slug, sitesDomain)))
      await setRoute(tx, { kind: 'none', host })
    await deleteDrop(tx, id)
    return true
  })
  return value
}
