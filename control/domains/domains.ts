/**
 * Custom domains: claim a name, prove it by DNS, have it served with a certificate.
 *
 *   claim ─▶ awaiting_dns ─▶ issuing ─▶ active ⇄ failing        blocked: somebody else holds it, or the plan ended
 *
 * A check looks first (DNS, the way in, the CA's last word) and then decides in one transaction (rules.ts). The edges
 * are asked for a certificate only once DNS has proven the name; they never order one by themselves.
 */
import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { decodeRetryState } from '../../shared/certificate-retry.ts'
import { MINUTE_MS, SECOND_MS, type Clock } from '../../shared/clock.ts'
import { errors } from '../../shared/errors.ts'
import { siteHost } from '../../shared/hosts.ts'
import { newId } from '../../shared/ids.ts'
import { keys } from '../../shared/keys.ts'
import type { Log } from '../../shared/log.ts'
import { plans } from '../../shared/plans.ts'
import type { Secrets } from '../../shared/secrets.ts'
import type { Actor } from '../accounts/actor.ts'
import type { ControlConfig } from '../config.ts'
import { transaction, type Pool, type Sql } from '../database/sql.ts'
import { setDomainWanted, setRoute, type NewRoute } from '../events/outbox.ts'
import { createDoctor } from './doctor.ts'
import { createMirror } from './mirror.ts'
import { createProbe } from './probe.ts'
import * as queries from './queries.ts'
import type { DomainRow } from './queries.ts'
import * as rules from './rules.ts'
import type { AddDomain, DomainView, SingleDomainView } from './schemas.ts'

/** A control that dies during a check leaves the domain to others after this long. */
const CHECK_LEASE_MS = 2 * MINUTE_MS
const CHECKS_AT_ONCE = 8
/** Whoever presses the button again and again sees the last result; DNS does not change that fast. */
const MIN_MANUAL_PAUSE_MS = SECOND_MS

export interface DomainsDeps {
  sql: Pool
  redis: Redis
  secrets: Secrets
  clock: Clock
  log: Log
  config: Pick<
    ControlConfig,
    | 'sitesDomain'
    | 'serviceHost'
    | 'dnsResolver'
    | 'acmeDirectoryUrl'
    | 'caaIdentities'
    | 'challengePort'
    | 'allowPrivateAddresses'
    | 'publicAddresses'
    | 'domainCheckMs'
  >
  /** Writes the audit log inside the transaction of the change. */
  audit(
    sql: Sql,
    entry: { actor: Actor; action: string; subject: string; detail?: Record<string, unknown> },
  ): Promise<void>
  propagate(): Promise<{ pending: boolean }>
}

export type Domains = ReturnType<typeof createDomains>

/** What a check has seen before it decides. */
interface Seen {
  readonly findings: rules.DnsFindings
  readonly verdict: rules.DnsVerdict
  readonly probe: rules.ProbeResult
}

