/** SQL of viewers, guest links and admissions. */
import { one, type Sql } from '../../ground/database/sql.ts'
import { isRemovedOf } from '../../people/access/provider-queries.ts'
import { hasFactorOf } from '../../people/access/second-factor.ts'
import type { NamedViewer, ViewerRole } from './access.ts'

export interface ViewerRow {
  readonly id: string
  readonly kind: 'email' | 'domain'
  readonly value: string
  readonly role: ViewerRole
  readonly created_at: Date
  readonly invited_at: Date | null
  readonly reminded_at: Date | null
  readonly first_opened_at: Date | null
  readonly last_opened_at: Date | null
  readonly visits: number
}

export interface GuestLinkRow {
  readonly id: string
  readonly name: string
  readonly role: ViewerRole
  readonly expires_at: Date | null
  readonly max_uses: number | null
  readonly uses: number
  readonly last_opened_at: Date | null
  readonly created_at: Date
}

const viewerColumns = (sql: Sql) =>
  sql`id, kind, value, role, created_at, invited_at, reminded_at, first_opened_at, last_opened_at, visits`
const linkColumns = (sql: Sql) => sql`id, name, role, expires_at, max_uses, uses, last_opened_at, created_at`

export async function listViewers(sql: Sql, siteId: string): Promise<ViewerRow[]> {
  return sql<ViewerRow[]>`
    select ${viewerColumns(sql)} from viewers where site_id = ${siteId} order by created_at, id`
}

export async function listNamed(sql: Sql, siteId: string, named: readonly NamedViewer[]): Promise<ViewerRow[]> {
  return sql<ViewerRow[]>`
    select ${viewerColumns(sql)} from viewers
    where site_id = ${siteId} and (kind, value) in (
      select * from unnest(${named.map(({ kind }) => kind)}::text[], ${named.map(({ value }) => value)}::text[]))
    order by created_at, id`
}

export async function findViewer(sql: Sql, siteId: string, viewerId: string): Promise<ViewerRow | undefined> {
  const [row] = await sql<ViewerRow[]>`
    select ${viewerColumns(sql)} from viewers where site_id = ${siteId} and id = ${viewerId}`
  return row
}

export async function countViewers(sql: Sql, siteId: string): Promise<number> {
  return one(await sql<{ count: number }[]>`select count(*)::int as count from viewers where site_id = ${siteId}`).count
}

export async function insertViewers(
  sql: Sql,
  siteId: string,
  viewers: readonly (NamedViewer & { readonly id: string })[],
  { role, now, invitedAt }: { role: ViewerRole; now: Date; invitedAt: Date | null },
): Promise<void> {
  await sql`
    insert into viewers (id, site_id, kind, value, role, created_at, invited_at)
    select v.id, ${siteId}, v.kind, v.value, ${role}, ${now}, case when v.kind = 'email' then ${invitedAt}::timestamptz end
    from unnest(${viewers.map(({ id }) => id)}::text[], ${viewers.map(({ kind }) => kind)}::text[],
      ${viewers.map(({ value }) => value)}::text[]) as v (id, kind, value)`
}

export async function setViewerRole(sql: Sql, ids: readonly string[], role: ViewerRole): Promise<void> {
  await sql`update viewers set role = ${role} where id = any(${ids as string[]})`
}

export async function setInvited(sql: Sql, viewerId: string, now: Date): Promise<void> {
  await sql`update viewers set invited_at = coalesce(invited_at, ${now}) where id = ${viewerId}`
}

/** False when the viewer was reminded before. */
export async function setReminded(sql: Sql, viewerId: string, now: Date): Promise<boolean> {
  const rows = await sql`
    update viewers set reminded_at = ${now} where id = ${viewerId} and reminded_at is null returning id`
  return rows.length === 1
}

export async function deleteViewer(sql: Sql, siteId: string, viewerId: string): Promise<boolean> {
  return (await sql`delete from viewers where site_id = ${siteId} and id = ${viewerId}`).count === 1
}

/** The person by name before everyone at the domain. */
export async function findViewerFor(sql: Sql, siteId: string, email: string): Promise<string | undefined> {
  const [row] = await sql<{ id: string }[]>`
    select id from viewers where site_id = ${siteId}
      and ((kind = 'email' and value = ${email}) or (kind = 'domain' and value = ${domainOf(email)}))
    order by kind desc limit 1`
  return row?.id
}

/**
 * The person, the second in which they joined and the password that they have by now, so that a member who left and came
 * back comes in anew, and so does one who chose another password. The first password goes without saying.
 */
const memberSubjectOf = (sql: Sql) => sql`
  m.user_id || '.' || extract(epoch from m.created_at)::bigint
    || case when u.password_generation = 0 then '' else '.' || u.password_generation end`

/** The member `u` of the organisation `o` has the second factor that it asks for, and was not removed at the provider. */
const isWelcomeIn = (sql: Sql) => sql`
  (not o.requires_second_factor or ${hasFactorOf(sql, 'u.id')}) and not ${isRemovedOf(sql, 'u.id')}`

