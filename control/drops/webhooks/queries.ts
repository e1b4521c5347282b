import { one, type Sql } from '../../ground/database/sql.ts'
import type { QueueRow } from '../../ground/watching/queue.ts'

export interface WebhookRow {
  id: string
  org_id: string
  url: string
  events: string[]
  description: string
  sealed_secret: string
  sealed_former: string | null
  former_until: Date | null
  created_at: Date
  failing_since: Date | null
  disabled_at: Date | null
}

export interface DeliveryRow {
  id: string
  webhook_id: string
  site_id: string | null
  type: string
  body: string
  created_at: Date
  attempts: number
  next_attempt_at: Date
  last_attempt_at: Date | null
  last_status: number | null
  last_answer: string | null
  last_error: string | null
  delivered_at: Date | null
  failed_at: Date | null
}

const webhookColumns = (sql: Sql) => sql`
  id, org_id, url, events, description, sealed_secret, sealed_former, former_until, created_at, failing_since, disabled_at`

const deliveryColumns = (sql: Sql) => sql`
  d.id, d.webhook_id, d.site_id, d.type, d.body, d.created_at, d.attempts, d.next_attempt_at, d.last_attempt_at,
  d.last_status, d.last_answer, d.last_error, d.delivered_at, d.failed_at`

export async function listWebhooks(sql: Sql, orgId: string): Promise<WebhookRow[]> {
  return sql<WebhookRow[]>`select ${webhookColumns(sql)} from webhooks where org_id = ${orgId} order by created_at, id`
}

export async function findWebhook(sql: Sql, id: string): Promise<WebhookRow | undefined> {
  const [row] = await sql<WebhookRow[]>`select ${webhookColumns(sql)} from webhooks where id = ${id}`
  return row
}

/** Two callers who add the last one at once wait here: the second one counts what the first one added. */
export async function lockOrganisationOfHooks(sql: Sql, orgId: string): Promise<void> {
  await sql`select id from organisations where id = ${orgId} for no key update`
}

export async function insertWebhook(
  sql: Sql,
  webhook: Pick<WebhookRow, 'id' | 'org_id' | 'url' | 'events' | 'description' | 'sealed_secret' | 'created_at'>,
): Promise<void> {
  const { events, ...columns } = webhook
  await sql`
    insert into webhooks (id, org_id, url, events, description, sealed_secret, created_at)
    values (${columns.id}, ${columns.org_id}, ${columns.url}, ${events}::text[], ${columns.description},
      ${columns.sealed_secret}, ${columns.created_at})`
}

export async function deleteWebhook(sql: Sql, id: string): Promise<void> {
  await sql`delete from webhooks where id = ${id}`
}

/** The secret before stays in force until then. */
export async function replaceSecret(sql: Sql, id: string, sealed: string, formerUntil: Date): Promise<void> {
  await sql`
    update webhooks set sealed_former = sealed_secret, former_until = ${formerUntil}, sealed_secret = ${sealed},
      disabled_at = null, failing_since = null where id = ${id}`
}

export async function insertTest(
  sql: Sql,
  test: { id: string; webhook_id: string; type: string; body: string; at: Date },
): Promise<void> {
  await sql`
    insert into webhook_deliveries (id, webhook_id, type, body, created_at, next_attempt_at)
    values (${test.id}, ${test.webhook_id}, ${test.type}, ${test.body}, ${test.at}, ${test.at})`
}

export async function listDeliveries(sql: Sql, webhookId: string, limit: number): Promise<DeliveryRow[]> {
  return sql<DeliveryRow[]>`
    select ${deliveryColumns(sql)} from webhook_deliveries d where d.webhook_id = ${webhookId} order by d.seq desc limit ${limit}`
}

export async function findDelivery(sql: Sql, webhookId: string, id: string): Promise<DeliveryRow | undefined> {
  const [row] = await sql<DeliveryRow[]>`
    select ${deliveryColumns(sql)} from webhook_deliveries d where d.webhook_id = ${webhookId} and d.id = ${id}`
  return row
}

/** It is due at once, under the same id. */
export async function sendAgain(sql: Sql, id: string, now: Date): Promise<void> {
  await sql`
    update webhook_deliveries set attempts = 0, next_attempt_at = ${now}, claimed_until = null, delivered_at = null, failed_at = null
    where id = ${id}`
}

