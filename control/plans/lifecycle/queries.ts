import type { PlanName } from '../../ground/terms/plans.ts'
import { one, type Sql } from '../../ground/database/sql.ts'
import { NOTICES_BEFORE_REMOVAL } from './rules.ts'

export async function noteSignIn(sql: Sql, userId: string, now: Date): Promise<void> {
  await sql`update users set last_sign_in_at = greatest(last_sign_in_at, ${now}) where id = ${userId}`
}

/** None of them changes its plan until the transaction ends. */
export async function listFreeOrganisations(sql: Sql, limit: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from organisations where plan = 'free' and deleted_at is null order by created_at limit ${limit}`
  return rows.map(({ id }) => id)
}

export async function lockFreeOrganisations(sql: Sql, userId: string): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from organisations where owner_id = ${userId} and plan = 'free' and deleted_at is null
    order by id for no key update`
  return rows.map((row) => row.id)
}

/** Those that still exist, expired ones too. Call it with the organisations locked. */
export async function lockSites(sql: Sql, orgIds: readonly string[]): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from sites where org_id = any(${orgIds as string[]}) and deleted_at is null order by id for update`
  return rows.map((row) => row.id)
}

/** Refreshing their routes starts the clocks anew. */
export async function forgetClocks(sql: Sql, siteIds: readonly string[]): Promise<void> {
  await sql`update sites set expires_at = null, expired_at = null where id = any(${siteIds as string[]})`
}

export async function setPlan(sql: Sql, orgId: string, plan: PlanName): Promise<PlanName | undefined> {
  const [row] = await sql<{ before: PlanName }[]>`
    with old as (select id, plan from organisations where id = ${orgId} and deleted_at is null for update)
    update organisations o set plan = ${plan} from old where o.id = old.id returning old.plan as before`
  return row?.before
}

export interface Addressee {
  email: string
  organisation: string
}

export async function findOwner(sql: Sql, orgId: string): Promise<Addressee> {
  return one(
    await sql<Addressee[]>`
      select u.email, o.name as organisation from organisations o join users u on u.id = o.owner_id
      where o.id = ${orgId}`,
  )
}

export interface NamedDrop {
  id: string
  name: string
  slug: string
  paused: boolean
}

export async function namesOf(sql: Sql, siteIds: readonly string[]): Promise<NamedDrop[]> {
  return sql<NamedDrop[]>`
    select id, coalesce(nullif(name, ''), nullif(title, ''), slug) as name, slug, paused_at is not null as paused
    from sites where id = any(${siteIds as string[]}) order by slug`
}

/** Takes an organisation of whose drops' clocks its owner may have to hear; other runners take others. */
export async function lockNoticeDue(sql: Sql, now: Date): Promise<string | undefined> {
  const [site] = await sql<{ org_id: string }[]>`
    select org_id from sites where deleted_at is null and org_id is not null and next_notice_at <= ${now}
    order by next_notice_at limit 1 for update skip locked`
  return site?.org_id
}

export interface ClockedRow {
  id: string
  name: string
  slug: string
  expires_at: Date
  told: string[]
}

/** The organisation's drops that owners hear of, and what they have heard of the present clock of each. */
export async function lockClockedDrops(sql: Sql, orgId: string): Promise<ClockedRow[]> {
  return sql<ClockedRow[]>`
    select s.id, coalesce(nullif(s.name, ''), nullif(s.title, ''), s.slug) as name, s.slug, s.expires_at,
      array(select n.kind from drop_notices n where n.site_id = s.id and n.clock = s.expires_at) as told
    from sites s where s.org_id = ${orgId} and s.deleted_at is null and s.expires_at is not null
    order by s.id for update`
}

/** `clock` is the drop's own value: what the database keeps may be finer than our times. */
export async function noteTold(
  sql: Sql,
  siteId: string,
  notice: { kind: string; actsAt: Date; now: Date },
): Promise<void> {
  await sql`
    insert into drop_notices (site_id, kind, clock, acts_at, sent_at)
    select id, ${notice.kind}, expires_at, ${notice.actsAt}, ${notice.now} from sites where id = ${siteId}`
}

export async function setNextNotice(sql: Sql, siteId: string, at: Date | null): Promise<void> {
  await sql`update sites set next_notice_at = ${at} where id = ${siteId}`
}

/** Those without a clock have nothing to tell. */
export async function forgetNotices(sql: Sql, orgId: string): Promise<void> {
  await sql`update sites set next_notice_at = null where org_id = ${orgId} and expires_at is null and next_notice_at is not null`
}

/** Takes one drop whose clock has run out; other runners take others. */
export async function lockExpired(sql: Sql, now: Date): Promise<string | undefined> {
  const [site] = await sql<{ id: string }[]>`
    select id from sites where deleted_at is null and expired_at is null and expires_at <= ${now}
    order by expires_at limit 1 for update skip locked`
  return site?.id
}

export async function markExpired(sql: Sql, siteId: string): Promise<void> {
  await sql`update sites set expired_at = expires_at where id = ${siteId}`
}

/** Expired drops whose recovery window has passed, and whose owner, if they have one, was told of it. */
const removable = (sql: Sql, expiredBefore: Date, now: Date) => sql`
  sites s where deleted_at is null and expired_at <= ${expiredBefore}
    and (org_id is null or ${NOTICES_BEFORE_REMOVAL.length} = (
      select count(*) from drop_notices n where n.site_id = s.id and n.clock = s.expires_at
        and n.kind = any(${[...NOTICES_BEFORE_REMOVAL]}) and n.acts_at <= ${now}))`

/** Takes one of them; other runners take others. */
export async function lockRemovable(sql: Sql, expiredBefore: Date, now: Date): Promise<string | undefined> {
  const [site] = await sql<{ id: string }[]>`
    select id from ${removable(sql, expiredBefore, now)} order by expired_at limit 1 for update skip locked`
  return site?.id
}

export async function countRemovable(sql: Sql, expiredBefore: Date, now: Date): Promise<number> {
  const { count } = one(
    await sql<{ count: number }[]>`select count(*) as count from ${removable(sql, expiredBefore, now)}`,
  )
  return count
}

export async function countExpired(sql: Sql, now: Date): Promise<number> {
  const { count } = one(
    await sql<{ count: number }[]>`
    select count(*) as count from sites where deleted_at is null and expired_at is null and expires_at <= ${now}`,
  )
  return count
}

export async function countNoticesDue(sql: Sql, now: Date): Promise<number> {
  const { count } = one(
    await sql<{ count: number }[]>`
    select count(distinct org_id) as count from sites
    where deleted_at is null and org_id is not null and next_notice_at <= ${now}`,
  )
  return count
}

export async function countDrops(sql: Sql): Promise<number> {
  const { count } = one(await sql<{ count: number }[]>`select count(*) as count from sites where deleted_at is null`)
  return count
}

/** Milliseconds since the epoch, as Postgres counts them. */
export async function databaseTime(sql: Sql): Promise<number> {
  const { now } = one(await sql<{ now: Date }[]>`select clock_timestamp() as now`)
  return now.getTime()
}
