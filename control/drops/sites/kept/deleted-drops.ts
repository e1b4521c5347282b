/** What is left of a drop that was deleted long ago: its rows, and the word "gone" at its address. */
import { siteHost } from '../../../../shared/http/hosts.ts'
import type { Pool } from '../../../ground/database/sql.ts'
import { allChanges, changeRoutes, type Changed, type RouteChanges } from '../../../ground/routing/changes.ts'
import { setRoute } from '../../../ground/routing/outbox.ts'
import { buriedHosts, deleteDrop, lockDeletedBefore } from './queries.ts'

/** So many at most in one run; the rest is for the next. */
const MAX_DROPS = 2000

export interface DeletedDropsDependencies {
  readonly sql: Pool
  readonly sitesDomain: string
  propagate(changes: RouteChanges): Promise<unknown>
}

/** Forgets drops that were deleted before then, each in a transaction. Their addresses are those of no drop from then on. */
export async function forgetDeletedDrops(deps: DeletedDropsDependencies, before: Date): Promise<number> {
  const all: RouteChanges[] = []
  while (all.length < MAX_DROPS) {
    const { value: isForgotten, changes } = await forgetNext(deps, before)
    if (!isForgotten) break
    all.push(changes)
  }
  if (all.length > 0) await deps.propagate(allChanges(all))
  return all.length
}

function forgetNext({ sql, sitesDomain }: DeletedDropsDependencies, before: Date): Promise<Changed<boolean>> {
  return changeRoutes(sql, async (tx) => {
    const id = await lockDeletedBefore(tx, before)
    if (id === undefined) return false
    for (const host of await buriedHosts(tx, id, (slug) => siteHost(slug, sitesDomain)))
      await setRoute(tx, { kind: 'none', host })
    await deleteDrop(tx, id)
    return true
  })
}
