/**
 * Sends what lies in the outbox, each mail at least once, with any number of controls.
 *
 * 1. A sender locks the mail's row (FOR NO KEY UPDATE SKIP LOCKED) for as long as it sends, so that no other sender
 *    takes the same mail.
 * 2. After the server's 250 it marks the mail sent and commits.
 *
 * Killed before the commit, Postgres releases the row and the next sender sends the mail, perhaps for the second time.
 * The second copy has the same bytes and the same Message-ID, by which mail servers and readers know it again: a
 * duplicate is better than a loss.
 */
import { DAY_MS, type Clock } from '../../../shared/running/clock.ts'
import type { Log } from '../../../shared/running/log.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import { createOutboxLoop } from '../database/outbox-loop.ts'
import { transaction, type Pool, type Sql } from '../database/sql.ts'
import { queueState, type QueueState } from '../watching/queue.ts'
import { sealContext } from './mail.ts'
import {
  countLateRecipients,
  deleteSettledMails,
  lockDueMail,
  mailQueue,
  MAIL_CHANNEL,
  markMailFailed,
  markMailSent,
  postponeMail,
  type MailRow,
} from './queries.ts'
import { verdictOn } from './rules.ts'
import type { MailSink } from './sinks.ts'
import type { RenderedMail } from './letters/templates.ts'

/** Each sender holds a database connection, and the mail's row with it, while it sends. */
const DEFAULT_SENDERS = 2
/** Settled mails are kept this long, because their event keys keep a second mail for the same event away. */
const KEEP_SETTLED_MS = 400 * DAY_MS
/** For retries, and for news lost while the connection to Postgres was down. */
const POLL_INTERVAL_MS = 5000

export interface Mailer {
  start(): void
  /** Waits for mails that are being sent. */
  stop(): Promise<void>
  /** Forgets mails that were settled long ago. A job. */
  sweep(): Promise<void>
  /** Sends everything that is due; resolves how many were settled. */
  deliverDue(): Promise<number>
  /** How many people wait for a mail that was written before then. */
  lateRecipients(before: Date): Promise<number>
  /** Mails that could be sent now. */
  queue(): Promise<QueueState>
}

interface MailerDependencies {
  readonly sql: Pool
  readonly sink: MailSink
  readonly secrets: Pick<Secrets, 'open'>
  readonly clock: Clock
  readonly log: Log
  readonly mailFrom: string
  readonly mailReplyTo?: string | undefined
  /** Mails sent at the same time. */
  readonly senders?: number
}

export function createMailer({
  sql,
  sink,
  secrets,
  clock,
  log,
  mailFrom,
  mailReplyTo,
  senders = DEFAULT_SENDERS,
}: MailerDependencies): Mailer {
  const now = (): Date => new Date(clock.now())
  const { start, stop, isStopping } = createOutboxLoop({
    sql,
    log,
    channel: MAIL_CHANNEL,
    pollMs: POLL_INTERVAL_MS,
    name: 'mail',
    sendOut: deliverDue,
  })

  async function settleNext(): Promise<boolean> {
    return transaction(sql, async (tx) => {
      const mail = await lockDueMail(tx, now())
      if (!mail) return false
      await send(tx, mail)
      return true
    })
  }

  async function send(tx: Sql, mail: MailRow): Promise<void> {
    try {
      const content = JSON.parse(secrets.open(mail.sealed, sealContext(mail.id)).toString('utf8')) as RenderedMail
      const { id, recipient: to, createdAt } = mail
      await sink.deliver({ id, from: mailFrom, replyTo: mailReplyTo, to, createdAt, content })
    } catch (error) {
      return noteFailure(tx, mail, error)
    }
    await markMailSent(tx, mail.id, now())
  }

  async function noteFailure(tx: Sql, mail: MailRow, error: unknown): Promise<void> {
    const verdict = verdictOn(error, mail.attempts)
    const message = error instanceof Error ? error.message.slice(0, 500) : 'unknown'
    if (verdict.kind === 'give_up') {
      log.error({ mail: mail.id, err: error }, 'a mail could not be sent')
      await markMailFailed(tx, mail.id, now(), message)
    } else {
      log.warn({ mail: mail.id, err: error, retryInMs: verdict.delayMs }, 'a mail could not be sent yet')
      await postponeMail(tx, mail.id, new Date(clock.now() + verdict.delayMs), message)
    }
  }

  async function deliverDue(): Promise<number> {
    const counts = await Promise.all(Array.from({ length: senders }, drain))
    return counts.reduce((sum, count) => sum + count, 0)
  }

  async function drain(): Promise<number> {
    let count = 0
    while (!isStopping() && (await settleNext())) count++
    return count
  }

  return {
    start,
    deliverDue,
    lateRecipients: (before) => countLateRecipients(sql, before),
    queue: async () => queueState(await mailQueue(sql, now()), now()),
    sweep: () => deleteSettledMails(sql, new Date(clock.now() - KEEP_SETTLED_MS)),
    async stop() {
      await stop()
      sink.close()
    },
  }
}
