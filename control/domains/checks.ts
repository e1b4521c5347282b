/**
 * How a domain's state moves: look at DNS, the way in and the CA's last word; decide in one transaction (rules.ts);
 * tell the edges; and show the new state when they serve it.
 */
import type { Redis } from 'ioredis'
import { decodeRetryState, type RetryState } from '../../shared/certificate-retry.ts'
import { MINUTE_MS, type Clock } from '../../shared/clock.ts'
import { siteHost } from '../../shared/hosts.ts'
import { keys } from '../../shared/keys.ts'
import type { Log } from '../../shared/log.ts'
import type { ControlConfig } from '../config.ts'
import { transaction, type Pool, type Sql } from '../database/sql.ts'
import { setDomainWanted, setRoute } from '../events/outbox.ts'
import { createDoctor } from './doctor.ts'
import { createProbe } from './probe.ts'
import * as queries from './queries.ts'
import type { DomainRow } from './queries.ts'
import * as rules from './rules.ts'

/** A control that dies during a check leaves the domain to others after this long. */
const CHECK_LEASE_MS = 2 * MINUTE_MS
const CHECKS_AT_ONCE = 8

export type ChecksConfig = Pick<
  ControlConfig,
  | 'sitesDomain'
  | 'dnsResolver'
  | 'acmeDirectoryUrl'
  | 'caaIdentities'
  | 'challengePort'
  | 'allowPrivateAddresses'
  | 'domainCheckMs'
>

interface ChecksDeps {
  sql: Pool
  redis: Redis
  clock: Clock
  log: Log
  config: ChecksConfig
  /** Brings a certificate to Postgres that the edges have but the log did not tell about. */
  learnCertificate(name: string): Promise<void>
  propagate(): Promise<{ pending: boolean }>
}

/** What a check has seen before it decides. */
interface Seen {
  readonly findings: rules.DnsFindings
  readonly verdict: rules.DnsVerdict
  readonly probe: rules.ProbeResult
  readonly retry: RetryState | undefined
}

/** A decision that is shown once every edge serves what it says. */
interface Unrevealed {
  readonly claim: DomainRow
  readonly decision: rules.Decision
  readonly found: string
}

export function claimOf(row: DomainRow, sitesDomain: string): rules.ClaimFacts {
  return { domain: row.domain, target: siteHost(row.dns_target, sitesDomain), verify_token: row.verify_token }
}

