import type { PlanName } from '../../shared/plans.ts'
import type { Sql } from '../database/sql.ts'

/** None of them changes its plan until the transaction ends. */
export async function lockFreeOrganisations(sql: Sql, userId: string): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from organisations where owner_id = ${userId} and plan = 'free' and deleted_at is null
    order by id for no key update`
  return rows.map((row) => row.id)
}

export async function restartClock(sql: Sql, siteIds: readonly string[], expiresAt: Date | null): Promise<void> {
  await sql`update sites set expires_at = ${expiresAt}, expired_at = null where id = any(${siteIds as string[]})`
}

/** Those that still exist, expired ones too. Call it with the organisations locked. */
export async function lockSites(sql: Sql, orgIds: readonly string[]): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from sites where org_id = any(${orgIds as string[]}) and deleted_at is null order by id for update`
  return rows.map((row) => row.id)
}

export async function setPlan(sql: Sql, orgId: string, plan: PlanName): Promise<PlanName | undefined> {
  const [row] = await sql<{ before: PlanName }[]>`
    with old as (select id, plan from organisations where id = ${orgId} and deleted_at is null for update)
    update organisations o set plan = ${plan} from old where o.id = old.id returning old.plan as before`
  return row?.before
}

export interface ExpiringGroup {
  org_id: string
  email: string
  expires_at: Date
  drops: { name: string; slug: string }[]
}

/** Live free drops that end within (after, until], grouped as their owners should hear of them. */
export async function expiringDrops(sql: Sql, after: Date, until: Date): Promise<ExpiringGroup[]> {
  return sql<ExpiringGroup[]>`
    select s.org_id, u.email, s.expires_at,
           json_agg(json_build_object('name', coalesce(nullif(s.name, ''), nullif(s.title, ''), s.slug), 'slug', s.slug) order by s.slug) as drops
    from sites s join organisations o on o.id = s.org_id join users u on u.id = o.owner_id
    where s.deleted_at is null and s.expired_at is null and s.taken_down_at is null and s.paused_at is null
      and s.live_version_id is not null and s.expires_at > ${after} and s.expires_at <= ${until}
    group by s.org_id, u.email, s.expires_at`
}

/** Takes one drop whose clock has run out; other runners take others. */
export async function lockExpired(sql: Sql, now: Date): Promise<{ id: string; expires_at: Date } | undefined> {
  const [site] = await sql<{ id: string; expires_at: Date }[]>`
    select id, expires_at from sites where deleted_at is null and expired_at is null and expires_at <= ${now}
    order by expires_at limit 1 for update skip locked`
  return site
}

export async function markExpired(sql: Sql, siteId: string, at: Date): Promise<void> {
  await sql`update sites set expired_at = ${at} where id = ${siteId}`
}

/** Takes one expired drop whose recovery window has passed. */
export async function lockRemovable(sql: Sql, expiredBefore: Date): Promise<string | undefined> {
  const [site] = await sql<{ id: string }[]>`
    select id from sites where deleted_at is null and expired_at <= ${expiredBefore} order by expired_at limit 1 for update skip locked`
  return site?.id
}
