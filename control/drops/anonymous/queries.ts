import { VIEWERS_ONLY } from '../../../shared/contracts/admission.ts'
import { one, type Sql } from '../../ground/database/sql.ts'

export interface AnonymousRow {
  id: string
  slug: string
  name: string
  title: string
  created_at: Date
  expires_at: Date
  expired_at: Date | null
  taken_down_at: Date | null
  views: number
}

export async function listAnonymousSites(sql: Sql, anonymousId: string): Promise<AnonymousRow[]> {
  return sql<AnonymousRow[]>`
    select s.id, s.slug, s.name, s.title, s.created_at, s.expires_at, s.expired_at, s.taken_down_at,
           coalesce((select sum(count) from views v where v.site_id = s.id), 0)::bigint as views
    from sites s where s.anonymous_id = ${anonymousId} and s.org_id is null and s.deleted_at is null
    order by s.created_at desc`
}

/** What live anonymous drops store, of one network or all. */
export async function anonymousBytes(sql: Sql, now: Date, network?: string): Promise<number> {
  const ofNetwork = network === undefined ? sql`` : sql`and s.anonymous_network = ${network}`
  const { bytes } = one(
    await sql<{ bytes: number }[]>`
      select coalesce(sum(v.byte_size), 0)::bigint as bytes from sites s join versions v on v.site_id = s.id
      where s.org_id is null and s.deleted_at is null and s.expires_at > ${now} ${ofNetwork}`,
  )
  return Number(bytes)
}

/** By the browser that made them, or by the link of one. */
export type Claim = { anonymousId: string } | { claimHash: string }

/**
 * Drops that may still be claimed, newest first; locked, so that each is claimed once. The owner of an address also gets
 * what the same browser gave to a namesake, an account that it signed up for with that address although it had one.
 */
export async function lockClaimable(
  sql: Sql,
  by: Claim,
  { orgId, now }: { orgId: string; now: Date },
): Promise<string[]> {
  const ofBrowser = 'anonymousId' in by
  const condition = ofBrowser ? sql`anonymous_id = ${by.anonymousId}` : sql`claim_hash = ${by.claimHash}`
  const rows = await sql<{ id: string }[]>`
    select id from sites where ${condition} and org_id is null and deleted_at is null and taken_down_at is null
      and expired_at is null and expires_at > ${now}
    order by created_at desc, id desc for update`
  const given = ofBrowser ? await lockGivenToNamesakes(sql, by.anonymousId, orgId) : []
  return [...rows, ...given].map((row) => row.id)
}

async function lockGivenToNamesakes(sql: Sql, anonymousId: string, orgId: string): Promise<{ id: string }[]> {
  return sql<{ id: string }[]>`
    select id from sites where org_id in (${namesakesOf(sql, orgId)}) and anonymous_id = ${anonymousId}
      and deleted_at is null and taken_down_at is null
    order by created_at desc, id desc for update`
}

const namesakesOf = (sql: Sql, orgId: string) => sql`
  select o.id from organisations o join users namesake on namesake.id = o.owner_id
  join users owner on owner.email = namesake.typed_email
  join organisations own on own.owner_id = owner.id and own.id = ${orgId}`

/** A drop that no account has, also an expired one; locked, since it is about to go. */
export async function lockUnclaimed(
  sql: Sql,
  by: { anonymousId: string; siteId: string } | { claimHash: string },
): Promise<string | undefined> {
  const condition =
    'anonymousId' in by
      ? sql`id = ${by.siteId} and anonymous_id = ${by.anonymousId}`
      : sql`claim_hash = ${by.claimHash}`
  const [row] = await sql<{ id: string }[]>`
    select id from sites where ${condition} and org_id is null and deleted_at is null for update`
  return row?.id
}

export async function findByClaim(
  sql: Sql,
  claimHash: string,
  now: Date,
): Promise<{ id: string; slug: string; title: string } | undefined> {
  const [row] = await sql<{ id: string; slug: string; title: string }[]>`
    select id, slug, title from sites where claim_hash = ${claimHash} and org_id is null and deleted_at is null
      and taken_down_at is null and expires_at > ${now}`
  return row
}

/**
 * A namesake's drop still knows its browser, which may bring it to the owner of the address. Without a clock: refreshing
 * its routes starts the one of its new plan. Where no drop may be public, its viewers are to be named first.
 */
export async function adoptSite(sql: Sql, siteId: string, adoption: { orgId: string; now: Date }): Promise<void> {
  await sql`
    update sites set org_id = ${adoption.orgId}, anonymous_id = case when exists (
        select from organisations o join users u on u.id = o.owner_id
        where o.id = ${adoption.orgId} and u.typed_email is not null) then anonymous_id end,
      anonymous_network = null, claim_hash = null,
      password_hash = case when exists (
        select from organisations where id = ${adoption.orgId} and visibility_policy = 'no_public')
        then ${VIEWERS_ONLY} else password_hash end,
      expires_at = null, updated_at = ${adoption.now}
    where id = ${siteId}`
}

/** False when it was taken before: of two racing callers one is admitted. Postgres knows it, whatever becomes of Redis. */
export async function spendProof(sql: Sql, id: string, expiresAt: Date): Promise<boolean> {
  const { count } = await sql`
    insert into spent_proofs (id, expires_at) values (${id}, ${expiresAt}) on conflict (id) do nothing`
  return count === 1
}

export async function forgetSpentProofs(sql: Sql, now: Date): Promise<void> {
  await sql`delete from spent_proofs where expires_at <= ${now}`
}
