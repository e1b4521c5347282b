/**
 * Carries messages to webhooks, each at least once and in their order per drop, with any number of controls.
 *
 * 1. A courier claims the first waiting message of a drop and webhook for as long as a request may take.
 * 2. It sends it, and notes what came of it: delivered, or when to try again.
 *
 * Killed in between, the claim runs out and another courier sends the message once more, under the same id. A receiver
 * that fails or is slow holds back its own messages only: each webhook has a few under way at most.
 */
import { DAY_MS, SECOND_MS, type Clock } from '../../../shared/running/clock.ts'
import { patiently } from '../../../shared/settings/patience.ts'
import type { Log } from '../../../shared/running/log.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import { createOutboxLoop } from '../../ground/database/outbox-loop.ts'
import { transaction, type Pool } from '../../ground/database/sql.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import { queueState, type QueueState } from '../../ground/watching/queue.ts'
import { WEBHOOK_CHANNEL } from '../../ground/routing/webhook-outbox.ts'
import * as queries from './queries.ts'
import { verdictOnFailure, isTaken, mustSwitchOff, signaturesOf, userAgentOf } from './rules.ts'
import type { SentAnswer, WebhookSender } from './send.ts'
import { secretContext } from './webhooks.ts'

/** Longer than an attempt takes: two questions to DNS and ten seconds for the answer. */
const CLAIM_MS = patiently(30 * SECOND_MS)
/** Messages under way at one control, and of one webhook there. */
const MAX_UNDER_WAY = 16
const MAX_UNDER_WAY_EACH = 4
/** For retries, claims that ran out, and news lost while the connection to Postgres was down. */
const POLL_INTERVAL_MS = SECOND_MS
/** Settled messages are shown this long. */
const KEEP_SETTLED_MS = 30 * DAY_MS
const MAX_ERROR_CHARS = 500

export interface WebhookCourier {
  start(): void
  /** Waits for messages that are being sent. */
  stop(): Promise<void>
  /** Sends everything that is due; resolves how many attempts were made. */
  deliverDue(): Promise<number>
  /** Forgets messages that were settled long ago. A job. */
  sweep(): Promise<void>
  /** Messages that could be carried now. */
  queue(): Promise<QueueState>
}

interface CourierDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly log: Log
  readonly secrets: Pick<Secrets, 'open'>
  readonly sender: Pick<WebhookSender, 'send'>
  readonly enqueueMail: EnqueueMail
  readonly config: { readonly baseUrl: string; readonly look: { readonly name: string } }
}

export function createWebhookCourier(deps: CourierDependencies): WebhookCourier {
  const { sql, clock, log } = deps
  const underWay = new Map<string, number>()
  const carrying = new Set<Promise<void>>()
  const { start, stop, wake, isStopping } = createOutboxLoop({
    sql,
    log,
    channel: WEBHOOK_CHANNEL,
    pollMs: POLL_INTERVAL_MS,
    name: 'messages to webhooks',
    sendOut,
    underWay: () => Promise.all(carrying),
  })

  function begin(message: queries.DeliveryRow): void {
    underWay.set(message.webhook_id, (underWay.get(message.webhook_id) ?? 0) + 1)
    const carried = carry(deps, message)
      .catch((error: unknown) => log.warn({ err: error }, 'what came of a message to a webhook could not be noted'))
      .finally(() => {
        carrying.delete(carried)
        const left = (underWay.get(message.webhook_id) ?? 1) - 1
        if (left > 0) underWay.set(message.webhook_id, left)
        else underWay.delete(message.webhook_id)
        // The next message of its drop may be due.
        wake()
      })
    carrying.add(carried)
  }

  /** Claims what is due, one after the other, and waits for none of it: a slow receiver holds nobody else up. */
  async function sendOut(): Promise<number> {
    for (let count = 0; ; count++) {
      if (isStopping() || carrying.size >= MAX_UNDER_WAY) return count
      const busy = [...underWay].filter(([, each]) => each >= MAX_UNDER_WAY_EACH).map(([id]) => id)
      const now = clock.now()
      const message = await queries.claimDelivery(sql, new Date(now), new Date(now + CLAIM_MS), busy)
      if (!message) return count
      begin(message)
    }
  }

  /** What arrives while the next claim is under way makes another message due, which that claim may not have seen. */
  async function deliverDue(): Promise<number> {
    for (let count = 0; ;) {
      const wasCarrying = carrying.size > 0
      const begun = await sendOut()
      count += begun
      if (begun === 0 && !wasCarrying) return count
      if (carrying.size > 0) await Promise.race(carrying)
    }
  }

  return {
    start,
    stop,
    deliverDue,
    async queue() {
      const now = new Date(clock.now())
      return queueState(await queries.deliveryQueue(sql, now), now)
    },
    sweep: () => queries.deleteSettledDeliveries(sql, new Date(clock.now() - KEEP_SETTLED_MS)),
  }
}