/** A verified member of the organisation that the drop belongs to. Who is closed out at its other doors is none here. */
export async function findMemberFor(
  sql: Sql,
  siteId: string,
  by: { readonly email: string } | { readonly userId: string },
): Promise<string | undefined> {
  const [row] = await sql<{ subject: string }[]>`
    select ${memberSubjectOf(sql)} as subject
    from sites s join organisations o on o.id = s.org_id join memberships m on m.org_id = s.org_id
    join users u on u.id = m.user_id
    where s.id = ${siteId} and u.email_verified_at is not null and ${isWelcomeIn(sql)}
      and ${'email' in by ? sql`lower(u.email) = ${by.email}` : sql`u.id = ${by.userId}`}`
  return row?.subject
}

function domainOf(email: string): string {
  return email.slice(email.lastIndexOf('@') + 1)
}

export async function listGuestLinks(sql: Sql, siteId: string): Promise<GuestLinkRow[]> {
  return sql<GuestLinkRow[]>`
    select ${linkColumns(sql)} from guest_links where site_id = ${siteId} order by created_at, id`
}

export async function countGuestLinks(sql: Sql, siteId: string): Promise<number> {
  return one(await sql<{ count: number }[]>`select count(*)::int as count from guest_links where site_id = ${siteId}`)
    .count
}

export async function insertGuestLink(
  sql: Sql,
  siteId: string,
  link: Pick<GuestLinkRow, 'id' | 'name' | 'role' | 'expires_at' | 'max_uses' | 'created_at'> & { token_hash: string },
): Promise<void> {
  await sql`insert into guest_links ${sql({ ...link, site_id: siteId })}`
}

export async function deleteGuestLink(sql: Sql, siteId: string, linkId: string): Promise<boolean> {
  return (await sql`delete from guest_links where site_id = ${siteId} and id = ${linkId}`).count === 1
}

export async function findGuestLink(
  sql: Sql,
  siteId: string,
  by: { readonly tokenHash: string } | { readonly id: string },
): Promise<GuestLinkRow | undefined> {
  const [row] = await sql<GuestLinkRow[]>`
    select ${linkColumns(sql)} from guest_links where site_id = ${siteId}
      and ${'id' in by ? sql`id = ${by.id}` : sql`token_hash = ${by.tokenHash}`}`
  return row
}

/** The link of a token, locked: two browsers do not both take the last use. */
export async function lockGuestLink(sql: Sql, siteId: string, tokenHash: string): Promise<GuestLinkRow | undefined> {
  const [row] = await sql<GuestLinkRow[]>`
    select ${linkColumns(sql)} from guest_links where site_id = ${siteId} and token_hash = ${tokenHash} for update`
  return row
}

export async function countUse(sql: Sql, linkId: string): Promise<void> {
  await sql`update guest_links set uses = uses + 1 where id = ${linkId}`
}

/** Whether a viewer, a guest link or a membership is still there, and its member welcome. */
export async function subjectExists(sql: Sql, siteId: string, subject: string): Promise<boolean> {
  const [userId = ''] = subject.split('.')
  const rows = await sql`
    select from viewers where site_id = ${siteId} and id = ${subject}
    union all select from guest_links where site_id = ${siteId} and id = ${subject}
    union all select from sites s join organisations o on o.id = s.org_id join memberships m on m.org_id = s.org_id
      join users u on u.id = m.user_id
      where s.id = ${siteId} and m.user_id = ${userId} and ${memberSubjectOf(sql)} = ${subject} and ${isWelcomeIn(sql)}`
  return rows.length > 0
}

/** Notes until when someone is let in. What was ended stays ended: who was removed comes back under another id. */
export async function upsertAdmission(sql: Sql, siteId: string, subject: string, until: Date): Promise<void> {
  await sql`
    insert into admissions (site_id, subject, until) values (${siteId}, ${subject}, ${until})
    on conflict (site_id, subject) do update set until = greatest(admissions.until, excluded.until)`
}

/** False when there is nothing to end: no one came in with it, or all of that is over. */
export async function endAdmission(sql: Sql, siteId: string, subject: string, now: Date): Promise<boolean> {
  const rows = await sql`
    update admissions set ended_at = ${now}
    where site_id = ${siteId} and subject = ${subject} and ended_at is null and until > ${now} returning subject`
  return rows.length > 0
}

/** In the order of their end. */
export async function listEnded(sql: Sql, siteId: string, now: Date): Promise<{ subject: string; until: Date }[]> {
  return sql<{ subject: string; until: Date }[]>`
    select subject, until from admissions
    where site_id = ${siteId} and ended_at is not null and until > ${now} order by until, subject`
}

/** Whoever is in has to come in anew. */
export async function beginGeneration(sql: Sql, siteId: string, now: Date): Promise<void> {
  await sql`
    update sites set password_generation = password_generation + 1, updated_at = ${now} where id = ${siteId}`
}

/** All but one, which stays named in the drop's record. */
export async function deleteOtherAdmissions(sql: Sql, siteId: string, subject: string): Promise<void> {
  await sql`delete from admissions where site_id = ${siteId} and subject <> ${subject}`
}

