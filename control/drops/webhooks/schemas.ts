/** Shapes of the REST API for webhooks. */
import { z } from 'zod'
import { MAX_NAME_CHARS } from '../../../shared/contracts/limits.ts'
import { described } from '../../ground/http/operations/described.ts'
import { WEBHOOK_EVENTS } from '../../ground/routing/webhook-outbox.ts'
import { MAX_URL_CHARS } from './rules.ts'

const SAMPLE_TIME = '2026-11-15T09:00:00.000Z'
const time = (description: string) => described(z.iso.datetime(), description, SAMPLE_TIME)
const timeOrNull = (description: string) => described(z.iso.datetime().nullable(), description, null)

export const newWebhookSchema = z.strictObject({
  url: described(
    z.string().max(MAX_URL_CHARS),
    'Where messages are sent: https, and no private address.',
    'https://hooks.example.com/dropway',
  ),
  events: described(z.array(z.enum(WEBHOOK_EVENTS)).min(1, 'name at least one event'), 'What it wants to hear of.', [
    'drop.published',
    'preview.published',
  ]),
  description: described(z.string().max(MAX_NAME_CHARS), 'A label for you.', 'Search index').optional(),
})
export type NewWebhook = z.infer<typeof newWebhookSchema>

export const webhookSchema = z
  .object({
    id: described(z.string(), 'Id of the webhook.', 'wh_3k9s0dm2q1'),
    url: described(z.string(), 'Where messages are sent.', 'https://hooks.example.com/dropway'),
    events: described(z.array(z.string()), 'What it hears of.', ['drop.published']),
    description: described(z.string(), 'Your label.', 'Search index'),
    created_at: time('When it was made.'),
    failing_since: timeOrNull('Since when nothing has arrived.'),
    disabled_at: timeOrNull(
      'When it was switched off, after three days of failures; rotating its secret switches it on.',
    ),
  })
  .meta({ id: 'Webhook' })
export type ApiWebhook = z.infer<typeof webhookSchema>

export const shownWebhookSchema = webhookSchema
  .extend({
    secret: described(
      z.string(),
      'Signs its messages (Standard Webhooks); shown this once.',
      'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    ),
  })
  .meta({ id: 'NewWebhook' })

export const deliverySchema = z
  .object({
    id: described(
      z.string(),
      'The `webhook-id` of the message, the same at every attempt.',
      'msg_0f3c1d2e4b5a69788796a5b4c3d2e1f0',
    ),
    type: described(z.string(), 'What happened.', 'drop.published'),
    site_id: described(z.string().nullable(), 'The drop that it is about; null for a test.', 'st_4f9kq2m7x1'),
    state: described(z.enum(['waiting', 'delivered', 'failed']), 'What became of it.', 'delivered'),
    created_at: time('When it happened.'),
    attempts: described(z.int(), 'How often it was sent.', 1),
    next_attempt_at: timeOrNull('When it is sent next; null when it is settled.'),
    last_attempt_at: timeOrNull('When it was last sent.'),
    request: described(z.string(), 'The body of the message.', '{"type":"drop.published"}'),
    status: described(z.int().nullable(), 'What the receiver answered.', 200),
    answer: described(z.string().nullable(), 'The beginning of its answer.', 'ok'),
    error: described(z.string().nullable(), 'Why it did not arrive.', null),
  })
  .meta({ id: 'WebhookDelivery' })
export type ApiDelivery = z.infer<typeof deliverySchema>
