import type { PlanName } from '../../ground/terms/plans.ts'
import type { Sql } from '../../ground/database/sql.ts'
import { LIVE_STATUSES } from './rules.ts'

export interface BilledOrganisation {
  readonly id: string
  readonly name: string
  readonly plan: PlanName
  readonly currency: string
  readonly email: string
  readonly is_deleted: boolean
}

/** One piece of billing work per organisation, whichever control does it. Publishing does not wait for it. */
export async function lockBilling(sql: Sql, orgId: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`billing:${orgId}`}, 0))`
}

export async function findOrganisation(sql: Sql, orgId: string): Promise<BilledOrganisation | undefined> {
  const [row] = await sql<BilledOrganisation[]>`
    select o.id, o.name, o.plan, o.currency, u.email, o.deleted_at is not null as is_deleted
    from organisations o join users u on u.id = o.owner_id where o.id = ${orgId}`
  return row
}

export async function customerOf(sql: Sql, orgId: string): Promise<string | undefined> {
  const [row] = await sql<{ customer_id: string }[]>`select customer_id from billing_customers where org_id = ${orgId}`
  return row?.customer_id
}

/** Whose news they are: the customer's or, where that one was replaced since, the subscription's organisation. */
export async function organisationConcerned(
  sql: Sql,
  { customerId, subscriptionId }: { customerId: string | undefined; subscriptionId: string },
): Promise<string | undefined> {
  const [row] = await sql<{ org_id: string }[]>`
    select org_id, 1 as rank from billing_customers where customer_id = ${customerId ?? null}
    union all select org_id, 2 from subscriptions where id = ${subscriptionId} order by rank limit 1`
  return row?.org_id
}

/** The organisation's customer from now on. */
export async function saveCustomer(sql: Sql, orgId: string, customerId: string): Promise<void> {
  await sql`
    insert into billing_customers (org_id, customer_id) values (${orgId}, ${customerId})
    on conflict (org_id) do update set customer_id = excluded.customer_id`
}

export async function checkoutsStarted(sql: Sql, orgId: string): Promise<number> {
  const [row] = await sql<
    { checkouts_started: number }[]
  >`select checkouts_started from billing_customers where org_id = ${orgId}`
  return row?.checkouts_started ?? 0
}

export interface CheckoutRow {
  readonly org_id: string
  readonly session_id: string
  readonly url: string
  readonly plan: string
  readonly billing_interval: string
  readonly check_at: Date
}

export async function openCheckout(sql: Sql, orgId: string): Promise<CheckoutRow | undefined> {
  const [row] = await sql<CheckoutRow[]>`select * from billing_checkouts where org_id = ${orgId}`
  return row
}

export async function saveCheckout(sql: Sql, checkout: CheckoutRow): Promise<void> {
  await sql`insert into billing_checkouts ${sql({ ...checkout })}`
  await sql`update billing_customers set checkouts_started = checkouts_started + 1 where org_id = ${checkout.org_id}`
}

/** By its own name: a newer checkout of the organisation stays. */
export async function deleteCheckout(sql: Sql, sessionId: string): Promise<void> {
  await sql`delete from billing_checkouts where session_id = ${sessionId}`
}

export interface SubscriptionRow {
  readonly id: string
  readonly org_id: string
  readonly plan: PlanName
  readonly billing_interval: string
  readonly status: string
  readonly current_period_end: Date | null
  readonly ends_at: Date | null
  readonly past_due_since: Date | null
  readonly check_at: Date | null
}

export async function subscriptionsOf(sql: Sql, orgId: string): Promise<SubscriptionRow[]> {
  return sql<SubscriptionRow[]>`
    select * from subscriptions where org_id = ${orgId} order by current_period_end nulls first, id`
}

export async function saveSubscription(sql: Sql, subscription: SubscriptionRow): Promise<void> {
  await sql`insert into subscriptions ${sql({ ...subscription })} on conflict (id) do update
    set plan = excluded.plan, billing_interval = excluded.billing_interval, status = excluded.status,
        current_period_end = excluded.current_period_end, ends_at = excluded.ends_at,
        past_due_since = excluded.past_due_since, check_at = excluded.check_at`
}

interface Due {
  readonly org_id: string
  readonly id: string
}

/**
 * Takes what is to be asked about now, and at once what belongs to a deleted organisation.
 * Others find it again only if nothing comes of it until `again`.
 */
export async function takeDueSubscriptions(sql: Sql, now: Date, again: Date, limit: number): Promise<Due[]> {
  return sql<Due[]>`
    update subscriptions set check_at = ${again} where id in (
      select s.id from subscriptions s join organisations o on o.id = s.org_id
      where s.check_at <= ${now} or (o.deleted_at is not null and s.check_at > ${again})
      order by s.check_at limit ${limit} for update of s skip locked)
    returning id, org_id`
}

/** As above: what a deleted organisation has open is due at once, before it is paid for in vain. */
export async function takeDueCheckouts(sql: Sql, now: Date, again: Date, limit: number): Promise<Due[]> {
  return sql<Due[]>`
    update billing_checkouts set check_at = ${again} where org_id in (
      select c.org_id from billing_checkouts c join organisations o on o.id = c.org_id
      where c.check_at <= ${now} or (o.deleted_at is not null and c.check_at > ${again})
      order by c.check_at limit ${limit} for update of c skip locked)
    returning session_id as id, org_id`
}

export async function noteHandover(sql: Sql, orgId: string, now: Date): Promise<void> {
  await sql`
    insert into billing_handovers (org_id, due_at) values (${orgId}, ${now})
    on conflict (org_id) do update set due_at = excluded.due_at`
}

/** True when there was one. It is back if the transaction fails. */
export async function takeHandover(sql: Sql, orgId: string): Promise<boolean> {
  return (await sql`delete from billing_handovers where org_id = ${orgId} returning org_id`).length === 1
}

export async function takeDueHandovers(sql: Sql, now: Date, again: Date, limit: number): Promise<{ org_id: string }[]> {
  return sql<{ org_id: string }[]>`
    update billing_handovers set due_at = ${again} where org_id in (
      select org_id from billing_handovers where due_at <= ${now} order by due_at limit ${limit} for update skip locked)
    returning org_id`
}

export interface LiveSubscriptionRow {
  readonly org_id: string
  readonly plan: PlanName
  readonly until: Date | null
}

/** What these organisations have subscribed to, the one that lasts longest first. */
export async function liveSubscriptions(sql: Sql, orgIds: readonly string[]): Promise<LiveSubscriptionRow[]> {
  return sql<LiveSubscriptionRow[]>`
    select org_id, plan, coalesce(ends_at, current_period_end) as until from subscriptions
    where org_id = any(${orgIds as string[]}) and status = any(${LIVE_STATUSES as string[]})
    order by until desc nulls last, id`
}

export async function wasActedOn(sql: Sql, eventId: string): Promise<boolean> {
  return (await sql`select 1 from stripe_events where id = ${eventId}`).length === 1
}

/** False when the event was acted on before. */
export async function noteEvent(sql: Sql, eventId: string, now: Date): Promise<boolean> {
  const rows =
    await sql`insert into stripe_events (id, at) values (${eventId}, ${now}) on conflict do nothing returning id`
  return rows.length === 1
}

export async function forgetEvents(sql: Sql, before: Date): Promise<void> {
  await sql`delete from stripe_events where at < ${before}`
}