export async function deletePastAdmissions(sql: Sql, now: Date): Promise<void> {
  await sql`delete from admissions where until <= ${now}`
}

/**
 * Locks the drops that a member may come in to, of one organisation or of all, against those who give admissions. The
 * organisations come first and then their drops, as for every publish, each in the order of their ids.
 */
export async function lockDropsOfMember(sql: Sql, userId: string, orgId: string | undefined): Promise<void> {
  const organisations = await sql<{ id: string }[]>`
    select id from organisations where ${
      orgId === undefined ? sql`id in (select org_id from memberships where user_id = ${userId})` : sql`id = ${orgId}`
    } order by id for no key update`
  await sql`
    select id from sites where org_id = any(${organisations.map(({ id }) => id)}) and deleted_at is null
    order by id for no key update`
}

/** Where a member has come in: in drops of one organisation, or of all. */
export async function admissionsOfMember(
  sql: Sql,
  userId: string,
  orgId: string | undefined,
  now: Date,
): Promise<{ siteId: string; subject: string }[]> {
  return sql<{ siteId: string; subject: string }[]>`
    select s.id as "siteId", a.subject from admissions a join sites s on s.id = a.site_id
    where starts_with(a.subject, ${`${userId}.`}) and a.ended_at is null and a.until > ${now} and s.deleted_at is null
      and ${orgId === undefined ? sql`true` : sql`s.org_id = ${orgId}`} order by s.id`
}

/** Takes back the end of what belongs to a membership that is still there, wherever its member is welcome. */
export async function resumeAdmissionsOfMember(sql: Sql, userId: string, now: Date): Promise<string[]> {
  const rows = await sql<{ siteId: string }[]>`
    update admissions a set ended_at = null
    from sites s join organisations o on o.id = s.org_id join memberships m on m.org_id = s.org_id
      join users u on u.id = m.user_id
    where s.id = a.site_id and s.deleted_at is null and m.user_id = ${userId} and a.subject = ${memberSubjectOf(sql)}
      and ${isWelcomeIn(sql)} and a.ended_at is not null and a.until > ${now}
    returning a.site_id as "siteId"`
  return rows.map(({ siteId }) => siteId)
}

export async function insertViewerInvitation(
  sql: Sql,
  invitation: { token_hash: string; site_id: string; subject: string; expires_at: Date },
): Promise<void> {
  await sql`insert into viewer_invitations ${sql(invitation)}`
}

/** Whom a mailed invitation names, until it is used or over. */
export async function findInvited(
  sql: Sql,
  siteId: string,
  tokenHash: string,
  now: Date,
): Promise<ViewerRow | undefined> {
  const [row] = await sql<ViewerRow[]>`
    select ${viewerColumns(sql)} from viewers where site_id = ${siteId} and kind = 'email' and id in (
      select subject from viewer_invitations
      where site_id = ${siteId} and token_hash = ${tokenHash} and expires_at > ${now})`
  return row
}

export async function deleteInvitations(sql: Sql, siteId: string, subject: string): Promise<void> {
  await sql`delete from viewer_invitations where site_id = ${siteId} and subject = ${subject}`
  await sql`delete from viewer_codes where site_id = ${siteId} and subject = ${subject}`
}

/** Everything that names people who could see a drop, and the mails to them. */
export async function eraseSite(sql: Sql, siteId: string): Promise<void> {
  await sql`delete from viewers where site_id = ${siteId}`
  await sql`delete from guest_links where site_id = ${siteId}`
  await sql`delete from admissions where site_id = ${siteId}`
  await sql`delete from viewer_codes where site_id = ${siteId}`
  await sql`delete from viewer_invitations where site_id = ${siteId}`
  await sql`delete from access_requests where site_id = ${siteId}`
}

/** Adds what edges saw: seconds since the epoch, and how many pages. */
export async function addVisits(
  sql: Sql,
  visits: readonly { subject: string; second: number; count: number }[],
): Promise<void> {
  const seen = sql`
    select subject, sum(count) as count, to_timestamp(min(second)) as first, to_timestamp(max(second)) as last
    from unnest(${visits.map(({ subject }) => subject)}::text[], ${visits.map(({ second }) => second)}::bigint[],
      ${visits.map(({ count }) => count)}::bigint[]) as v (subject, second, count) group by subject`
  await sql`
    update viewers v set visits = v.visits + seen.count,
      first_opened_at = coalesce(v.first_opened_at, greatest(seen.first, v.created_at)),
      last_opened_at = greatest(v.last_opened_at, seen.last, v.created_at)
    from (${seen}) seen where v.id = seen.subject`
  await sql`
    update guest_links l set last_opened_at = greatest(l.last_opened_at, seen.last, l.created_at)
    from (${seen}) seen where l.id = seen.subject`
}

/** False when the batch was added before. */
export async function insertVisitBatch(sql: Sql, id: string): Promise<boolean> {
  return (await sql`insert into visit_batches (id) values (${id}) on conflict do nothing returning id`).length === 1
}

export async function deleteVisitBatches(sql: Sql, foldedBefore: Date): Promise<void> {
  await sql`delete from visit_batches where folded_at < ${foldedBefore}`
}
