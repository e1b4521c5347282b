/** SQL of people whom a sign-in provider vouches for, and of the sessions that it has opened. */
import type { Sql } from '../../ground/database/sql.ts'

export interface IdentityRow {
  readonly id: string
  readonly subject: string
  readonly userId: string
  readonly sealedGrant: string | null
}

const identityColumns = (sql: Sql) => sql`p.id, p.subject, p.user_id as "userId", p.sealed_grant as "sealedGrant"`

export async function findIdentity(sql: Sql, issuer: string, subject: string): Promise<IdentityRow | undefined> {
  const [row] = await sql<IdentityRow[]>`
    select ${identityColumns(sql)} from provider_identities p where issuer = ${issuer} and subject = ${subject}`
  return row
}

/**
 * The person in the column `user` was removed: a provider said no to someone that they were there (`lapsed_at`), and has
 * vouched for no one else that they are there since. Until they come by a provider again, nothing of theirs opens anything.
 */
export const isRemovedOf = (sql: Sql, user: string) => sql`
  exists (select 1 from provider_identities p where p.user_id = ${sql(user)} and p.lapsed_at is not null
    and not exists (select 1 from provider_identities q
      where q.user_id = p.user_id and q.issuer = p.issuer and q.lapsed_at is null
        and (q.ran_out_at is null or q.ran_out_at > p.lapsed_at)))`

/**
 * For the person in the column `user` nothing is left to ask a provider with (`ran_out_at`), which says neither yes nor no:
 * tokens and apps rest until they come by a provider again, and their other ways in stay open.
 */
export const hasRunOutOf = (sql: Sql, user: string) => sql`
  exists (select 1 from provider_identities p where p.user_id = ${sql(user)} and p.ran_out_at is not null
    and not exists (select 1 from provider_identities q
      where q.user_id = p.user_id and q.issuer = p.issuer and q.lapsed_at is null and q.ran_out_at is null))`

export async function isRemoved(sql: Sql, userId: string): Promise<boolean> {
  const [row] = await sql<{ removed: boolean }[]>`
    select ${isRemovedOf(sql, 'u.id')} as removed from users u where u.id = ${userId}`
  return row?.removed ?? false
}

/** The provider removed someone of this account whom it knows by another id. */
export async function hasRemovedNamesake(
  sql: Sql,
  { userId, issuer, subject }: Pick<IdentityRow, 'userId' | 'subject'> & { readonly issuer: string },
): Promise<boolean> {
  const rows = await sql`
    select 1 from provider_identities
    where user_id = ${userId} and issuer = ${issuer} and subject <> ${subject} and lapsed_at is not null limit 1`
  return rows.length === 1
}

/** Waits for what is being found out about the person; what is read afterwards holds until the transaction ends. */
export async function lockIdentitiesOf(sql: Sql, userId: string): Promise<void> {
  await sql`select 1 from provider_identities where user_id = ${userId} order by id for no key update`
}

/**
 * The person has signed in: they are vouched for again, with a new grant. Who they were before and are no more, under
 * another id or at another provider, says nothing about them any longer.
 */
export async function putIdentity(
  sql: Sql,
  identity: IdentityRow & { readonly issuer: string; readonly sid: string | undefined; readonly now: Date },
): Promise<void> {
  await sql`
    insert into provider_identities (id, issuer, subject, user_id, sealed_grant, grant_sid, created_at, checked_at)
    values (${identity.id}, ${identity.issuer}, ${identity.subject}, ${identity.userId}, ${identity.sealedGrant},
      ${identity.sid ?? null}, ${identity.now}, ${identity.now})
    on conflict (issuer, subject) do update
    set sealed_grant = excluded.sealed_grant, grant_sid = excluded.grant_sid, checked_at = excluded.checked_at,
      lapsed_at = null, ran_out_at = null`
  await sql`
    delete from provider_identities where user_id = ${identity.userId}
      and (lapsed_at is not null or (ran_out_at is not null and issuer <> ${identity.issuer}))`
}

export interface DueIdentity extends IdentityRow {
  readonly email: string
}

/** One who is due and can still do something here; other controls take others. */
export async function lockDueIdentity(sql: Sql, issuer: string, before: Date): Promise<DueIdentity | undefined> {
  const [row] = await sql<DueIdentity[]>`
    select ${identityColumns(sql)}, u.email from provider_identities p join users u on u.id = p.user_id
    where issuer = ${issuer} and checked_at <= ${before} and lapsed_at is null and sealed_grant is not null
      and (exists (select 1 from sessions s where s.user_id = p.user_id)
        or exists (select 1 from api_tokens t where t.user_id = p.user_id and t.revoked_at is null)
        or exists (select 1 from oauth_grants g where g.user_id = p.user_id and g.revoked_at is null))
    order by checked_at limit 1 for no key update of p skip locked`
  return row
}

