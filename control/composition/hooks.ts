/** What other capabilities do when something happens to a person or an organisation, in the transaction of the event. */
import type { OAuth } from '../doors/oauth/oauth.ts'
import type { SignInHooks } from '../doors/oauth/tokens.ts'
import { eraseContributions } from '../drops/threads/threads.ts'
import { endMemberAdmissions, resumeMemberAdmissions } from '../drops/viewers/lists.ts'
import type { AccountHooks } from '../people/accounts/contract.ts'
import type { OrganisationHooks } from '../people/organisations/dependencies.ts'
import type { Drops } from './drops.ts'
import type { Plans } from './plans.ts'

export type Hooks = AccountHooks & OrganisationHooks & SignInHooks

export function createHooks(
  { sites, anonymous, routing, refreshRoutes }: Pick<Drops, 'sites' | 'anonymous' | 'routing' | 'refreshRoutes'>,
  { lifecycle, billing }: Plans,
  { endGrantsOf }: Pick<OAuth, 'endGrantsOf'>,
): Hooks {
  return {
    onSignIn: lifecycle.touchOwner,
    onVerified: sites.refreshOwned,
    claim: anonymous.claimBrowser,
    onOrganisationDeleted: sites.removeAll,
    async onOwnerChanged(tx, orgId) {
      await lifecycle.ownerChanged(tx, orgId)
      return { bill: await billing.ownerChanged(tx, orgId) }
    },
    async onMemberLeft(tx, userId, orgId, now) {
      for (const siteId of await endMemberAdmissions(tx, { userId, orgId, now })) await refreshRoutes(tx, siteId)
    },
    async onMemberBack(tx, userId, now) {
      for (const siteId of await resumeMemberAdmissions(tx, userId, now)) await refreshRoutes(tx, siteId)
    },
    onAccountClosed: (tx, userId) => eraseContributions(tx, 'member', userId),
    endConnectedApps: endGrantsOf,
    propagate: routing.propagate,
  }
}
