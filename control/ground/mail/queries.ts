import { one, type Sql } from '../database/sql.ts'
import type { QueueRow } from '../watching/queue.ts'

/** Every control listens; the first one sends. */
export const MAIL_CHANNEL = 'dropway_mail'

export interface MailRow {
  readonly id: string
  readonly recipient: string
  readonly sealed: string
  readonly attempts: number
  readonly createdAt: Date
}

/** Writes a mail, unless there is one for the same event already. */
export async function insertMail(
  sql: Sql,
  mail: { id: string; eventKey: string; recipient: string; template: string; sealed: string; now: Date },
): Promise<void> {
  await sql`
    insert into mails (id, event_key, recipient, template, sealed, next_attempt_at, created_at)
    values (${mail.id}, ${mail.eventKey}, ${mail.recipient}, ${mail.template}, ${mail.sealed}, ${mail.now}, ${mail.now})
    on conflict (event_key) do nothing`
  // Delivered by Postgres when the transaction commits, never before.
  await sql`select pg_notify(${MAIL_CHANNEL}, '')`
}

/** The next mail that is due and that no other sender holds. The lock lasts as long as the transaction. */
export async function lockDueMail(sql: Sql, now: Date): Promise<MailRow | undefined> {
  const [row] = await sql<MailRow[]>`
    select id, recipient, sealed, attempts, created_at as "createdAt" from mails
    where sent_at is null and failed_at is null and next_attempt_at <= ${now}
    order by next_attempt_at, id limit 1
    for no key update skip locked`
  return row
}

/** The body goes: it held links, and is not needed any more. */
export async function markMailSent(sql: Sql, mailId: string, now: Date): Promise<void> {
  await sql`update mails set sent_at = ${now}, sealed = '', last_error = null where id = ${mailId}`
}

export async function postponeMail(sql: Sql, mailId: string, until: Date, error: string): Promise<void> {
  await sql`update mails set attempts = attempts + 1, next_attempt_at = ${until}, last_error = ${error} where id = ${mailId}`
}

export async function markMailFailed(sql: Sql, mailId: string, now: Date, error: string): Promise<void> {
  await sql`update mails set attempts = attempts + 1, failed_at = ${now}, sealed = '', last_error = ${error} where id = ${mailId}`
}

/** Mails that could be sent now; one that was turned down waits for its next try and is not among them. */
export async function mailQueue(sql: Sql, now: Date): Promise<QueueRow> {
  return one(
    await sql<QueueRow[]>`
      select count(*) as length, min(next_attempt_at) as since from mails
      where sent_at is null and failed_at is null and next_attempt_at <= ${now}`,
  )
}

export async function countLateRecipients(sql: Sql, before: Date): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(distinct recipient)::int as count from mails
    where sent_at is null and failed_at is null and created_at < ${before}`
  return row?.count ?? 0
}

export async function deleteSettledMails(sql: Sql, before: Date): Promise<void> {
  await sql`delete from mails where coalesce(sent_at, failed_at) < ${before}`
}

/** Deletes every mail to these addresses, sent, failed or waiting: their reader is gone. */
export async function deleteMailsTo(sql: Sql, recipients: readonly string[]): Promise<void> {
  await sql`delete from mails where lower(recipient) = any(${recipients as string[]})`
}

/** Mails about one thing have keys that begin with its name. */
export async function deleteMailsAbout(sql: Sql, keyPrefix: string): Promise<void> {
  await sql`delete from mails where starts_with(event_key, ${keyPrefix})`
}
