import type { PlanName } from '../../shared/plans.ts'
import type { Sql } from '../database/sql.ts'

export interface OrganisationRow {
  id: string
  name: string
  plan: PlanName
  currency: string
  country: string
  email: string
  owner_id: string
}

export async function lockOrganisation(sql: Sql, orgId: string): Promise<OrganisationRow | undefined> {
  const [row] = await sql<OrganisationRow[]>`
    select o.id, o.name, o.plan, o.currency, o.country, u.email, o.owner_id from organisations o join users u on u.id = o.owner_id
    where o.id = ${orgId} and o.deleted_at is null for update of o`
  return row
}

export async function customerOf(sql: Sql, orgId: string): Promise<string | undefined> {
  const [row] = await sql<{ customer_id: string }[]>`select customer_id from billing_customers where org_id = ${orgId}`
  return row?.customer_id
}

export async function organisationOfCustomer(sql: Sql, customerId: string): Promise<string | undefined> {
  const [row] = await sql<{ org_id: string }[]>`select org_id from billing_customers where customer_id = ${customerId}`
  return row?.org_id
}

export async function insertCustomer(sql: Sql, orgId: string, customerId: string): Promise<void> {
  await sql`insert into billing_customers (org_id, customer_id) values (${orgId}, ${customerId}) on conflict (org_id) do nothing`
}

export interface CheckoutRow {
  org_id: string
  session_id: string
  url: string
  plan: string
  billing_interval: string
  expires_at: Date
}

export async function openCheckout(sql: Sql, orgId: string): Promise<CheckoutRow | undefined> {
  const [row] = await sql<CheckoutRow[]>`select * from billing_checkouts where org_id = ${orgId}`
  return row
}

export async function listCheckouts(sql: Sql): Promise<CheckoutRow[]> {
  return sql<CheckoutRow[]>`select * from billing_checkouts`
}

export async function saveCheckout(sql: Sql, checkout: CheckoutRow): Promise<void> {
  await sql`insert into billing_checkouts ${sql({ ...checkout })} on conflict (org_id) do update
    set session_id = excluded.session_id, url = excluded.url, plan = excluded.plan, billing_interval = excluded.billing_interval, expires_at = excluded.expires_at`
}

export async function deleteCheckout(sql: Sql, orgId: string): Promise<void> {
  await sql`delete from billing_checkouts where org_id = ${orgId}`
}

export interface SubscriptionRow {
  id: string
  org_id: string
  plan: PlanName
  billing_interval: string
  status: string
  current_period_end: Date | null
  cancel_at_period_end: boolean
  past_due_since: Date | null
  checked_at: Date
}

export async function subscriptionsOf(sql: Sql, orgId: string): Promise<SubscriptionRow[]> {
  return sql<SubscriptionRow[]>`select * from subscriptions where org_id = ${orgId} order by id`
}

export async function saveSubscription(sql: Sql, subscription: SubscriptionRow): Promise<void> {
  await sql`insert into subscriptions ${sql({ ...subscription })} on conflict (id) do update
    set plan = excluded.plan, billing_interval = excluded.billing_interval, status = excluded.status, current_period_end = excluded.current_period_end,
        cancel_at_period_end = excluded.cancel_at_period_end, past_due_since = excluded.past_due_since, checked_at = excluded.checked_at`
}

/** Subscriptions that may still change and that nobody has looked at for a while. */
export async function staleSubscriptions(sql: Sql, before: Date): Promise<{ id: string; org_id: string }[]> {
  return sql<{ id: string; org_id: string }[]>`
    select id, org_id from subscriptions where checked_at < ${before} and status not in ('canceled', 'incomplete_expired') order by checked_at limit 200`
}

/** False when the event was acted on before. */
export async function claimEvent(sql: Sql, eventId: string, now: Date): Promise<boolean> {
  const rows =
    await sql`insert into stripe_events (id, at) values (${eventId}, ${now}) on conflict do nothing returning id`
  return rows.length === 1
}
