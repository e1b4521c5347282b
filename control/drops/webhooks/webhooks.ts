/** Webhooks of an organisation: who is told, with which secret, and what became of each message. */
import { randomBytes } from 'node:crypto'
import { DAY_MS, type Clock } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import { requirePermission, type Actor } from '../../ground/actor.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import { WEBHOOK_CHANNEL } from '../../ground/routing/webhook-outbox.ts'
import { recordAudit } from '../../people/audit/audit.ts'
import * as queries from './queries.ts'
import { PRIVATE_ADDRESS, SECRET_PREFIX, urlProblem } from './rules.ts'
import type { ApiDelivery, ApiWebhook, NewWebhook } from './schemas.ts'
import type { WebhookSender } from './send.ts'

const MAX_WEBHOOKS = 10
/** Receivers change to the new secret meanwhile. */
const FORMER_SECRET_MS = DAY_MS
const SECRET_BYTES = 32
/** As many as a person looks through. */
const SHOWN_DELIVERIES = 100

export interface Webhooks {
  list(actor: Actor): Promise<ApiWebhook[]>
  get(actor: Actor, id: string): Promise<ApiWebhook>
  /** The secret is shown this once. */
  create(actor: Actor, wanted: NewWebhook): Promise<ApiWebhook & { secret: string }>
  delete(actor: Actor, id: string): Promise<void>
  /** A new secret, shown this once; the one before signs too for a day. What was switched off is on again. */
  rotate(actor: Actor, id: string): Promise<ApiWebhook & { secret: string }>
  /** Sends a message of the type `webhook.test`. */
  test(actor: Actor, id: string): Promise<ApiDelivery>
  /** The newest ones first. */
  deliveries(actor: Actor, id: string): Promise<ApiDelivery[]>
  /** The same message again, under the same id. */
  redeliver(actor: Actor, id: string, deliveryId: string): Promise<ApiDelivery>
}

interface WebhooksDependencies {
  sql: Pool
  clock: Clock
  secrets: Pick<Secrets, 'seal'>
  sender: Pick<WebhookSender, 'addressesOf'>
  config: { readonly allowPrivateAddresses: boolean }
}

/** What lies in the table can be opened with SECRET_KEY and for this webhook only. */
export function secretContext(webhookId: string): string {
  return `webhook:${webhookId}`
}

