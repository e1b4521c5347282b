/** The transaction in which a name is added to a drop: room in the plan first, then the name and its pair. */
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { orUpgrade, plans, upgradeFor, type Plan } from '../../ground/terms/plans.ts'
import { reaches, type Actor } from '../../ground/actor.ts'
import type { Sql } from '../../ground/database/sql.ts'
import { isWildcard } from './dns/names.ts'
import { newToken } from './doctor/judgement.ts'
import * as queries from './queries.ts'
import * as rules from './rules.ts'

export interface NewName {
  readonly siteId: string
  readonly domain: string
  /** The other half, if it is wanted: it is added where the organisation does not have it yet. */
  readonly pair: string | undefined
}

export async function addNames(tx: Sql, actor: Actor, { siteId, domain, pair }: NewName, now: Date): Promise<void> {
  const plan = plans[(await queries.lockPlan(tx, actor.orgId)) ?? 'free']
  await requireLockedSite(tx, actor, siteId)
  await requireRoom(tx, actor, plan, domain, now)
  await addName(tx, actor, { siteId, domain, redirectTo: null }, now)
  const isPairFree = pair !== undefined && !(await queries.findOwnDomain(tx, actor.orgId, pair))
  if (isPairFree) await addName(tx, actor, { siteId, domain: pair, redirectTo: domain }, now)
}

export async function requireLockedSite(tx: Sql, actor: Actor, siteId: string): Promise<void> {
  const isOwn = reaches(actor.reach, siteId) && (await queries.lockOwnSite(tx, actor.orgId, siteId))
  if (!isOwn) throw errors.notFound()
}

async function addName(
  tx: Sql,
  actor: Actor,
  { siteId, domain, redirectTo }: { siteId: string; domain: string; redirectTo: string | null },
  now: Date,
): Promise<void> {
  const present = await queries.findOwnDomain(tx, actor.orgId, domain)
  if (present && present.site_id === siteId && present.redirect_to === redirectTo) return
  if (present)
    throw errors.conflict('domain_taken', `${domain} already belongs to a drop of yours. Remove it there first.`)
  await queries.insertDomain(tx, {
    id: newId('dom', now.getTime()),
    domain,
    site_id: siteId,
    org_id: actor.orgId,
    redirect_to: redirectTo,
    reason: 'not_checked',
    verify_token: newToken(),
    is_cname_spent: await queries.hadDomain(tx, siteId, domain),
    next_check_at: now,
    created_at: now,
  })
}

/** The caller has locked the plan. */
async function requireRoom(tx: Sql, actor: Actor, plan: Plan, domain: string, now: Date): Promise<void> {
  if (plan.customDomains === 0)
    throw errors.planFeature(
      'A custom domain',
      upgradeFor(({ customDomains }) => customDomains > 0),
    )
  if (isWildcard(domain) && !plan.wildcardDomains)
    throw errors.planFeature(
      'A wildcard domain',
      upgradeFor(({ wildcardDomains }) => wildcardDomains),
    )
  if (await queries.findOwnDomain(tx, actor.orgId, domain)) return
  if ((await queries.countDomains(tx, actor.orgId)) >= plan.customDomains)
    throw errors.planLimit(
      `Your plan allows ${plan.customDomains} custom ${plan.customDomains === 1 ? 'domain' : 'domains'}. Remove one${orUpgrade()}.`,
    )
  const since = new Date(now.getTime() - DAY_MS)
  if ((await queries.countDomainsSince(tx, actor.orgId, since)) >= rules.newDomainsPerDay(plan.customDomains))
    throw errors.rateLimited(
      HOUR_MS / SECOND_MS,
      'Your organisation has added many domains within a day. Wait until tomorrow, then go on.',
    )
}
