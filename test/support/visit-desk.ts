/** The desk that lets viewers in, on a database of its own: one drop with one viewer, and a clock that the test moves. */
import { setImmediate as turn } from 'node:timers/promises'
import { createVisitDesk, type VisitDesk } from '../../control/drops/visiting/visit-desk.ts'
import type { Actor } from '../../control/ground/actor.ts'
import { createEnqueueMail } from '../../control/ground/mail/mail.ts'
import { silentLog } from '../../shared/running/log.ts'
import { createSecrets, type Secrets } from '../../shared/secrets/secrets.ts'
import { createTestDatabase } from './postgres.ts'

const MINUTE_MS = 60_000

export interface VisitDeskFixture {
  readonly desk: VisitDesk
  readonly database: Awaited<ReturnType<typeof createTestDatabase>>
  readonly secrets: Secrets
  /** What a question is about. */
  readonly about: { readonly site_id: string; readonly host: string }
  /** The address of the one viewer. */
  readonly listed: string
  /** Codes as they went out, the newest last. */
  readonly mailed: readonly string[]
  advance(ms: number): void
  now(): number
  /** Who stands behind every token from now on; undefined: no one any more. */
  setMachine(actor: Actor | undefined): void
  /** Resolves when mails are written, or decided against: the desk begins that with its answer and does not wait for it. */
  idle(): Promise<void>
  close(): Promise<void>
}

export async function createVisitDeskFixture(): Promise<VisitDeskFixture> {
  const secrets = createSecrets('a secret key for tests, 32 chars or more')
  const [siteId, listed] = ['st_1', 'ada@example.com']
  const mailed: string[] = []
  let nowMs = Date.UTC(2026, 2, 1, 12)
  let machine: Actor | undefined
  const clock = { now: () => nowMs }
  const database = await createTestDatabase()
  const { sql } = database
  await sql`insert into users (id, email, password_hash, email_verified_at) values ('usr_1', 'o@example.com', '', now())`
  await sql`insert into organisations (id, name, owner_id) values ('org_1', 'o', 'usr_1')`
  await sql`
    insert into sites (id, org_id, slug, dns_target, password_hash, password_generation)
    values (${siteId}, 'org_1', 'plan', 't-1', 'viewers', 1)`
  await sql`
    insert into viewers (id, site_id, kind, value, created_at) values ('vw_1', ${siteId}, 'email', ${listed}, now())`
  const enqueue = createEnqueueMail({ secrets, clock })
  let underWay = 0
  const counted = new Proxy(sql, {
    get: (pool, name) =>
      name !== 'begin'
        ? Reflect.get(pool, name)
        : async (work: Parameters<typeof pool.begin>[1]) => {
            underWay += 1
            return pool.begin(work as never).finally(() => (underWay -= 1))
          },
  })
  const desk = createVisitDesk({
    sql: counted,
    clock,
    log: silentLog,
    secrets,
    enqueueMail: async (tx, mail) => {
      if (mail.template === 'viewer_code') mailed.push((mail.data as { code: string }).code)
      await enqueue(tx, mail)
    },
    config: {
      baseUrl: 'https://dropway.test',
      sitesDomain: 'dropway.test',
      publicPort: undefined,
      viewerCodeLifetimeMs: 10 * MINUTE_MS,
      viewerAdmissionMs: 30 * 24 * 60 * MINUTE_MS,
    },
    machineActor: async () => machine,
  })
  return {
    desk,
    database,
    secrets,
    about: { site_id: siteId, host: 'plan.dropway.test' },
    listed,
    mailed,
    advance: (ms) => void (nowMs += ms),
    now: () => nowMs,
    setMachine: (actor) => void (machine = actor),
    async idle() {
      do await turn()
      while (underWay > 0)
    },
    close: () => database.close(),
  }
}
