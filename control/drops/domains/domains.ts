/**
 * Custom domains: add a name, prove it by DNS, have it served with a certificate.
 *
 *   added ─▶ awaiting_dns ─▶ issuing ─▶ active ⇄ failing        blocked: another account holds it, or the plan ended
 *
 * doctor/checks.ts moves a domain from state to state. The edges are asked for a certificate only once DNS has proven the
 * name; they never order one by themselves.
 */
import { recordAudit, type AuditAction } from '../../people/audit/audit.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { SECOND_MS, type Clock } from '../../../shared/running/clock.ts'
import { ownCertificates } from '../../../shared/certificates/own-names.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { siteHost } from '../../../shared/http/hosts.ts'
import type { Log } from '../../../shared/running/log.ts'
import { plans, type PlanName } from '../../ground/terms/plans.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import { reaches, type Actor } from '../../ground/actor.ts'
import type { ControlConfig } from '../../ground/config.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import { changeRoutes, type RouteChanges, type RoutingTransaction } from '../../ground/routing/changes.ts'
import { setDomainWanted, setRoute, type NewRoute } from '../../ground/routing/outbox.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import { queueState, type QueueState } from '../../ground/watching/queue.ts'
import { addNames, requireLockedSite } from './adding.ts'
import { createChecks, type Checks, type ChecksConfig } from './doctor/checks.ts'
import { createDns, type Dns } from './dns/dns.ts'
import { createMirror, type Mirror } from './mirror.ts'
import { isWildcard, pairOf, parseDomain } from './dns/names.ts'
import { createDomainNotices } from './notices.ts'
import * as queries from './queries.ts'
import type { DomainRow } from './queries.ts'
import * as rules from './rules.ts'
import type { AddDomain, ApiDomain } from './schemas.ts'
import { createServiceAddresses } from './dns/service-addresses.ts'
import { showDomain } from './show-domain.ts'

/** Adding answers with what the first look finds; a zone that takes longer is looked at in the background. */
const FIRST_LOOK_MS = 8 * SECOND_MS

export interface DomainsDependencies {
  sql: Pool
  redis: Redis
  secrets: Secrets
  clock: Clock
  log: Log
  config: ChecksConfig &
    Pick<ControlConfig, 'baseUrl' | 'serviceHost' | 'publicAddresses' | 'dnsResolver' | 'dns01Kind'>
  enqueueMail: EnqueueMail
  /** Answers about zones; by default the resolver of the settings. */
  dns?: Dns
  propagate(changes: RouteChanges): Promise<{ pending: boolean }>
}

/** Custom domains of drops. Another tenant's drop or domain is as absent as a missing one. */
export interface Domains {
  /** Whether wildcards can be proven here; a plan has to allow them too. */
  readonly offersWildcards: boolean
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
  /** Domains that are due to be looked at. */
  queue(): Promise<QueueState>
  /** The edges have a new certificate, or gave one up (''). Told by the change log. */
  certificateChanged(name: string, sealed: string): Promise<void>
  /** What the log told while no control listened. */
  catchUp(): Promise<void>
  mirror: Mirror
  /** Locks the domains of a locked site; their routes, for `refreshRoutes`. A site that is gone gives its domains up. */
  lockRoutes(
    tx: RoutingTransaction,
    siteId: string,
  ): Promise<(site: { slug: string; deleted_at: Date | null }) => Promise<NewRoute[]>>
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
  const mirror = createMirror({ sql, redis, secrets, log, ownNames: ownCertificates(config) })
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

  const shown = (row: DomainRow, all: readonly DomainRow[]): Promise<ApiDomain> =>
    showDomain(row, all, checks.firstAdvice)

  async function requireDomain(sql: Sql, actor: Actor, siteId: string, domain: string): Promise<DomainRow> {
    await requireOwnSite(sql, actor, siteId)
    const row = await queries.findDomain(sql, siteId, asTyped(domain, config))
    if (!row) throw errors.notFound('domain')
    return row
  }

  const record = (tx: Sql, actor: Actor, action: AuditAction, domain: string, siteId: string): Promise<void> =>
    recordAudit(tx, { at: now(), orgId: actor.orgId, actor, action, subject: domain, detail: { site: siteId } })

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