export async function markChecked(
  sql: Sql,
  identityId: string,
  checked: { readonly sealedGrant: string; readonly now: Date },
): Promise<void> {
  await sql`
    update provider_identities set checked_at = ${checked.now}, sealed_grant = ${checked.sealedGrant}, ran_out_at = null
    where id = ${identityId}`
}

/** False when the grant is another by now, or gone: the person has signed in again, or the provider has logged them out. */
export async function lockUnchanged(sql: Sql, identityId: string, sealedGrant: string | null): Promise<boolean> {
  const rows = await sql`
    select 1 from provider_identities where id = ${identityId} and sealed_grant = ${sealedGrant} for no key update`
  return rows.length === 1
}

/** The others are asked about before this one is again. */
export async function postpone(sql: Sql, identityId: string, now: Date): Promise<void> {
  await sql`update provider_identities set checked_at = ${now} where id = ${identityId}`
}

/** The provider said no. */
export async function markRemoved(sql: Sql, identityId: string, now: Date): Promise<void> {
  await sql`
    update provider_identities set lapsed_at = ${now}, ran_out_at = null, sealed_grant = null where id = ${identityId}`
}

/** Nothing is left to ask with. */
export async function markRunOut(sql: Sql, identityId: string, now: Date): Promise<void> {
  await sql`update provider_identities set ran_out_at = ${now}, sealed_grant = null where id = ${identityId}`
}

/** Takes back what the provider said no to, and that nothing was left to ask with. False when neither was so. */
export async function clearRemovals(sql: Sql, userId: string): Promise<boolean> {
  const { count } = await sql`
    update provider_identities set lapsed_at = null, ran_out_at = null
    where user_id = ${userId} and (lapsed_at is not null or ran_out_at is not null)`
  return count > 0
}

/** What a provider says is over: everything of a person, one session of its own, or that session of that person. */
interface Ended {
  readonly issuer: string
  readonly subject?: string | undefined
  readonly sid?: string | undefined
}

/**
 * Whose grant was given in a session that has ended, locked. Where it is not known in which session it was given, it is
 * one of the person whom the provider names, or of whom we have that session.
 */
export async function lockLoggedOut(sql: Sql, { issuer, subject, sid }: Ended): Promise<IdentityRow[]> {
  if (subject === undefined && sid === undefined) return []
  return sql<IdentityRow[]>`
    select ${identityColumns(sql)} from provider_identities p
    where p.issuer = ${issuer} and p.sealed_grant is not null
      and (${subject ?? null}::text is null or p.subject = ${subject ?? null})
      and (${sid ?? null}::text is null or p.grant_sid = ${sid ?? null} or (p.grant_sid is null
        and (${subject ?? null}::text is not null or exists (
          select 1 from sessions s where s.provider_identity_id = p.id and s.provider_sid = ${sid ?? null}))))
    order by p.id for no key update of p`
}

/** The grant is over, which says nothing about the person: no one is asked with it again. */
export async function forgetGrant(sql: Sql, identityId: string): Promise<void> {
  await sql`update provider_identities set sealed_grant = null, grant_sid = null where id = ${identityId}`
}

/** All that the provider has opened, or those of one session of its own. Resolves how many there were. */
export async function deleteProviderSessions(sql: Sql, { issuer, subject, sid }: Ended): Promise<number> {
  if (subject === undefined && sid === undefined) return 0
  const rows = await sql`
    delete from sessions s using provider_identities p
    where s.provider_identity_id = p.id and p.issuer = ${issuer}
      and (${subject ?? null}::text is null or p.subject = ${subject ?? null})
      and (${sid ?? null}::text is null or s.provider_sid = ${sid ?? null})`
  return rows.count
}

export async function hasIdentity(sql: Sql, userId: string): Promise<boolean> {
  return (await sql`select 1 from provider_identities where user_id = ${userId} limit 1`).length === 1
}

/** With the account goes what names the person elsewhere. */
export async function deleteIdentitiesOf(sql: Sql, userId: string): Promise<void> {
  await sql`delete from provider_identities where user_id = ${userId}`
}