export function createChecks({ sql, redis, clock, log, config, learnCertificate, propagate }: ChecksDeps) {
  const asksCa = config.acmeDirectoryUrl !== undefined
  const doctor = createDoctor({ dnsResolver: config.dnsResolver, caaIdentities: caaIdentities(config), asksCa })
  const prober = createProbe({ redis, ...config })
  const now = (): Date => new Date(clock.now())

  async function look(row: DomainRow): Promise<Seen> {
    const facts = claimOf(row, config.sitesDomain)
    const findings = await doctor.examine(facts)
    const verdict = rules.judgeDns(findings, facts)
    const mayProbe = asksCa && verdict.kind === 'proven' && findings.caa === 'allows'
    const probe = mayProbe ? await prober.probe(row.domain, findings.addresses) : 'not_needed'
    const retry = decodeRetryState(await redis.hget(keys.acmeRetry, row.domain).catch(() => null))
    return { findings, verdict, probe, retry }
  }

  /** Caller has locked the claim. */
  async function settle(db: Sql, row: DomainRow, seen: Seen, isAsked: boolean): Promise<Unrevealed | undefined> {
    const holder = await queries.findHolder(db, row.domain)
    const { retry } = seen
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
    const mustHurry = rules.mayHurry({ before: row.reason, decision, retry, isAsked })
    if (decision.wanted !== row.wanted || mustHurry) await setDomainWanted(db, row.domain, decision.wanted)
    return apply(db, row, decision, found)
  }

  /** Another account has proven the name: what was served here is served there from now on. */
  async function dispossess(db: Sql, holder: DomainRow): Promise<void> {
    const decision: rules.Decision = { state: 'blocked', reason: 'held_elsewhere', holds: false, wanted: false }
    await show(db, holder, decision, '')
    log.info({ domain: holder.domain, from: holder.org_id }, 'a domain has moved to another account')
  }

  /**
   * Acts on a decision. A domain that is to be served for the first time gets its route now and shows its new state
   * only when every edge serves it (`reveal`): who reads `active` can visit.
   */
  async function apply(
    db: Sql,
    row: DomainRow,
    decision: rules.Decision,
    found: string,
  ): Promise<Unrevealed | undefined> {
    if (!rules.isServed(decision.state) || rules.isServed(row.state)) {
      await show(db, row, decision, found)
      return undefined
    }
    const holds = decision.holds ?? row.holds
    const lease = new Date(clock.now() + CHECK_LEASE_MS)
    await queries.updateDomain(db, row.id, { state: 'issuing', holds, wanted: decision.wanted, next_check_at: lease })
    const route = rules.routeOfDomain({ ...row, holds, state: decision.state }, siteHost(row.slug, config.sitesDomain))
    if (route) await setRoute(db, route)
    return { claim: row, decision, found }
  }

  async function reveal(unrevealed: Unrevealed | undefined): Promise<void> {
    await propagate()
    if (!unrevealed) return
    await transaction(sql, async (db) => {
      const row = await queries.lockClaim(db, unrevealed.claim)
      if (row && row.holds && !row.stopped_at && row.state === 'issuing')
        await show(db, row, unrevealed.decision, unrevealed.found)
    })
  }

  async function show(db: Sql, row: DomainRow, decision: rules.Decision, found: string): Promise<void> {
    const checks = decision.state === row.state && decision.reason === row.reason ? row.checks + 1 : 0
    const ageMs = clock.now() - row.created_at.getTime()
    const pause = rules.pauseBeforeNextCheck(decision, checks, ageMs, config.domainCheckMs)
    await queries.updateDomain(db, row.id, {
      state: decision.state,
      reason: decision.reason,
      detail: rules.explain(decision.reason, decision.state, claimOf(row, config.sitesDomain), found),
      holds: decision.holds ?? row.holds,
      wanted: decision.wanted,
      checked_at: now(),
      next_check_at: pause === undefined ? null : new Date(clock.now() + pause),
      checks,
    })
    const wasServed = row.holds && rules.isServed(row.state)
    const isServed = (decision.holds ?? row.holds) && rules.isServed(decision.state)
    if (wasServed && !isServed) await setRoute(db, { kind: 'none', host: row.domain })
  }

  async function check(id: string, isAsked = false): Promise<void> {
    const before = await queries.findById(sql, id)
    if (!before) return
    await learnCertificate(before.domain)
    const seen = await look(before)
    const unrevealed = await transaction(sql, async (db) => {
      const row = await queries.lockClaim(db, before)
      return row && settle(db, row, seen, isAsked)
    })
    await reveal(unrevealed)
  }

  /** DNS was right a moment ago, or nothing would have been ordered: an issued certificate is served without asking again. */
  async function arrived(name: string): Promise<void> {
    const holder = await queries.findHolder(sql, name)
    if (!holder) return
    if (holder.state !== 'issuing') return check(holder.id)
    const unrevealed = await transaction(sql, async (db) => {
      const row = await queries.lockClaim(db, holder)
      const decision: rules.Decision = { state: 'active', reason: null, holds: true, wanted: true }
      return row?.state === 'issuing' ? apply(db, row, decision, '') : undefined
    })
    await reveal(unrevealed)
  }

  return {
    check,
    arrived,
    show,

    /** Runs the checks that are due; safe on several controls at once. Returns how many there were. */
    async runDue(): Promise<number> {
      const ids = await queries.takeDueDomains(sql, now(), new Date(clock.now() + CHECK_LEASE_MS), CHECKS_AT_ONCE)
      const results = await Promise.allSettled(ids.map((id) => check(id)))
      for (const result of results)
        if (result.status === 'rejected') log.warn({ err: result.reason as unknown }, 'a domain could not be checked')
      return ids.length
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
