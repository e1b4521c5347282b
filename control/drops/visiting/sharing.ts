/** Sharing a drop, for its owner: viewers by name, guest links, and who has looked. */
import { errors } from '../../../shared/contracts/errors.ts'
import type { Clock } from '../../../shared/running/clock.ts'
import type { Actor } from '../../ground/actor.ts'
import type { Pool } from '../../ground/database/sql.ts'
import { changeRoutes, type RoutingTransaction } from '../../ground/routing/changes.ts'
import type { Routing } from '../../ground/routing/routing.ts'
import { recordAudit, type AuditAction } from '../../people/audit/audit.ts'
import type { RefreshRoutes } from '../sites/routing.ts'
import type { SiteFacts } from '../sites/rules.ts'
import { sharingBy, type SharingTools } from '../sites/settings/sharing-changes.ts'
import type { Propagated, Sites } from '../sites/sites.ts'
import { eraseContributions } from '../threads/threads.ts'
import { momentAfter, namedViewer, type NamedViewer, type ViewerRole } from '../viewers/access.ts'
import {
  addGuestLink,
  addViewers,
  listShared,
  remindViewer,
  removeGuestLink,
  removeViewer,
  type Sharing,
  type WantedLink,
} from '../viewers/lists.ts'
import {
  showGuestLink,
  showViewer,
  type addGuestLinkSchema,
  type addViewersSchema,
  type ApiGuestLink,
  type ApiViewer,
} from '../viewers/schemas.ts'
import type { z } from 'zod'

export interface ViewerSharing {
  viewers(actor: Actor, siteId: string): Promise<ApiViewer[]>
  /** Whole or not at all; who is on the list already stays there. */
  add(
    actor: Actor,
    siteId: string,
    wanted: { named: readonly NamedViewer[]; role?: ViewerRole | undefined; invite: boolean },
  ): Promise<Propagated<ApiViewer[]>>
  /** When the answer says so, no edge shows this viewer anything more. */
  remove(actor: Actor, siteId: string, viewerId: string): Promise<Propagated<undefined>>
  /** One mail, once, to a person who has not opened the drop. */
  remind(actor: Actor, siteId: string, viewerId: string): Promise<ApiViewer>
  guestLinks(actor: Actor, siteId: string): Promise<ApiGuestLink[]>
  /** The only answer that holds the link itself. */
  addLink(actor: Actor, siteId: string, wanted: WantedLink): Promise<ApiGuestLink>
  /** `comments`: what was said by it goes with it. */
  removeLink(actor: Actor, siteId: string, linkId: string, comments?: 'keep' | 'remove'): Promise<Propagated<undefined>>
}

interface SharingDependencies extends SharingTools {
  sql: Pool
  clock: Clock
  routing: Pick<Routing, 'propagate'>
  refreshRoutes: RefreshRoutes
  sites: Pick<Sites, 'requireOwn' | 'lockOwn'>
}

export function createViewerSharing(deps: SharingDependencies): ViewerSharing {
  const { sql, clock, routing, refreshRoutes, sites } = deps

  /** One change of a drop's lists: locked, recorded, and told to the edges. */
  async function change<Value>(
    actor: Actor,
    siteId: string,
    action: AuditAction,
    work: (tx: RoutingTransaction, site: SiteFacts, sharing: Sharing) => Promise<{ value: Value; ids: string[] }>,
  ): Promise<Propagated<Value>> {
    const { value, changes } = await changeRoutes(sql, async (tx) => {
      const site = await sites.lockOwn(tx, actor, siteId)
      const at = new Date(clock.now())
      const done = await work(tx, site, sharingBy(actor, site, at, deps))
      // Ids and no addresses: the log outlives the list.
      const detail = { ids: done.ids }
      await recordAudit(tx, { at, orgId: actor.orgId, actor, action, subject: siteId, detail })
      await refreshRoutes(tx, siteId)
      return done.value
    })
    return { value, ...(await routing.propagate(changes)) }
  }

  return {
    async viewers(actor, siteId) {
      await sites.requireOwn(sql, actor, siteId)
      return (await listShared(sql, siteId)).viewers.map(showViewer)
    },

    add: (actor, siteId, wanted) =>
      change(actor, siteId, 'viewer.added', async (tx, site, sharing) => {
        const { named } = await addViewers(tx, site, wanted, sharing)
        return { value: named.map(showViewer), ids: named.map(({ id }) => id) }
      }),

    remove: (actor, siteId, viewerId) =>
      change(actor, siteId, 'viewer.removed', async (tx, site, { now }) => {
        await removeViewer(tx, site, viewerId, now)
        return { value: undefined, ids: [viewerId] }
      }),

    async remind(actor, siteId, viewerId) {
      const { value } = await change(actor, siteId, 'viewer.reminded', async (tx, site, sharing) => ({
        value: showViewer(await remindViewer(tx, site, viewerId, sharing)),
        ids: [viewerId],
      }))
      return value
    },

    async guestLinks(actor, siteId) {
      await sites.requireOwn(sql, actor, siteId)
      return (await listShared(sql, siteId)).guestLinks.map(showGuestLink)
    },

    async addLink(actor, siteId, wanted) {
      const { value } = await change(actor, siteId, 'guest_link.added', async (tx, site, sharing) => {
        const link = showGuestLink(await addGuestLink(tx, site, wanted, sharing))
        return { value: link, ids: [link.id] }
      })
      return value
    },

    removeLink: (actor, siteId, linkId, comments = 'keep') =>
      change(actor, siteId, 'guest_link.removed', async (tx, site, { now }) => {
        await removeGuestLink(tx, site, linkId, now)
        if (comments === 'remove') {
          await eraseContributions(tx, 'guest', linkId)
          const detail = { ids: [linkId] }
          const action = 'thread.comments_removed'
          await recordAudit(tx, { at: now, orgId: actor.orgId, actor, action, subject: siteId, detail })
        }
        return { value: undefined, ids: [linkId] }
      }),
  }
}

/** What a call says, in the words of the service. */
export function wantedViewers({ viewers, role, invite }: z.infer<typeof addViewersSchema>): {
  named: NamedViewer[]
  role?: ViewerRole | undefined
  invite: boolean
} {
  return { named: viewers.map(namedViewer), role, invite }
}

export function wantedLink(input: z.infer<typeof addGuestLinkSchema>, now: number): WantedLink {
  const { name, role, expires_at, expires_in, max_uses } = input
  if (expires_at !== undefined && expires_in !== undefined)
    throw errors.invalidRequest('expires_in: send either expires_at or expires_in.')
  const given = expires_at == null ? null : new Date(expires_at)
  const expiresAt = expires_in === undefined ? given : momentAfter(expires_in, now)
  return { name, role, expiresAt, maxUses: max_uses }
}