  return {
    mirror,
    offersWildcards: offersWildcards(config),
    ...createUpkeep({ sql, checks, mirror, config, now }),

    async list(actor, siteId) {
      await requireOwnSite(sql, actor, siteId)
      const all = await queries.listDomains(sql, siteId)
      return Promise.all(all.filter(({ redirect_to }) => redirect_to === null).map((row) => shown(row, all)))
    },

    async get(actor, siteId, domain) {
      const row = await requireDomain(sql, actor, siteId, domain)
      return shownOf(siteId, row.domain)
    },

    async add(actor, siteId, wanted) {
      const parsed = parseDomain(wanted.domain, config)
      if ('problem' in parsed) throw errors.invalidRequest(`domain: ${parsed.problem}`)
      const { domain } = parsed
      if (isWildcard(domain) && !offersWildcards(config)) throw errors.invalidRequest(`domain: ${NO_WILDCARDS}`)
      const pair = wanted.pair === false ? undefined : pairOf(domain)
      await transaction(sql, async (tx) => {
        await addNames(tx, actor, { siteId, domain, pair }, now())
        await record(tx, actor, 'domain.added', domain, siteId)
      })
      const looked = checkBoth(siteId, domain).catch((error: unknown) =>
        log.warn({ err: error, domain }, 'a new domain could not be looked at; the next check will'),
      )
      await Promise.race([looked, sleep(FIRST_LOOK_MS, undefined, { ref: false })])
      return shownOf(siteId, domain)
    },

    async remove(actor, siteId, domain) {
      const { changes } = await changeRoutes(sql, async (tx) => {
        const plan = (await queries.lockPlan(tx, actor.orgId)) ?? 'free'
        await requireLockedSite(tx, actor, siteId)
        const row = await requireDomain(tx, actor, siteId, domain)
        const all = await queries.listDomains(tx, siteId)
        for (const one of all.filter((other) => other.id === row.id || other.redirect_to === row.domain))
          await release(tx, one, now())
        await resume(tx, actor.orgId, plan, now())
        await record(tx, actor, 'domain.removed', row.domain, siteId)
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
        await requireLockedSite(tx, actor, siteId)
        const row = await requireDomain(tx, actor, siteId, domain)
        if (row.redirect_to === null) return row.domain
        const former = await queries.findDomain(tx, siteId, row.redirect_to)
        await queries.updateDomain(tx, row.id, { redirect_to: null })
        if (former) await queries.updateDomain(tx, former.id, { redirect_to: row.domain })
        await checks.syncRoutes(tx, siteId)
        await record(tx, actor, 'domain.made_main', row.domain, siteId)
        return row.domain
      })
      await propagate(changes)
      return shownOf(siteId, main)
    },
  }
}

type Upkeep = Omit<Domains, 'offersWildcards' | 'list' | 'get' | 'add' | 'remove' | 'check' | 'makeMain' | 'mirror'>

interface UpkeepDependencies extends Pick<DomainsDependencies, 'sql' | 'config'> {
  readonly checks: Checks
  readonly mirror: Mirror
  now(): Date
}

/** What happens to domains without their owner: checks, certificates that arrive, the end of a plan. */
function createUpkeep({ sql, checks, mirror, config, now }: UpkeepDependencies): Upkeep {
  return {
    count: (orgId) => queries.countDomains(sql, orgId),

    runDueChecks: checks.runDue,

    queue: async () => queueState(await queries.checkQueue(sql, now()), now()),

    async certificateChanged(name, sealed) {
      await mirror.keep(name, sealed)
      if (sealed !== '') await checks.arrived(name)
    },

    async catchUp() {
      for (const name of await mirror.catchUp()) await checks.arrived(name)
    },

    async lockRoutes(tx, siteId) {
      const rows = await queries.lockDomains(tx, siteId)
      return async (site) => {
        if (!site.deleted_at) return rules.routesOfDomains(rows, siteHost(site.slug, config.sitesDomain))
        for (const row of rows) await release(tx, row, now())
        return []
      }
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

    resume: (tx, orgId, plan) => resume(tx, orgId, plan, now()),

    endingCertificates: (before) => queries.countEndingCertificates(sql, before),

    async certificates() {
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

async function requireOwnSite(sql: Sql, actor: Pick<Actor, 'orgId' | 'reach'>, siteId: string): Promise<void> {
  const isOwn = reaches(actor.reach, siteId) && (await queries.isOwnSite(sql, actor.orgId, siteId))
  if (!isOwn) throw errors.notFound()
}

const NO_WILDCARDS = 'Wildcards cannot be added here: the service is not set up to prove them. Add each name by itself.'

/** An authority signs a wildcard only when it is proven by DNS; the local one signs anything. */
function offersWildcards(config: Pick<ControlConfig, 'acmeDirectoryUrl' | 'dns01Kind'>): boolean {
  return config.acmeDirectoryUrl === undefined || config.dns01Kind !== undefined
}

/** The name as the table has it; what is no name is looked for as it stands. */
function asTyped(domain: string, config: Parameters<typeof parseDomain>[1]): string {
  const parsed = parseDomain(domain, config)
  return 'domain' in parsed ? parsed.domain : domain
}

/** Everything of a domain goes: its row, the route, the certificate, as they are by now. */
async function release(tx: RoutingTransaction, domain: DomainRow, now: Date): Promise<void> {
  const row = await queries.lockDomain(tx, domain)
  if (!row) return
  await queries.removeDomain(tx, row.id, now)
  if (!row.holds) return
  if (row.wanted) await setDomainWanted(tx, row.domain, { wanted: false })
  await setRoute(tx, { kind: 'none', host: row.domain })
}

async function resume(tx: Sql, orgId: string, plan: PlanName, now: Date): Promise<void> {
  const all = await queries.domainsOfOrganisation(tx, orgId)
  for (const { id } of rules.resumable(all, plans[plan]))
    await queries.updateDomain(tx, id, {
      stopped_at: null,
      state: 'awaiting_dns',
      reason: 'not_checked',
      detail: '',
      next_check_at: now,
      checks: 0,
    })
}
