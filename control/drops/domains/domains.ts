/**
 * Custom domains: add a name, prove it by DNS, have it served with a certificate.
 *
 *   added ─▶ awaiting_dns ─▶ issuing ─▶ active ⇄ failing        blocked: another account holds it, or the plan ended
 *
 * doctor/checks.ts moves a domain from state to state. The edges are asked for a certificate only once DNS has proven the
 * name; they never order one by themselves.
 */
import { recordAudit } from '../../people/audit/audit.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { DAY_MS, HOUR_MS, SECOND_MS, type Clock } from '../../../shared/clock.ts'
import { errors } from '../../../shared/errors.ts'
import { siteHost } from '../../../shared/hosts.ts'
import { newId } from '../../../shared/ids.ts'
import type { Log } from '../../../shared/log.ts'
import { plans, type Plan, type PlanName } from '../../../shared/plans.ts'
import type { Secrets } from '../../../shared/secrets.ts'
import type { Actor } from '../../ground/actor.ts'
import type { ControlConfig } from '../../ground/config.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import { changeRoutes, type RouteChanges, type RoutingTransaction } from '../../ground/routing/changes.ts'
import { setDomainWanted, setRoute, type NewRoute } from '../../ground/routing/outbox.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import { createChecks, newToken, type ChecksConfig } from './doctor/checks.ts'
import type { RecordLine } from './doctor/diagnose.ts'
import { createDns, type Dns } from './dns/dns.ts'
import { createMirror, type Mirror } from './mirror.ts'
import { pairOf, parseDomain, unicodeOf } from './dns/names.ts'
import { createDomainNotices } from './notices.ts'
import * as queries from './queries.ts'
import type { DomainRow } from './queries.ts'
import * as rules from './rules.ts'
import type { AddDomain, ApiDomain, ApiSingleDomain } from './schemas.ts'
import { createServiceAddresses } from './dns/service-addresses.ts'

/** Adding answers with what the first look finds; a zone that takes longer is looked at in the background. */
const FIRST_LOOK_MS = 8 * SECOND_MS

export interface DomainsDependencies {
  sql: Pool
  redis: Redis
  secrets: Secrets
  clock: Clock
  log: Log
  config: ChecksConfig & Pick<ControlConfig, 'baseUrl' | 'serviceHost' | 'publicAddresses' | 'dnsResolver'>
  enqueueMail: EnqueueMail
  /** Answers about zones; by default the resolver of the settings. */
  dns?: Dns
  propagate(changes: RouteChanges): Promise<{ pending: boolean }>
}

/** Custom domains of drops. Another tenant's drop or domain is as absent as a missing one. */
export interface Domains {
  /** How many count against the organisation's plan. */
  count(orgId: string): Promise<number>
  /** Every domain of a drop with what is still missing or wrong in its zone, line by line, as the last check found it. */
  list(actor: Actor, siteId: string): Promise<ApiDomain[]>
  get(actor: Actor, siteId: string, domain: string): Promise<ApiDomain>
  /** Adds a name, looks at its zone at once, and says what it found. */
  add(actor: Actor, siteId: string, wanted: AddDomain): Promise<ApiDomain>
  remove(actor: Actor, siteId: string, domain: string): Promise<{ pending: boolean }>
  /** Looks now, and says what it found. */
  check(actor: Actor, siteId: string, domain: string): Promise<ApiDomain>
  /** Makes one half of an apex/www pair the name that the other leads to. */
  makeMain(actor: Actor, siteId: string, domain: string): Promise<ApiDomain>
  runDueChecks(): Promise<number>
  /** The edges have a new certificate, or gave one up (''). Told by the change log. */
  certificateChanged(name: string, sealed: string): Promise<void>
  /** What the log told while no control listened. */
  catchUp(): Promise<void>
  mirror: Mirror
  /** Routes of a locked site's domains, for `refreshRoutes`. A site that is gone gives its domains up. */
  routesOf(tx: RoutingTransaction, site: { id: string; slug: string; deleted_at: Date | null }): Promise<NewRoute[]>
  /** Fills an empty Redis with what the edges had put there; what is there already is newer. */
  republishCertificates(target: Redis): Promise<void>
  /**
   * The plan has ended: visitors of a domain see the page of a paused drop, over the certificate that it keeps, and
   * no other account gets the name without proof. Resolves the names that were served.
   */
  stop(tx: RoutingTransaction, orgId: string): Promise<string[]>
  /**
   * A plan has room for domains: those that were added first come back, as many as fit, each with its pair, and are
   * checked at once. The organisation is locked.
   */
  resume(tx: Sql, orgId: string, plan: PlanName): Promise<void>
  /** How many names that are served have a certificate that ends before then. */
  endingCertificates(before: Date): Promise<number>
  /** For operators: what the edges serve, and when it ends. Never a key. */
  certificates(): Promise<{ name: string; not_before: string; not_after: string; updated_at: string }[]>
}

