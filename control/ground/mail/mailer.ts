/**
 * Sends what lies in the outbox, each mail once, with any number of controls.
 *
 * 1. A sender locks the mail's row (FOR NO KEY UPDATE SKIP LOCKED) for as long as it sends.
 * 2. Before SMTP's final dot it notes the hand-over in a transaction of its own. The note's primary key admits one
 *    sender, even if a lost connection to Postgres has let a second one at the row. The note is committed in the tick
 *    in which the dot is written, not before: there is no wait between the two.
 * 3. After the server's 250 it marks the mail sent, drops the note and commits.
 *
 * Killed before the dot, the mail has not left and Postgres rolls the note back: the next sender sends it. Killed after
 * the dot, it is on its way (the kernel delivers what was written, the dot and the commit): the next sender finds the
 * note and marks the mail sent. An error that is seen after the dot (the server refused, the connection broke) removes
 * the note and tries again: a duplicate with the same Message-ID is better than a loss, and that is also what a kill
 * between the two writes of one tick, or Postgres and the sender dying at once, may cost.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ListenMeta } from 'postgres'
import { DAY_MS, type Clock } from '../../../shared/clock.ts'
import type { Log } from '../../../shared/log.ts'
import type { Secrets } from '../../../shared/secrets.ts'
import { isBehindPooler, transaction, type Pool, type Sql } from '../database/sql.ts'
import { createHandoverNote, HandedOverElsewhere } from './handover-note.ts'
import { sealContext } from './mail.ts'
import {
  countLateRecipients,
  deleteSettledMails,
  lockDueMail,
  MAIL_CHANNEL,
  markMailFailed,
  markMailSent,
  postponeMail,
  wasHandedOver,
  type MailRow,
} from './queries.ts'
import { verdictOn } from './rules.ts'
import type { MailSink } from './sinks.ts'
import type { RenderedMail } from './templates.ts'

/** Each holds two database connections while it sends: for the mail's row and for the note. */
const DEFAULT_SENDERS = 2
/** Their event keys keep a second mail away; no event comes back after so long. */
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
  let stopping: AbortController | undefined
  let loop: Promise<void> = Promise.resolve()
  let wake: () => void = () => {}

  async function settleNext(): Promise<boolean> {
    return transaction(sql, async (tx) => {
      const mail = await lockDueMail(tx, now())
      if (!mail) return false
      if (await wasHandedOver(tx, mail.id)) {
        log.info({ mail: mail.id }, 'a sender ended while handing this mail over; it counts as sent')
        await markMailSent(tx, mail.id, now())
      } else {
        await send(tx, mail)
      }
      return true
    })
  }

  async function send(tx: Sql, mail: MailRow): Promise<void> {
    const note = createHandoverNote({ sql, mailId: mail.id, now: now() })
    try {
      const content = JSON.parse(secrets.open(mail.sealed, sealContext(mail.id)).toString('utf8')) as RenderedMail
      const { id, recipient: to, createdAt } = mail
      await sink.deliver({ id, from: mailFrom, replyTo: mailReplyTo, to, createdAt, content }, note)
      await note.settle()
      await markMailSent(tx, mail.id, now())
    } catch (error) {
      await note.settle()
      await noteFailure(tx, mail, error)
    }
  }

  async function noteFailure(tx: Sql, mail: MailRow, error: unknown): Promise<void> {
    // The other sender's note must stay; this transaction changes nothing.
    if (error instanceof HandedOverElsewhere) throw error
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
    while (!stopping?.signal.aborted && (await settleNext())) count++
    return count
  }

  async function run(signal: AbortSignal): Promise<void> {
    const listening = isBehindPooler(sql) ? undefined : listen()
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => (wake = resolve))
      await deliverDue().catch((error: unknown) => log.warn({ err: error }, 'the mail outbox could not be read'))
      const pause = new AbortController()
      await Promise.race([
        woken,
        sleep(POLL_INTERVAL_MS, undefined, { signal: AbortSignal.any([signal, pause.signal]) }).catch(() => {}),
      ])
      pause.abort()
    }
    await (await listening)?.unlisten().catch(() => {})
  }

  /** Mail that was written is sent at once, not at the next poll. */
  function listen(): Promise<ListenMeta | undefined> {
    return sql
      .listen(MAIL_CHANNEL, () => wake())
      .catch((error: unknown) => {
        log.warn({ err: error }, 'mail is polled: Postgres does not tell about it')
        return undefined
      })
  }

  return {
    deliverDue,
    lateRecipients: (before) => countLateRecipients(sql, before),
    sweep: () => deleteSettledMails(sql, new Date(clock.now() - KEEP_SETTLED_MS)),
    start() {
      if (stopping && !stopping.signal.aborted) return
      stopping = new AbortController()
      loop = run(stopping.signal)
    },
    async stop() {
      stopping?.abort()
      wake()
      await loop
      sink.close()
    },
  }
}
