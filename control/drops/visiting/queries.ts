/** SQL of visitors who are not in yet: codes, links in mails, and requests to be let in. */
import { one, type Sql } from '../../ground/database/sql.ts'
import { routeOfHost } from '../../ground/routing/outbox.ts'

/** A drop as the desk sees it. */
export interface VisitedSite {
  readonly id: string
  readonly slug: string
  readonly name: string
  readonly org_id: string | null
  readonly password_hash: string | null
  readonly password_generation: number
  readonly admission_ms: number | null
  readonly access_requests: boolean
  readonly owner_email: string | null
  readonly owner_id: string | null
  /** The ordinal of the history that admissions are given in. */
  readonly history: number
}

/** Locked where an admission is given: a change of who may come in waits, or is seen. */
export async function findVisited(
  sql: Sql,
  siteId: string,
  lock: 'locked' | 'unlocked' = 'unlocked',
): Promise<VisitedSite | undefined> {
  const [row] = await sql<VisitedSite[]>`
    select s.id, s.slug, s.name, s.org_id, s.password_hash, s.password_generation, s.admission_ms, s.access_requests,
      u.email as owner_email, u.id as owner_id, (select ordinal from history) as history
    from sites s
      left join organisations o on o.id = s.org_id left join users u on u.id = o.owner_id
    where s.id = ${siteId} and s.deleted_at is null ${lock === 'locked' ? sql`for share of s` : sql``}`
  return row
}

/** Whether a host shows this drop: by its own record or that of its wildcard, or as an alias of one that does. */
export async function leadsTo(sql: Sql, host: string, siteId: string): Promise<boolean> {
  const rows = await sql`
    select from (${routeOfHost(sql, host)}) r
      left join routes target on r.record ->> 'kind' = 'alias' and target.host = r.record ->> 'to'
    where coalesce(target.record ->> 'site_id', r.record ->> 'site_id') = ${siteId}`
  return rows.length > 0
}

export interface ViewerCodeRow {
  readonly code_hash: string
  readonly subject: string | null
  readonly tries: number
}

/** One mail to a mail box is decided about at a time. */
export async function lockMailBox(sql: Sql, email: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`viewer ${email}`}, 0))`
}

/** Codes that were mailed to an address since then, for whatever drop. */
export async function countCodeMails(sql: Sql, email: string, since: Date): Promise<number> {
  return one(
    await sql<{ count: number }[]>`
      select count(*)::int as count from mails
      where lower(recipient) = ${email} and template = 'viewer_code' and created_at > ${since}`,
  ).count
}

/** The newest code of an address counts, and only that. */
export async function replaceCode(
  sql: Sql,
  code: {
    site_id: string
    email_hash: string
    code_hash: string
    link_hash: string
    subject: string | null
    expires_at: Date
  },
): Promise<void> {
  await sql`
    insert into viewer_codes ${sql({ ...code, tries: 0 })}
    on conflict (site_id, email_hash) do update set code_hash = excluded.code_hash, link_hash = excluded.link_hash,
      subject = excluded.subject, tries = 0, expires_at = excluded.expires_at`
}

/** Counts a try before the code is looked at: five that come at once are five. Undefined when no try is left. */
export async function takeTry(
  sql: Sql,
  { siteId, emailHash, now, most }: { siteId: string; emailHash: string; now: Date; most: number },
): Promise<ViewerCodeRow | undefined> {
  const [row] = await sql<ViewerCodeRow[]>`
    update viewer_codes set tries = tries + 1
    where site_id = ${siteId} and email_hash = ${emailHash} and expires_at > ${now} and tries < ${most}
    returning code_hash, subject, tries`
  return row
}

export async function deleteCode(sql: Sql, siteId: string, emailHash: string): Promise<boolean> {
  const { count } = await sql`delete from viewer_codes where site_id = ${siteId} and email_hash = ${emailHash}`
  return count === 1
}

/** Uses a link from a mail up: that of a code, or of an invitation. */
export async function takeLink(sql: Sql, siteId: string, linkHash: string, now: Date): Promise<string | undefined> {
  const [code] = await sql<{ subject: string | null }[]>`
    delete from viewer_codes where site_id = ${siteId} and link_hash = ${linkHash} and expires_at > ${now}
    returning subject`
  if (code) return code.subject ?? undefined
  const [invitation] = await sql<{ subject: string }[]>`
    delete from viewer_invitations where site_id = ${siteId} and token_hash = ${linkHash} and expires_at > ${now}
    returning subject`
  return invitation?.subject
}

export async function insertEntryLink(
  sql: Sql,
  link: { token_hash: string; site_id: string; subject: string; expires_at: Date },
): Promise<void> {
  await sql`insert into viewer_invitations ${sql(link)}`
}

/** False when this address has asked before. */
export async function insertRequest(
  sql: Sql,
  request: { token_hash: string; site_id: string; email: string; created_at: Date },
): Promise<boolean> {
  const rows = await sql`
    insert into access_requests ${sql(request)} on conflict (site_id, email) do update
      set token_hash = excluded.token_hash, created_at = excluded.created_at
      where access_requests.created_at < excluded.created_at - interval '1 day' returning email`
  return rows.length === 1
}

export interface RequestRow {
  readonly site_id: string
  readonly email: string
  readonly slug: string
  readonly name: string
  readonly org_id: string
}

export async function findRequest(sql: Sql, tokenHash: string): Promise<RequestRow | undefined> {
  const [row] = await sql<RequestRow[]>`
    select r.site_id, r.email, s.slug, s.name, s.org_id from access_requests r join sites s on s.id = r.site_id
    where r.token_hash = ${tokenHash} and s.deleted_at is null and s.org_id is not null`
  return row
}

export async function deleteRequest(sql: Sql, tokenHash: string): Promise<boolean> {
  return (await sql`delete from access_requests where token_hash = ${tokenHash}`).count === 1
}

export interface SharedRow {
  readonly id: string
  readonly slug: string
  readonly name: string
  readonly title: string
  readonly owner: string
  readonly role: string
  readonly shared_at: Date
  readonly last_opened_at: Date | null
}

/** Drops of others that an address may see, by itself or by its domain. */
export async function listSharedWith(sql: Sql, email: string, userId: string, now: Date): Promise<SharedRow[]> {
  const domain = email.slice(email.lastIndexOf('@') + 1)
  return sql<SharedRow[]>`
    select distinct on (s.id) s.id, s.slug, s.name, s.title, o.name as owner, v.role, v.created_at as shared_at,
      case when v.kind = 'email' then v.last_opened_at end as last_opened_at
    from viewers v join sites s on s.id = v.site_id join organisations o on o.id = s.org_id
    where ((v.kind = 'email' and v.value = ${email}) or (v.kind = 'domain' and v.value = ${domain}))
      and s.password_hash = 'viewers' and s.deleted_at is null and s.taken_down_at is null and s.paused_at is null
      and s.expired_at is null and (s.expires_at is null or s.expires_at > ${now})
      and (s.access_until is null or s.access_until > ${now}) and s.live_version_id is not null
      and not exists (select from memberships m where m.org_id = s.org_id and m.user_id = ${userId})
    order by s.id, v.kind desc`
}

export async function deleteEndedVisits(sql: Sql, now: Date, requestedBefore: Date): Promise<void> {
  await sql`delete from viewer_codes where expires_at <= ${now}`
  await sql`delete from viewer_invitations where expires_at <= ${now}`
  await sql`delete from access_requests where created_at < ${requestedBefore}`
}