/**
 * The next message that is due, for this sender alone until `until`. Of one drop and webhook the first that waits is
 * taken, so that messages arrive in their order; `busy`: webhooks that have enough under way.
 */
export async function claimDelivery(
  sql: Sql,
  now: Date,
  until: Date,
  busy: readonly string[],
): Promise<DeliveryRow | undefined> {
  const [row] = await sql<DeliveryRow[]>`
    update webhook_deliveries d set claimed_until = ${until}, attempts = d.attempts + 1, last_attempt_at = ${now}
    where d.id = (
      select c.id from webhook_deliveries c join webhooks w on w.id = c.webhook_id
      where c.delivered_at is null and c.failed_at is null and c.next_attempt_at <= ${now}
        and (c.claimed_until is null or c.claimed_until <= ${now})
        and w.disabled_at is null and c.webhook_id <> all(${busy as string[]})
        and not exists (
          select from webhook_deliveries e
          where e.webhook_id = c.webhook_id and e.site_id is not distinct from c.site_id
            and e.delivered_at is null and e.failed_at is null and e.seq < c.seq)
      order by c.next_attempt_at, c.seq limit 1 for update of c skip locked)
    returning ${deliveryColumns(sql)}`
  return row
}

/** Messages that a courier could carry now: the first of each drop and webhook, where no failure has to be waited out. */
export async function deliveryQueue(sql: Sql, now: Date): Promise<QueueRow> {
  return one(
    await sql<QueueRow[]>`
      select count(*) as length, min(c.next_attempt_at) as since
      from webhook_deliveries c join webhooks w on w.id = c.webhook_id
      where c.delivered_at is null and c.failed_at is null and c.next_attempt_at <= ${now}
        and (c.claimed_until is null or c.claimed_until <= ${now}) and w.disabled_at is null
        and not exists (
          select from webhook_deliveries e
          where e.webhook_id = c.webhook_id and e.site_id is not distinct from c.site_id
            and e.delivered_at is null and e.failed_at is null and e.seq < c.seq)`,
  )
}

export async function markDelivered(
  sql: Sql,
  id: string,
  answer: { status: number; answer: string },
  now: Date,
): Promise<void> {
  await sql`
    update webhook_deliveries set delivered_at = ${now}, claimed_until = null, last_status = ${answer.status},
      last_answer = ${answer.answer}, last_error = null where id = ${id}`
}

/** `nextAttemptAt`: null when it was the last one. */
export async function markUndelivered(
  sql: Sql,
  id: string,
  failure: { status: number | null; answer: string | null; error: string },
  nextAttemptAt: Date | null,
  now: Date,
): Promise<void> {
  await sql`
    update webhook_deliveries set claimed_until = null, last_status = ${failure.status}, last_answer = ${failure.answer},
      last_error = ${failure.error}, next_attempt_at = coalesce(${nextAttemptAt}, next_attempt_at),
      failed_at = ${nextAttemptAt === null ? now : null}
    where id = ${id}`
}

export async function noteSuccess(sql: Sql, webhookId: string): Promise<void> {
  await sql`update webhooks set failing_since = null where id = ${webhookId} and failing_since is not null`
}

/** Resolves to the moment since which nothing has arrived; undefined once it is switched off. */
export async function noteFailure(sql: Sql, webhookId: string, now: Date): Promise<Date | undefined> {
  const [row] = await sql<{ failing_since: Date }[]>`
    update webhooks set failing_since = coalesce(failing_since, ${now})
    where id = ${webhookId} and disabled_at is null returning failing_since`
  return row?.failing_since
}

/** False when another control has switched it off. */
export async function switchOff(sql: Sql, webhookId: string, now: Date): Promise<boolean> {
  return (
    (await sql`update webhooks set disabled_at = ${now} where id = ${webhookId} and disabled_at is null`).count === 1
  )
}

export async function findHookOwner(sql: Sql, orgId: string): Promise<string | undefined> {
  const [row] = await sql<{ email: string }[]>`
    select u.email from organisations o join users u on u.id = o.owner_id where o.id = ${orgId}`
  return row?.email
}

export async function deleteSettledDeliveries(sql: Sql, before: Date): Promise<void> {
  await sql`delete from webhook_deliveries where coalesce(delivered_at, failed_at) < ${before}`
}
