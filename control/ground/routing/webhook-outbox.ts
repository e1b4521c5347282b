/** What owners' own servers are told: written in the transaction of the event, carried by control/drops/webhooks. */
import type { Sql } from '../database/sql.ts'

export const WEBHOOK_EVENTS = [
  'drop.published',
  'drop.promoted',
  'drop.deleted',
  'drop.expired',
  'drop.paused',
  'drop.restored',
  'drop.access_changed',
  'domain.ready',
  'domain.failing',
  'viewer.requested',
  'preview.published',
  'thread.opened',
  'thread.replied',
  'thread.resolved',
] as const
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number]

/** Every control listens; the first one sends. */
export const WEBHOOK_CHANNEL = 'dropway_webhooks'

export interface ToldEvent {
  readonly type: WebhookEvent
  readonly siteId: string
  /** The version that it is about; the live one where it is left out. */
  readonly versionId?: string
  readonly threadId?: string
  readonly at: Date
}

/** tellWebhooks writes one delivery for each webhook of the drop's organisation that wants to hear of such events. */
export async function tellWebhooks(tx: Sql, { type, siteId, versionId, threadId, at }: ToldEvent): Promise<void> {
  await tx`
    with told as (
      insert into webhook_deliveries (id, webhook_id, site_id, type, body, created_at, next_attempt_at)
      select 'msg_' || replace(gen_random_uuid()::text, '-', ''), w.id, s.id, ${type},
        json_build_object('type', ${type}::text, 'timestamp', ${at.toISOString()}::text, 'data', (jsonb_build_object(
          'site_id', s.id, 'slug', s.slug, 'version_id', v.id, 'version_number', v.number)
          || case when ${threadId ?? null}::text is null then '{}'::jsonb else jsonb_build_object('thread_id', ${threadId ?? null}::text) end))::text,
        ${at}, ${at}
      from sites s join webhooks w on w.org_id = s.org_id and w.disabled_at is null and ${type} = any(w.events)
      left join versions v on v.id = coalesce(${versionId ?? null}::text, s.live_version_id)
      where s.id = ${siteId}
      returning 1)
    select pg_notify(${WEBHOOK_CHANNEL}, '') from (select 1 from told limit 1) any_told`
}