export function createDomains({ sql, redis, secrets, clock, log, config, audit, propagate }: DomainsDeps) {
  const asksCa = config.acmeDirectoryUrl !== undefined
  const doctor = createDoctor({ dnsResolver: config.dnsResolver, caaIdentities: caaIdentities(config), asksCa })
  const prober = createProbe({ redis, ...config })
  const mirror = createMirror({ sql, redis, secrets, log })
  const now = (): Date => new Date(clock.now())

  const claimOf = (row: DomainRow): rules.ClaimFacts => ({
    domain: row.domain,
    target: siteHost(row.dns_target, config.sitesDomain),
    verify_token: row.verify_token,
  })

  function singleView(row: DomainRow): SingleDomainView {
    const claim = claimOf(row)
    return {
      domain: row.domain,
      state: row.state,
      reason: row.reason,
      detail: row.detail,
      record: rules.recordToPaste(claim, row.reason, config.publicAddresses),
      records: rules.recordsFor(claim, config.publicAddresses),
      checked_at: row.checked_at?.toISOString() ?? null,
      next_check_at: row.next_check_at?.toISOString() ?? null,
      certificate: row.holds && row.not_after ? { not_after: row.not_after.toISOString() } : null,
      redirect_to: row.redirect_to,
      created_at: row.created_at.toISOString(),
    }
  }

  function view(row: DomainRow, all: readonly DomainRow[]): DomainView {
    const pair = all.find((other) => other.redirect_to === row.domain)
    return { ...singleView(row), pair: pair ? singleView(pair) : null }
  }

  async function requireOwnSite(db: Sql, actor: Pick<Actor, 'orgId'>, siteId: string): Promise<void> {
    if (!(await queries.isOwnSite(db, actor.orgId, siteId))) throw errors.notFound()
  }

  async function requireDomain(db: Sql, actor: Actor, siteId: string, domain: string): Promise<DomainRow> {
    await requireOwnSite(db, actor, siteId)
    const row = await queries.findDomain(db, siteId, asTyped(domain))
    if (!row) throw errors.notFound('domain')
    return row
  }

  const asTyped = (domain: string): string => {
    const parsed = rules.parseDomain(domain, config)
    return 'domain' in parsed ? parsed.domain : domain
  }

  async function viewOf(siteId: string, domain: string): Promise<DomainView> {
    const all = await queries.listDomains(sql, siteId)
    const row = all.find((candidate) => candidate.domain === domain)
    if (!row) throw errors.notFound('domain')
    return view(row, all)
  }

  /** One claim, inside the caller's transaction. */
  async function claim(
    db: Sql,
    actor: Actor,
    siteId: string,
    domain: string,
    redirectTo: string | null,
  ): Promise<void> {
    const present = await queries.findClaim(db, actor.orgId, domain)
    if (present && present.site_id === siteId && present.redirect_to === redirectTo) return
    if (present)
      throw errors.conflict('domain_taken', `${domain} already belongs to a drop of yours. Remove it there first.`)
    await queries.insertDomain(db, {
      id: newId('dom', clock.now()),
      domain,
      site_id: siteId,
      org_id: actor.orgId,
      redirect_to: redirectTo,
      reason: 'not_checked',
      verify_token: randomBytes(16).toString('hex'),
      next_check_at: now(),
      created_at: now(),
    })
  }

  async function requireRoom(db: Sql, actor: Actor, domain: string): Promise<void> {
    const plan = plans[(await queries.lockPlan(db, actor.orgId)) ?? 'free']
    if (plan.customDomains === 0) throw errors.planFeature('A custom domain')
    if (await queries.findClaim(db, actor.orgId, domain)) return
    if ((await queries.countDomains(db, actor.orgId)) >= plan.customDomains)
      throw errors.planLimit(`Your plan allows ${plan.customDomains} custom domains. Remove one, or upgrade.`)
  }

  async function look(row: DomainRow): Promise<Seen> {
    const facts = claimOf(row)
    const findings = await doctor.examine(facts)
    const verdict = rules.judgeDns(findings, facts)
    const mayProbe = asksCa && verdict.kind === 'proven' && findings.caa === 'allows'
    return { findings, verdict, probe: mayProbe ? await prober.probe(row.domain, findings.addresses) : 'not_needed' }
  }

  /** Caller has locked the name and the claim. */
  async function settle(db: Sql, row: DomainRow, seen: Seen): Promise<void> {
    const holder = await queries.findHolder(db, row.domain)
    const retry = decodeRetryState(await redis.hget(keys.acmeRetry, row.domain).catch(() => null))
    const decision = rules.decide({
      state: row.state,
      stopped: row.stopped_at !== null,
      verdict: seen.verdict,
      caa: seen.findings.caa,
      probe: seen.probe,
      heldElsewhere: holder !== undefined && holder.id !== row.id,
      certificateEndsMs: row.not_after?.getTime(),
      retry,
      nowMs: clock.now(),
    })
    if (decision.holds && holder && holder.id !== row.id) await dispossess(db, holder)
    const found = [...seen.findings.cnames, ...seen.findings.addresses][0] ?? retry?.last_error ?? ''
    await apply(db, row, decision, found)
    const mustHurry = rules.mayHurry(row.reason, decision)
    if (decision.wanted !== row.wanted || mustHurry) await setDomainWanted(db, row.domain, decision.wanted)
  }

  /** Another account has proven the name: what was served here is served there from now on. */
  async function dispossess(db: Sql, holder: DomainRow): Promise<void> {
    const decision: rules.Decision = { state: 'blocked', reason: 'held_elsewhere', holds: false, wanted: false }
    await apply(db, holder, decision, '')
    log.info({ domain: holder.domain, from: holder.org_id }, 'a domain has moved to another account')
  }

  /** Writes a decision and what the edges answer because of it. */
  async function apply(db: Sql, row: DomainRow, decision: rules.Decision, found: string): Promise<void> {
    const checks = decision.state === row.state && decision.reason === row.reason ? row.checks + 1 : 0
    const pause = rules.pauseBeforeNextCheck(
      decision,
      checks,
      clock.now() - row.created_at.getTime(),
      config.domainCheckMs,
    )
    const after = { ...row, state: decision.state, holds: decision.holds ?? row.holds }
    await queries.updateDomain(db, row.id, {
      state: decision.state,
      reason: decision.reason,
      detail: rules.explain(decision.reason, decision.state, claimOf(row), found),
      holds: after.holds,
      wanted: decision.wanted,
      checked_at: now(),
      next_check_at: pause === undefined ? null : new Date(clock.now() + pause),
      checks,
    })
    const before = rules.routeOfDomain(row, siteHost(row.slug, config.sitesDomain))
    const route = rules.routeOfDomain(after, siteHost(row.slug, config.sitesDomain))
    if (route && (!before || before.kind !== route.kind)) await setRoute(db, route)
    if (!route && before) await setRoute(db, { kind: 'none', host: row.domain })
  }

  async function check(id: string): Promise<void> {
    const before = await queries.lockDomain(sql, id)
    if (!before) return
    await mirror.learn(before.domain)
    const seen = await look(before)
    await transaction(sql, async (db) => {
      await queries.lockName(db, before.domain)
      const row = await queries.lockDomain(db, id)
      if (row) await settle(db, row, seen)
    })
  }

  /** DNS was right a moment ago, or nothing would have been ordered: an issued certificate is served without asking again. */
  async function arrived(name: string): Promise<void> {
    const holder = await queries.findHolder(sql, name)
    if (!holder) return
    if (holder.state !== 'issuing') await check(holder.id)
    else
      await transaction(sql, async (db) => {
        const row = await queries.lockDomain(db, holder.id)
        if (row?.state === 'issuing')
          await apply(db, row, { state: 'active', reason: null, holds: true, wanted: true }, '')
      })
    await propagate()
  }

  /** Everything of a domain goes: the claim, the route, the certificate. */
  async function release(db: Sql, row: DomainRow): Promise<void> {
    await queries.removeDomain(db, row.id, now())
    if (!row.holds) return
    if (row.wanted) await setDomainWanted(db, row.domain, false)
    await setRoute(db, { kind: 'none', host: row.domain })
  }

  return {
    count: (orgId: string): Promise<number> => queries.countDomains(sql, orgId),

    async list(actor: Actor, siteId: string): Promise<DomainView[]> {
      await requireOwnSite(sql, actor, siteId)
      const all = await queries.listDomains(sql, siteId)
      return all.filter(({ redirect_to }) => redirect_to === null).map((row) => view(row, all))
    },

    async get(actor: Actor, siteId: string, domain: string): Promise<DomainView> {
      const row = await requireDomain(sql, actor, siteId, domain)
      return viewOf(siteId, row.domain)
    },

    async add(actor: Actor, siteId: string, wanted: AddDomain): Promise<DomainView> {
      await requireOwnSite(sql, actor, siteId)
      const parsed = rules.parseDomain(wanted.domain, config)
      if ('problem' in parsed) throw errors.invalidRequest(`domain: ${parsed.problem}`)
      const { domain } = parsed
      const pair = wanted.pair === false ? undefined : rules.pairOf(domain)
      await transaction(sql, async (db) => {
        await requireRoom(db, actor, domain)
        await claim(db, actor, siteId, domain, null)
        const isPairFree = pair !== undefined && !(await queries.findClaim(db, actor.orgId, pair))
        if (isPairFree) await claim(db, actor, siteId, pair, domain)
        await audit(db, { actor, action: 'domain.add', subject: domain, detail: { site: siteId } })
      })
      return viewOf(siteId, domain)
    },

    async remove(actor: Actor, siteId: string, domain: string): Promise<{ pending: boolean }> {
      await transaction(sql, async (db) => {
        const row = await requireDomain(db, actor, siteId, domain)
        await queries.lockName(db, row.domain)
        const all = await queries.listDomains(db, siteId)
        for (const one of all.filter((other) => other.id === row.id || other.redirect_to === row.domain))
          await release(db, one)
        await audit(db, { actor, action: 'domain.remove', subject: row.domain, detail: { site: siteId } })
      })
      return propagate()
    },

    /** Looks now, and says what it found. */
    async check(actor: Actor, siteId: string, domain: string): Promise<DomainView> {
      const row = await requireDomain(sql, actor, siteId, domain)
      const pair = (await queries.listDomains(sql, siteId)).filter((other) => other.redirect_to === row.domain)
      const isFresh = (one: DomainRow): boolean => clock.now() - (one.checked_at?.getTime() ?? 0) < MIN_MANUAL_PAUSE_MS
      await Promise.all([row, ...pair].filter((one) => !isFresh(one)).map(({ id }) => check(id)))
      await propagate()
      return viewOf(siteId, row.domain)
    },

    /** Runs the checks that are due; safe on several controls at once. Returns how many there were. */
    async runDueChecks(): Promise<number> {
      const ids = await queries.takeDueDomains(sql, now(), new Date(clock.now() + CHECK_LEASE_MS), CHECKS_AT_ONCE)
      const results = await Promise.allSettled(ids.map((id) => check(id)))
      for (const result of results)
        if (result.status === 'rejected') log.warn({ err: result.reason as unknown }, 'a domain could not be checked')
      if (ids.length > 0) await propagate()
      return ids.length
    },

    /** The edges have a new certificate, or gave one up (''). Told by the change log. */
    async certificateChanged(name: string, sealed: string): Promise<void> {
      await mirror.keep(name, sealed)
      if (sealed !== '') await arrived(name)
    },

    /** What the log told while nobody listened. */
    async catchUp(): Promise<void> {
      for (const name of await mirror.catchUp()) await arrived(name)
    },

    mirror,

    /** Routes of a site's domains, for `refreshRoutes`. A site that is gone gives its domains up. */
    async routesOf(db: Sql, site: { id: string; slug: string; deleted_at: Date | null }): Promise<NewRoute[]> {
      const rows = await queries.listDomains(db, site.id)
      if (site.deleted_at) {
        for (const row of rows) await release(db, row)
        return []
      }
      return rows
        .map((row) => rules.routeOfDomain(row, siteHost(site.slug, config.sitesDomain)))
        .filter((route) => route !== undefined)
    },

    /** Fills an empty Redis with what the edges had put there; what is there already is newer. */
    republishCertificates: mirror.republish,

    /** The plan has ended: domains are no longer served, but nobody else gets them without proof. */
    async stop(db: Sql, orgId: string): Promise<void> {
      for (const row of await queries.domainsOfOrganisation(db, orgId)) {
        if (row.stopped_at) continue
        await queries.updateDomain(db, row.id, { stopped_at: now() })
        await apply(db, row, { state: 'blocked', reason: 'plan_ended', holds: undefined, wanted: false }, '')
        if (row.wanted) await setDomainWanted(db, row.domain, false)
      }
    },

    /** The plan is back: each domain is checked at once. */
    async resume(db: Sql, orgId: string): Promise<void> {
      for (const row of await queries.domainsOfOrganisation(db, orgId)) {
        if (!row.stopped_at) continue
        await queries.updateDomain(db, row.id, {
          stopped_at: null,
          state: 'awaiting_dns',
          reason: 'not_checked',
          detail: '',
          next_check_at: now(),
          checks: 0,
        })
      }
    },

    /** For operators: what the edges serve, and when it ends. Never a key. */
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

/** Where nothing is said, what the directory's address tells: Let's Encrypt, or a CA that goes by its own host. */
function caaIdentities({
  caaIdentities: given,
  acmeDirectoryUrl,
}: Pick<ControlConfig, 'caaIdentities' | 'acmeDirectoryUrl'>): readonly string[] {
  if (given.length > 0) return given.map((identity) => identity.toLowerCase())
  const host = acmeDirectoryUrl === undefined ? '' : (URL.parse(acmeDirectoryUrl)?.hostname ?? '')
  return host.endsWith('letsencrypt.org') ? ['letsencrypt.org'] : [host]
}
