/** Strangers who asked to see a drop: the owner decides with the button of the mail, without signing in. */
import { errors } from '../../../shared/contracts/errors.ts'
import type { Clock } from '../../../shared/running/clock.ts'
import { hashSecret } from '../../../shared/secrets/secrets.ts'
import type { Pool } from '../../ground/database/sql.ts'
import { changeRoutes } from '../../ground/routing/changes.ts'
import type { Routing } from '../../ground/routing/routing.ts'
import { recordAudit } from '../../people/audit/audit.ts'
import type { RefreshRoutes } from '../sites/routing.ts'
import { sharingBy, type SharingTools } from '../sites/settings/sharing-changes.ts'
import type { Sites } from '../sites/sites.ts'
import { addViewers, dropNameOf } from '../viewers/lists.ts'
import * as queries from './queries.ts'

export interface AccessRequests {
  /** What the link of the mail is about; undefined when it does not work any more. */
  peek(token: string): Promise<{ email: string; drop: string } | undefined>
  /** Puts the person on the list and mails them; throws `invalid_link` or `plan_limit`. */
  letIn(token: string, ip: string): Promise<{ email: string; drop: string }>
}

interface AccessRequestsDependencies extends SharingTools {
  sql: Pool
  clock: Clock
  routing: Pick<Routing, 'propagate'>
  refreshRoutes: RefreshRoutes
  sites: Pick<Sites, 'find' | 'lockOrganisation'>
}

export function createAccessRequests(deps: AccessRequestsDependencies): AccessRequests {
  const { sql, clock, routing, refreshRoutes, sites } = deps
  return {
    async peek(token) {
      const request = await queries.findRequest(sql, hashSecret(token))
      return request && { email: request.email, drop: dropNameOf(request) }
    },

    async letIn(token, ip) {
      const { value, changes } = await changeRoutes(sql, async (tx) => {
        const request = await queries.findRequest(tx, hashSecret(token))
        if (!request) throw errors.invalidLink()
        await sites.lockOrganisation(tx, request.org_id)
        const visited = await queries.findVisited(tx, request.site_id, 'locked')
        const site = await sites.find(tx, request.site_id)
        const isFirst = await queries.deleteRequest(tx, hashSecret(token))
        if (!site || !isFirst || visited?.owner_email == null || visited.owner_id === null) throw errors.invalidLink()
        const at = new Date(clock.now())
        const owner = { userId: visited.owner_id, email: visited.owner_email, ip }
        const wanted = { named: [{ kind: 'email', value: request.email }], invite: true } as const
        const { named } = await addViewers(tx, site, wanted, sharingBy(owner, site, at, deps))
        const detail = { ids: named.map(({ id }) => id) }
        const entry = { at, orgId: request.org_id, actor: owner, action: 'viewer.added', subject: site.id } as const
        await recordAudit(tx, { ...entry, detail })
        await refreshRoutes(tx, site.id)
        return { email: request.email, drop: dropNameOf(request) }
      })
      await routing.propagate(changes)
      return value
    },
  }
}
