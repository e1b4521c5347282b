/** Every capability of the control plane on a real Postgres and Redis, without a web server or jobs; an edge stands in. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EVERYTHING, type Actor } from '../../control/ground/actor.ts'
import { readControlConfig } from '../../control/ground/config.ts'
import type { Sql } from '../../control/ground/database/sql.ts'
import { changeRoutes, type RoutingTransaction } from '../../control/ground/routing/changes.ts'
import { createServices } from '../../control/composition/services.ts'
import type { QuickPublished } from '../../control/drops/sites/versions/quick-publish.ts'
import { HOUR_MS, systemClock, type Clock } from '../../shared/running/clock.ts'
import { silentLog } from '../../shared/running/log.ts'
import type { RenderedMail } from '../../control/ground/mail/letters/templates.ts'
import { sealContext } from '../../control/ground/mail/mail.ts'
import type { PlanName } from '../../control/ground/terms/plans.ts'
import type { SiteRoute } from '../../shared/contracts/route-record.ts'
import { hashSecret, randomSecret } from '../../shared/secrets/secrets.ts'
import { PASSWORD } from './accounts.ts'
import { startEdgeStandIn } from './edge-stand-in.ts'
import { createTestDatabase } from './postgres.ts'
import { startTestRedis } from './redis.ts'

export type ComposedServices = Awaited<ReturnType<typeof composeServices>>

export async function composeServices(env: Record<string, string> = {}, clock: Clock = systemClock) {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-composed-'))
  const [database, server] = await Promise.all([createTestDatabase(), startTestRedis()])
  const edge = await startEdgeStandIn({ redisUrl: server.url, id: 'edge' })
  const config = readControlConfig({
    DATA_DIR: dataDir,
    DATABASE_URL: database.url,
    REDIS_URL: server.url,
    SECRET_KEY: 'a test key of at least thirty-two characters',
    ANONYMOUS_PER_HOUR: '1000000',
    UPLOADS_PER_HOUR: '1000000',
    ...env,
  })
  const services = createServices({ config, clock, log: silentLog })
  if (services.redis.status !== 'ready') await once(services.redis, 'ready')
  const { sql } = database
  let people = 0

  async function changePlan(orgId: string, plan: PlanName): Promise<void> {
    await changeRoutes(sql, (tx) => services.lifecycle.changePlan(tx, orgId, plan))
  }

  /** A new account, acting for its personal organisation. */
  async function newActor(plan: PlanName = 'free', verified = true): Promise<Actor> {
    const email = `person${++people}@example.com`
    const made = await services.accounts.createAccount({ email, password: PASSWORD, verified })
    if (plan !== 'free') await changePlan(made.orgId, plan)
    return {
      userId: made.userId,
      email,
      emailVerified: verified,
      isStaff: false,
      orgId: made.orgId,
      role: 'owner',
      plan,
      reach: EVERYTHING,
      via: { kind: 'token', tokenId: '' },
      ip: '203.0.113.7',
    }
  }

  return {
    services,
    sql,
    dataDir,
    changePlan,
    newActor,

    /** They open the link in their mail. */
    async verify(actor: Actor): Promise<void> {
      const token = randomSecret()
      const at = new Date(clock.now())
      await sql`
        insert into account_links (token_hash, kind, user_id, email, created_at, expires_at)
        values (${hashSecret(token)}, 'verify', ${actor.userId}, ${actor.email}, ${at}, ${new Date(clock.now() + HOUR_MS)})`
      await services.accounts.verifyEmail(token)
    },

    /** The same person, acting for a new organisation of theirs. */
    async newTeam(actor: Actor, plan: PlanName = 'free'): Promise<Actor> {
      const { id } = await services.organisations.create(actor, 'Team')
      if (plan !== 'free') await changePlan(id, plan)
      return { ...actor, orgId: id, plan }
    },

    async publishPage(actor: Actor, text: string, slug?: string): Promise<QuickPublished> {
      const content = { kind: 'text', format: 'html', content: `<!doctype html><title>${text}</title>` } as const
      return (await services.quickPublish.publish(actor, { content, slug })).value
    },

    /** A drop without an account, and the secret of its claim link. */
    async publishAnonymously(anonymousId: string): Promise<{ id: string; slug: string; secret: string }> {
      const signals = { honeypot: undefined, started: undefined, proof: undefined, isBrowser: false }
      const { value } = await services.anonymous.publishText(
        { ip: '203.0.113.9', anonymousId, signals },
        { filename: 'index.html', content: '<title>anonymous</title>' },
      )
      return { id: value.id, slug: value.slug, secret: new URL(value.claim_url).searchParams.get('token')! }
    },

    /** What was queued for an address, opened. */
    async mailsTo(email: string): Promise<(RenderedMail & { template: string })[]> {
      const rows = await sql<{ id: string; template: string; sealed: string }[]>`
        select id, template, sealed from mails where recipient = ${email} order by created_at, id`
      return rows.map(({ id, template, sealed }) => {
        const mail = JSON.parse(services.secrets.open(sealed, sealContext(id)).toString()) as RenderedMail
        return { ...mail, template }
      })
    },

    /** What the edges are told about a slug. */
    async routeOf(slug: string): Promise<SiteRoute> {
      const [row] = await sql<{ record: SiteRoute }[]>`
        select record from routes where host = ${`${slug}.${config.sitesDomain}`}`
      return row!.record
    },

    /** Holds `first` open, uncommitted, until `second` waits for it or needs nothing that it holds. */
    async overlap<Result>(
      first: (tx: RoutingTransaction) => Promise<unknown>,
      second: () => Promise<Result>,
    ): Promise<Result> {
      let rival: Promise<Result> | undefined
      await changeRoutes(sql, async (tx) => {
        await first(tx)
        let isSettled = false
        const settle = (): void => void (isSettled = true)
        rival = second()
        rival.then(settle, settle)
        while (!isSettled && !(await isSomebodyWaiting(sql))) await sleep(5)
      })
      return rival!
    },

    async close(): Promise<void> {
      await services.close()
      await edge.stop()
      await Promise.all([database.close(), server.stop()])
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

async function isSomebodyWaiting(sql: Sql): Promise<boolean> {
  const rows = await sql`
    select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  return rows.length > 0
}