/** One attempt, and what follows from it. */
async function carry(deps: CourierDependencies, message: queries.DeliveryRow): Promise<void> {
  const { sql, clock } = deps
  const webhook = await queries.findWebhook(sql, message.webhook_id)
  if (!webhook) return
  const sent = await attempt(deps, webhook, message)
  const now = new Date(clock.now())
  if (!(sent instanceof Error) && isTaken(sent.status)) {
    await queries.markDelivered(sql, message.id, sent, now)
    await queries.noteSuccess(sql, webhook.id)
    return
  }
  const verdict = verdictOnFailure(message.attempts)
  const next = verdict.kind === 'retry' ? new Date(now.getTime() + verdict.delayMs) : null
  await queries.markUndelivered(sql, message.id, failureOf(sent), next, now)
  await noteFailure(deps, webhook, now)
}

async function attempt(
  { clock, secrets, sender, config }: CourierDependencies,
  webhook: queries.WebhookRow,
  { id, body }: queries.DeliveryRow,
): Promise<SentAnswer | Error> {
  try {
    const open = (sealed: string): string => secrets.open(sealed, secretContext(webhook.id)).toString()
    const isFormerValid = webhook.former_until !== null && webhook.former_until.getTime() > clock.now()
    const former = isFormerValid && webhook.sealed_former !== null ? [open(webhook.sealed_former)] : []
    const timestamp = Math.floor(clock.now() / SECOND_MS)
    const headers = {
      'content-type': 'application/json',
      'user-agent': userAgentOf(config.look.name),
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signaturesOf([open(webhook.sealed_secret), ...former], { id, timestamp, body }),
    }
    return await sender.send(webhook.url, headers, body)
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

function failureOf(sent: SentAnswer | Error): { status: number | null; answer: string | null; error: string } {
  if (sent instanceof Error) return { status: null, answer: null, error: sent.message.slice(0, MAX_ERROR_CHARS) }
  const isRedirect = sent.status >= 300 && sent.status < 400
  return {
    ...sent,
    error: isRedirect ? 'it answered with a redirect, which is not followed' : `it answered ${sent.status}`,
  }
}

/** After three days without one success the webhook is switched off, and its owner hears of it. */
async function noteFailure(
  { sql, log, enqueueMail, config }: CourierDependencies,
  webhook: queries.WebhookRow,
  now: Date,
): Promise<void> {
  const since = await queries.noteFailure(sql, webhook.id, now)
  if (since === undefined || !mustSwitchOff(since.getTime(), now.getTime())) return
  await transaction(sql, async (tx) => {
    if (!(await queries.switchOff(tx, webhook.id, now))) return
    log.info({ webhook: webhook.id }, 'a webhook is switched off')
    const to = await queries.findHookOwner(tx, webhook.org_id)
    if (to === undefined) return
    await enqueueMail(tx, {
      eventKey: `webhook-off:${webhook.id}:${now.toISOString()}`,
      to,
      template: 'webhook_off',
      data: { url: webhook.url, since, link: `${config.baseUrl}/account/webhooks/${webhook.id}` },
    })
  })
}