export function createWebhooks({ sql, clock, secrets, sender, config }: WebhooksDependencies): Webhooks {
  const now = (): Date => new Date(clock.now())

  async function requireOwn(actor: Actor, id: string, db: Sql = sql): Promise<queries.WebhookRow> {
    requireAllDrops(actor)
    const row = await queries.findWebhook(db, id)
    if (row?.org_id !== actor.orgId) throw errors.notFound('webhook')
    return row
  }

  /** What leads into our own network is refused here already; a name that leads nowhere yet may be given. */
  async function requirePublic(url: string): Promise<void> {
    const problem = urlProblem(url, config.allowPrivateAddresses)
    if (problem !== undefined) throw errors.invalidRequest(problem)
    const isPrivate = await sender.addressesOf(url).then(
      () => false,
      (error: unknown) => error instanceof Error && error.message === PRIVATE_ADDRESS,
    )
    if (isPrivate) throw errors.invalidRequest(PRIVATE_ADDRESS)
  }

  async function audit(
    tx: Sql,
    actor: Actor,
    action: 'webhook.created' | 'webhook.deleted' | 'webhook.rotated',
    row: { id: string; url: string },
  ): Promise<void> {
    const host = new URL(row.url).host
    await recordAudit(tx, { at: now(), orgId: actor.orgId, actor, action, subject: row.id, detail: { host } })
  }

  async function wake(): Promise<void> {
    await sql`select pg_notify(${WEBHOOK_CHANNEL}, '')`
  }

  return {
    async list(actor) {
      requireAllDrops(actor)
      return (await queries.listWebhooks(sql, actor.orgId)).map(showWebhook)
    },
    get: async (actor, id) => showWebhook(await requireOwn(actor, id)),

    async create(actor, { url, events, description = '' }) {
      requireAllDrops(actor)
      requirePermission(actor.role, 'publish')
      await requirePublic(url)
      const secret = newSecret()
      const id = newId('wh', clock.now())
      const row = {
        id,
        org_id: actor.orgId,
        url: new URL(url).href,
        events: [...new Set(events)],
        description,
        sealed_secret: secrets.seal(secret, secretContext(id)),
        created_at: now(),
      }
      await transaction(sql, async (tx) => {
        await queries.lockOrganisationOfHooks(tx, actor.orgId)
        if ((await queries.listWebhooks(tx, actor.orgId)).length >= MAX_WEBHOOKS)
          throw errors.limitReached(`An organisation has at most ${MAX_WEBHOOKS} webhooks. Delete one first.`)
        await queries.insertWebhook(tx, row)
        await audit(tx, actor, 'webhook.created', row)
      })
      return { ...showWebhook({ ...row, failing_since: null, disabled_at: null }), secret }
    },

    async delete(actor, id) {
      await transaction(sql, async (tx) => {
        const row = await requireOwn(actor, id, tx)
        await queries.deleteWebhook(tx, id)
        await audit(tx, actor, 'webhook.deleted', row)
      })
    },

    async rotate(actor, id) {
      const secret = newSecret()
      await transaction(sql, async (tx) => {
        const row = await requireOwn(actor, id, tx)
        const until = new Date(clock.now() + FORMER_SECRET_MS)
        await queries.replaceSecret(tx, id, secrets.seal(secret, secretContext(id)), until)
        await audit(tx, actor, 'webhook.rotated', row)
      })
      await wake()
      return { ...showWebhook(await requireOwn(actor, id)), secret }
    },

    async test(actor, id) {
      await requireOwn(actor, id)
      const at = now()
      const test = {
        id: `msg_${randomBytes(16).toString('hex')}`,
        webhook_id: id,
        type: 'webhook.test',
        body: JSON.stringify({ type: 'webhook.test', timestamp: at.toISOString(), data: { webhook_id: id } }),
        at,
      }
      await queries.insertTest(sql, test)
      await wake()
      return showDelivery(await requireDelivery(sql, id, test.id))
    },

    async deliveries(actor, id) {
      await requireOwn(actor, id)
      return (await queries.listDeliveries(sql, id, SHOWN_DELIVERIES)).map(showDelivery)
    },

    async redeliver(actor, id, deliveryId) {
      await requireOwn(actor, id)
      await requireDelivery(sql, id, deliveryId)
      await queries.sendAgain(sql, deliveryId, now())
      await wake()
      return showDelivery(await requireDelivery(sql, id, deliveryId))
    },
  }
}

/** A webhook hears of every drop of the organisation: a credential for some of them is not enough. */
function requireAllDrops({ reach }: Actor): void {
  if (reach.sites !== undefined)
    throw errors.forbidden('This token is limited to some drops, and webhooks hear of all. Use one that is not.')
}

async function requireDelivery(sql: Sql, webhookId: string, id: string): Promise<queries.DeliveryRow> {
  const row = await queries.findDelivery(sql, webhookId, id)
  if (!row) throw errors.notFound('delivery')
  return row
}

function newSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64')
}

function showWebhook(
  row: Pick<
    queries.WebhookRow,
    'id' | 'url' | 'events' | 'description' | 'created_at' | 'failing_since' | 'disabled_at'
  >,
): ApiWebhook {
  return {
    id: row.id,
    url: row.url,
    events: row.events,
    description: row.description,
    created_at: row.created_at.toISOString(),
    failing_since: row.failing_since?.toISOString() ?? null,
    disabled_at: row.disabled_at?.toISOString() ?? null,
  }
}

function showDelivery(row: queries.DeliveryRow): ApiDelivery {
  const isSettled = row.delivered_at !== null || row.failed_at !== null
  return {
    id: row.id,
    type: row.type,
    site_id: row.site_id,
    state: row.delivered_at ? 'delivered' : row.failed_at ? 'failed' : 'waiting',
    created_at: row.created_at.toISOString(),
    attempts: row.attempts,
    next_attempt_at: isSettled ? null : row.next_attempt_at.toISOString(),
    last_attempt_at: row.last_attempt_at?.toISOString() ?? null,
    request: row.body,
    status: row.last_status,
    answer: row.last_answer,
    error: row.last_error,
  }
}