export function createDomains(deps: DomainsDependencies): Domains {
  const { sql, redis, secrets, clock, log, config, enqueueMail, propagate } = deps
  const mirror = createMirror({ sql, redis, secrets, log })
  const dns = deps.dns ?? createDns(config.dnsResolver)
  const checks = createChecks({
    sql,
    redis,
    dns,
    clock,
    log,
    config,
    notices: createDomainNotices({ enqueueMail, config }),
    serviceAddresses: createServiceAddresses({ dns, clock, config }),
    learnCertificate: mirror.learn,
    propagate,
  })
  const now = (): Date => new Date(clock.now())

  async function shownSingle(row: DomainRow): Promise<ApiSingleDomain> {
    const first = await checks.firstAdvice(row)
    const { records, alternative } = row.checked_at === null ? first : row
    return {
      domain: row.domain,
      unicode: unicodeOf(row.domain),
      state: row.state,
      reason: row.reason,
      detail: row.detail,
      record: nextLine(records) ?? first.records[0]!,
      records: [...records],
      alternative,
      warnings: [...row.warnings],
      checked_at: row.checked_at?.toISOString() ?? null,
      next_check_at: row.next_check_at?.toISOString() ?? null,
      next_try_at: row.next_try_at?.toISOString() ?? null,
      certificate: row.holds && row.not_after ? { not_after: row.not_after.toISOString() } : null,
      redirect_to: row.redirect_to,
      created_at: row.created_at.toISOString(),
    }
  }

  async function shown(row: DomainRow, all: readonly DomainRow[]): Promise<ApiDomain> {
    const pair = all.find((other) => other.redirect_to === row.domain)
    return { ...(await shownSingle(row)), pair: pair ? await shownSingle(pair) : null }
  }

  async function requireOwnSite(sql: Sql, actor: Pick<Actor, 'orgId'>, siteId: string): Promise<void> {
    if (!(await queries.isOwnSite(sql, actor.orgId, siteId))) throw errors.notFound()
  }

  async function lockOwnSite(tx: Sql, actor: Actor, siteId: string): Promise<void> {
    if (!(await queries.lockOwnSite(tx, actor.orgId, siteId))) throw errors.notFound()
  }

  async function requireDomain(sql: Sql, actor: Actor, siteId: string, domain: string): Promise<DomainRow> {
    await requireOwnSite(sql, actor, siteId)
    const row = await queries.findDomain(sql, siteId, asTyped(domain))
    if (!row) throw errors.notFound('domain')
    return row
  }

  const asTyped = (domain: string): string => {
    const parsed = parseDomain(domain, config)
    return 'domain' in parsed ? parsed.domain : domain
  }

  async function shownOf(siteId: string, domain: string): Promise<ApiDomain> {
    const all = await queries.listDomains(sql, siteId)
    const row = all.find((candidate) => candidate.domain === domain)
    if (!row) throw errors.notFound('domain')
    return shown(row, all)
  }

  /** A name and the other half of its pair. */
  async function checkBoth(siteId: string, domain: string): Promise<void> {
    const all = await queries.listDomains(sql, siteId)
    const both = all.filter((row) => row.domain === domain || row.redirect_to === domain)
    await Promise.all(both.map(({ id }) => checks.checkNow(id)))
  }

  /** One name, inside the caller's transaction. */
  async function addName(
    tx: Sql,
    actor: Actor,
    siteId: string,
    domain: string,
    redirectTo: string | null,
  ): Promise<void> {
    const present = await queries.findOwnDomain(tx, actor.orgId, domain)
    if (present && present.site_id === siteId && present.redirect_to === redirectTo) return
    if (present)
      throw errors.conflict('domain_taken', `${domain} already belongs to a drop of yours. Remove it there first.`)
    await queries.insertDomain(tx, {
      id: newId('dom', clock.now()),
      domain,
      site_id: siteId,
      org_id: actor.orgId,
      redirect_to: redirectTo,
      reason: 'not_checked',
      verify_token: newToken(),
      is_cname_spent: await queries.hadDomain(tx, siteId, domain),
      next_check_at: now(),
      created_at: now(),
    })
  }

  /** Caller has locked the plan. */
  async function requireRoom(tx: Sql, actor: Actor, plan: Plan, domain: string): Promise<void> {
    if (plan.customDomains === 0) throw errors.planFeature('A custom domain')
    if (await queries.findOwnDomain(tx, actor.orgId, domain)) return
    if ((await queries.countDomains(tx, actor.orgId)) >= plan.customDomains)
      throw errors.planLimit(
        `Your plan allows ${plan.customDomains} custom ${plan.customDomains === 1 ? 'domain' : 'domains'}. Remove one, or upgrade.`,
      )
    const since = new Date(now().getTime() - DAY_MS)
    if ((await queries.countDomainsSince(tx, actor.orgId, since)) >= rules.newDomainsPerDay(plan.customDomains))
      throw errors.rateLimited(
        HOUR_MS / SECOND_MS,
        'Your organisation has added many domains within a day. Wait until tomorrow, then go on.',
      )
  }

  /** Everything of a domain goes: its row, the route, the certificate, as they are by now. */
  async function release(tx: RoutingTransaction, domain: DomainRow): Promise<void> {
    const row = await queries.lockDomain(tx, domain)
    if (!row) return
    await queries.removeDomain(tx, row.id, now())
    if (!row.holds) return
    if (row.wanted) await setDomainWanted(tx, row.domain, { wanted: false })
    await setRoute(tx, { kind: 'none', host: row.domain })
  }

  async function resume(tx: Sql, orgId: string, plan: PlanName): Promise<void> {
    const all = await queries.domainsOfOrganisation(tx, orgId)
    for (const { id } of rules.resumable(all, plans[plan].customDomains))
      await queries.updateDomain(tx, id, {
        stopped_at: null,
        state: 'awaiting_dns',
        reason: 'not_checked',
        detail: '',
        next_check_at: now(),
        checks: 0,
      })
  }

  return {
    count: (orgId: string): Promise<number> => queries.countDomains(sql, orgId),

    async list(actor: Actor, siteId: string): Promise<ApiDomain[]> {
      await requireOwnSite(sql, actor, siteId)
      const all = await queries.listDomains(sql, siteId)
      return Promise.all(all.filter(({ redirect_to }) => redirect_to === null).map((row) => shown(row, all)))
    },

    async get(actor: Actor, siteId: string, domain: string): Promise<ApiDomain> {
      const row = await requireDomain(sql, actor, siteId, domain)
      return shownOf(siteId, row.domain)
    },

    async add(actor: Actor, siteId: string, wanted: AddDomain): Promise<ApiDomain> {
      const parsed = parseDomain(wanted.domain, config)
      if ('problem' in parsed) throw errors.invalidRequest(`domain: ${parsed.problem}`)
      const { domain } = parsed
      const pair = wanted.pair === false ? undefined : pairOf(domain)
      await transaction(sql, async (tx) => {
        const plan = plans[(await queries.lockPlan(tx, actor.orgId)) ?? 'free']
        await lockOwnSite(tx, actor, siteId)
        await requireRoom(tx, actor, plan, domain)
        await addName(tx, actor, siteId, domain, null)
        const isPairFree = pair !== undefined && !(await queries.findOwnDomain(tx, actor.orgId, pair))
        if (isPairFree) await addName(tx, actor, siteId, pair, domain)
        await recordAudit(tx, {
          at: now(),
          orgId: actor.orgId,
          actor,
          action: 'domain.added',
          subject: domain,
          detail: { site: siteId },
        })
      })
      const looked = checkBoth(siteId, domain).catch((error: unknown) =>
        log.warn({ err: error, domain }, 'a new domain could not be looked at; the next check will'),
      )
      await Promise.race([looked, sleep(FIRST_LOOK_MS, undefined, { ref: false })])
      return shownOf(siteId, domain)
    },

    async remove(actor: Actor, siteId: string, domain: string): Promise<{ pending: boolean }> {
      const { changes } = await changeRoutes(sql, async (tx) => {
        const plan = (await queries.lockPlan(tx, actor.orgId)) ?? 'free'
        await lockOwnSite(tx, actor, siteId)
        const row = await requireDomain(tx, actor, siteId, domain)
        const all = await queries.listDomains(tx, siteId)
        for (const one of all.filter((other) => other.id === row.id || other.redirect_to === row.domain))
          await release(tx, one)
        await resume(tx, actor.orgId, plan)
        await recordAudit(tx, {
          at: now(),
          orgId: actor.orgId,
          actor,
          action: 'domain.removed',
          subject: row.domain,
          detail: { site: siteId },
        })
      })
      return propagate(changes)
    },

    async check(actor, siteId, domain) {
      const row = await requireDomain(sql, actor, siteId, domain)
      await checkBoth(siteId, row.domain)
      return shownOf(siteId, row.domain)
    },

    async makeMain(actor, siteId, domain) {
      const { value: main, changes } = await changeRoutes(sql, async (tx) => {
        await lockOwnSite(tx, actor, siteId)
        const row = await requireDomain(tx, actor, siteId, domain)
        if (row.redirect_to === null) return row.domain
        const former = await queries.findDomain(tx, siteId, row.redirect_to)
        await queries.updateDomain(tx, row.id, { redirect_to: null })
        if (former) await queries.updateDomain(tx, former.id, { redirect_to: row.domain })
        await checks.syncRoutes(tx, siteId)
        await recordAudit(tx, {
          at: now(),
          orgId: actor.orgId,
          actor,
          action: 'domain.made_main',
          subject: row.domain,
          detail: { site: siteId },
        })
        return row.domain
      })
      await propagate(changes)
      return shownOf(siteId, main)
    },

    runDueChecks: checks.runDue,

    async certificateChanged(name: string, sealed: string): Promise<void> {
      await mirror.keep(name, sealed)
      if (sealed !== '') await checks.arrived(name)
    },

    async catchUp(): Promise<void> {
      for (const name of await mirror.catchUp()) await checks.arrived(name)
    },

    mirror,

    async routesOf(
      tx: RoutingTransaction,
      site: { id: string; slug: string; deleted_at: Date | null },
    ): Promise<NewRoute[]> {
      if (site.deleted_at) {
        for (const row of await queries.listDomains(tx, site.id)) await release(tx, row)
        return []
      }
      const rows = await queries.lockDomains(tx, site.id)
      return rules.routesOfDomains(rows, siteHost(site.slug, config.sitesDomain))
    },

    republishCertificates: mirror.republish,

    async stop(tx, orgId) {
      const served: string[] = []
      for (const row of await queries.domainsOfOrganisation(tx, orgId)) {
        if (row.stopped_at) continue
        if (row.redirect_to === null && rules.isServed(row.state)) served.push(row.domain)
        await checks.stop(tx, row)
      }
      return served
    },

    resume,

    endingCertificates: (before) => queries.countEndingCertificates(sql, before),

    async certificates(): Promise<{ name: string; not_before: string; not_after: string; updated_at: string }[]> {
      const rows = await mirror.all()
      return rows.map(({ name, not_before, not_after, updated_at }) => ({
        name,
        not_before: not_before.toISOString(),
        not_after: not_after.toISOString(),
        updated_at: updated_at.toISOString(),
      }))
    },
  }
}

/** What to set next. */
function nextLine(records: readonly RecordLine[]): RecordLine | undefined {
  return records.find(({ action }) => action !== 'remove') ?? records[0]
}
