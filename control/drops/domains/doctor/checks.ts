/**
 * How a domain's state moves: look at DNS, the way in and the CA's last word; decide in one transaction (ownership.ts,
 * diagnose.ts, ../rules.ts); tell the edges; and show the new state when they serve it.
 */
import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { decodeRetryState, type RetryState } from '../../../../shared/certificate-retry.ts'
import { MINUTE_MS, type Clock } from '../../../../shared/clock.ts'
import { siteHost } from '../../../../shared/hosts.ts'
import { keys } from '../../../../shared/keys.ts'
import type { Log } from '../../../../shared/log.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import { transaction, type Pool, type Sql } from '../../../ground/database/sql.ts'
import {
  changeRoutes,
  type Changed,
  type RouteChanges,
  type RoutingTransaction,
} from '../../../ground/routing/changes.ts'
import { setDomainWanted, setRoute, type NewRoute } from '../../../ground/routing/outbox.ts'
import { diagnose, type Diagnosis, type Wanted } from './diagnose.ts'
import type { Dns } from '../dns/dns.ts'
import type { DomainNotices } from '../notices.ts'
import { observe, type Observation } from '../dns/observe.ts'
import { evidenceOf, isAliasFresh, judgeOwnership, transferValue, verifyValue, type Ownership } from './ownership.ts'
import { createProbe } from '../dns/probe.ts'
import * as queries from '../queries.ts'
import type { DomainChanges, DomainRow } from '../queries.ts'
import * as rules from '../rules.ts'
import { explain } from './words.ts'

/** A control that dies during a check leaves the domain to others after this long. */
const CHECK_LEASE_MS = 2 * MINUTE_MS
const CHECKS_AT_ONCE = 8

export type ChecksConfig = Pick<
  ControlConfig,
  | 'sitesDomain'
  | 'acmeDirectoryUrl'
  | 'caaIdentities'
  | 'challengePort'
  | 'allowPrivateAddresses'
  | 'allowLoopback'
  | 'domainCheckMs'
>

interface ChecksDependencies {
  sql: Pool
  redis: Redis
  dns: Dns
  clock: Clock
  log: Log
  config: ChecksConfig
  notices: DomainNotices
  /** What an apex's A and AAAA records should say; empty when unknown. */
  serviceAddresses(): Promise<readonly string[]>
  /** Brings a certificate to Postgres that the edges have but the log did not tell about. */
  learnCertificate(name: string): Promise<void>
  propagate(changes: RouteChanges): Promise<{ pending: boolean }>
}

export interface Checks {
  /** A look that begins after the call: no caller is answered with what was seen before. */
  checkNow(id: string): Promise<void>
  /** The edges have a certificate for the name. */
  arrived(name: string): Promise<void>
  /** Runs the checks that are due; safe on several controls at once. Returns how many there were. */
  runDue(): Promise<number>
  /** Writes the routes of a drop's domains where they differ from what the edges were told. The site is locked. */
  syncRoutes(tx: RoutingTransaction, siteId: string): Promise<void>
  /** The plan has ended: name and certificate stay, and visitors see a page that says so. The site is locked. */
  stop(tx: RoutingTransaction, row: DomainRow): Promise<void>
  /** What a name has to show before anything was looked at. */
  firstAdvice(row: DomainRow): Promise<Pick<Diagnosis, 'records' | 'alternative'>>
}

/** What a check has seen before it decides. */
interface Seen {
  readonly observation: Observation
  readonly beganMs: number
  readonly serviceAddresses: readonly string[]
  readonly retry: RetryState | undefined
}

/** A decision that is shown once every edge serves what it says. */
interface Unrevealed {
  readonly domain: DomainRow
  readonly decision: rules.Decision
  readonly advice: DomainChanges
}

export function newToken(): string {
  return randomBytes(16).toString('hex')
}

export function createChecks(deps: ChecksDependencies): Checks {
  const { sql, redis, dns, clock, log, config, notices, propagate } = deps
  const asksCa = config.acmeDirectoryUrl !== undefined
  const authorities = caaIdentities(config)
  const prober = createProbe({ redis, ...config })
  const now = (): Date => new Date(clock.now())

  const proofOf = (row: DomainRow) => ({
    dnsTarget: siteHost(row.dns_target, config.sitesDomain),
    token: row.verify_token,
    transferToken: row.transfer_token,
    isCnameSpent: row.is_cname_spent,
  })

  function ownershipOf(row: DomainRow, holder: DomainRow | undefined, zone: Observation): Ownership {
    return judgeOwnership({
      proof: proofOf(row),
      isHolder: row.holds,
      holder: holder && holder.id !== row.id ? proofOf(holder) : undefined,
      zone,
    })
  }

  function wantedFor(
    row: DomainRow,
    ownership: Ownership,
    seen: Pick<Seen, 'observation' | 'serviceAddresses'>,
  ): Wanted {
    const isTransfer = ownership === 'held_elsewhere'
    const moved = transferValue(row.verify_token)
    const proof = seen.observation.txts?.includes(moved) ? moved : verifyValue(row.verify_token)
    return {
      domain: row.domain,
      target: proofOf(row).dnsTarget,
      serviceAddresses: seen.serviceAddresses,
      proof: isTransfer && row.transfer_token !== null ? transferValue(row.transfer_token) : proof,
      isProven: ownership === 'holds' || ownership === 'takes_over',
      isTransfer,
      authorities,
      challengePort: config.challengePort,
    }
  }

  async function look(row: DomainRow): Promise<Seen> {
    const beganMs = clock.now()
    const [zone, serviceAddresses, holder] = await Promise.all([
      observe(dns, row.domain, asksCa),
      deps.serviceAddresses(),
      queries.findHolder(sql, row.domain),
    ])
    const ownership = ownershipOf(row, holder, zone)
    // Only at a proven name: no owner makes us look at others' addresses.
    const mayProbe = asksCa && (ownership === 'holds' || ownership === 'takes_over') && zone.addresses.length > 0
    const probes = mayProbe ? await prober.probe(row.domain, zone.addresses) : []
    const retry = decodeRetryState(await redis.hget(keys.acmeRetry, row.domain).catch(() => null))
    return { observation: { ...zone, probes }, beganMs, serviceAddresses, retry }
  }

  /** Caller has locked the domain. */
  async function conclude(
    tx: RoutingTransaction,
    locked: DomainRow,
    seen: Seen,
    isAsked: boolean,
  ): Promise<Unrevealed | undefined> {
    const holder = await queries.findHolder(tx, locked.domain)
    const other = holder && holder.id !== locked.id ? holder : undefined
    // The name has moved since the zone was read: what was read is history.
    if (other?.held_since && other.held_since.getTime() > seen.beganMs) {
      await queries.updateDomain(tx, locked.id, { next_check_at: new Date(clock.now() + config.domainCheckMs) })
      return undefined
    }
    // A plan that has ended neither takes a name nor loses it.
    const isIdle = locked.stopped_at !== null && !locked.holds
    const ownership = isIdle ? 'unproven' : ownershipOf(locked, holder, seen.observation)
    const moved = ownershipChanges(locked, other, ownership, seen.observation)
    const row: DomainRow = { ...locked, ...moved }
    const diagnosis = diagnose(seen.observation, wantedFor(row, ownership, seen))
    const { retry } = seen
    const decision = rules.decide({
      state: row.state,
      stopped: row.stopped_at !== null,
      wanted: row.wanted,
      diagnosis,
      ownership,
      certificateEndsMs: row.not_after?.getTime(),
      retry,
      nowMs: clock.now(),
    })
    if (other && ownership === 'takes_over') await dispossess(tx, other, row, decision)
    const isMended = locked.records.length > 0 && diagnosis.records.length === 0
    const hurries = rules.mayHurry({ before: row.reason, decision, retry, isAsked, isMended })
    if (decision.wanted !== row.wanted || hurries)
      await setDomainWanted(
        tx,
        row.domain,
        decision.wanted ? { wanted: true, organisation: row.org_id } : { wanted: false },
      )
    const advice = { ...moved, ...adviceOf(row, decision, diagnosis, retry, hurries) }
    await tellOwner(tx, row, decision, diagnosis, retry)
    return apply(tx, locked, decision, advice)
  }

  function ownershipChanges(
    row: DomainRow,
    other: DomainRow | undefined,
    ownership: Ownership,
    zone: Observation,
  ): DomainChanges {
    const noTransfer = { transfer_token: null, transfer_from: null }
    const alias = row.is_cname_spent && isAliasFresh(proofOf(row), zone) ? { is_cname_spent: false } : {}
    switch (ownership) {
      case 'takes_over': {
        const token = evidenceOf(proofOf(row), zone).transfer ? row.transfer_token : null
        return { ...noTransfer, held_since: now(), ...(token !== null && { verify_token: token }) }
      }
      case 'holds':
        return row.holds ? {} : { ...noTransfer, held_since: now() }
      case 'held_elsewhere':
        return !other || row.transfer_from === other.id
          ? alias
          : { ...alias, transfer_token: newToken(), transfer_from: other.id }
      case 'unproven':
        return { ...alias, ...noTransfer }
      default:
        return ownership satisfies never
    }
  }

  function adviceOf(
    row: DomainRow,
    decision: rules.Decision,
    diagnosis: Diagnosis,
    retry: RetryState | undefined,
    hurries: boolean,
  ): DomainChanges {
    const nextTryMs = rules.nextTryOf(decision, retry, hurries, clock.now())
    const isRepaired = diagnosis.reason === null && retry !== undefined
    const hasLines = diagnosis.records.length > 0
    const particulars = { domain: row.domain, about: diagnosis.about, retry, nextTryMs, hasLines, authorities }
    return {
      detail: explain(decision.reason, decision.state, isRepaired, particulars),
      records: diagnosis.records,
      alternative: diagnosis.alternative,
      warnings: diagnosis.warnings,
      next_try_at: nextTryMs === undefined ? null : new Date(nextTryMs),
    }
  }

  /** Of a domain that was not looked at. */
  function plainly(reason: rules.DomainReason, domain: string): string {
    const particulars = { domain, about: '', retry: undefined, nextTryMs: undefined, hasLines: false, authorities }
    return explain(reason, 'blocked', false, particulars)
  }

  async function tellOwner(
    tx: Sql,
    row: DomainRow,
    decision: rules.Decision,
    { about }: Diagnosis,
    retry: RetryState | undefined,
  ): Promise<void> {
    const { reason } = decision
    if (row.failing_since && reason !== null && rules.hasStoppedPointing(decision, checksInARow(row, decision)))
      await notices.stoppedPointing(tx, row, { since: row.failing_since, reason, about })
    const days = rules.renewalNotice(retry, row.not_after?.getTime(), clock.now())
    if (days !== undefined && retry && row.not_after && decision.holds)
      await notices.renewalFails(tx, row, { days, endsAt: row.not_after, cause: retry.last_error })
  }

  /** Another account has proven the name: what was served here is served there from now on. */
  async function dispossess(
    tx: RoutingTransaction,
    loser: DomainRow,
    winner: DomainRow,
    decision: rules.Decision,
  ): Promise<void> {
    const lost: DomainRow = {
      ...loser,
      verify_token: newToken(),
      transfer_token: newToken(),
      transfer_from: winner.id,
      is_cname_spent: true,
    }
    const { verify_token, transfer_token, transfer_from, is_cname_spent } = lost
    await show(
      tx,
      loser,
      { state: 'blocked', reason: 'held_elsewhere', holds: false, wanted: false },
      {
        verify_token,
        transfer_token,
        transfer_from,
        is_cname_spent,
        held_since: null,
        ...(await firstAdvice(lost)),
        warnings: [],
        next_try_at: null,
        detail: plainly('held_elsewhere', loser.domain),
      },
    )
    if (!rules.isServed(decision.state)) await setRoute(tx, { kind: 'none', host: loser.domain })
    if (loser.wanted && !decision.wanted) await setDomainWanted(tx, loser.domain, { wanted: false })
    // Its other half led here; under the lock of its own drop it is found out where it leads now.
    await queries.hurryPairOf(tx, loser, now())
    await notices.moved(tx, loser, winner)
    log.info({ domain: loser.domain, from: loser.org_id, to: winner.org_id }, 'a domain has moved to another account')
  }

  async function firstAdvice(row: DomainRow): Promise<Pick<Diagnosis, 'records' | 'alternative'>> {
    const seen = { observation: unseen, serviceAddresses: await deps.serviceAddresses() }
    const ownership = row.holds ? 'holds' : row.transfer_token === null ? 'unproven' : 'held_elsewhere'
    const { records, alternative } = diagnose(unseen, wantedFor(row, ownership, seen))
    return { records, alternative }
  }

  /**
   * Acts on a decision. A domain that is to be served for the first time gets its route now and shows its new state
   * only when every edge serves it (`reveal`): a caller who reads `active` can visit.
   */
  async function apply(
    tx: RoutingTransaction,
    row: DomainRow,
    decision: rules.Decision,
    advice: DomainChanges,
  ): Promise<Unrevealed | undefined> {
    const mustWait = rules.isServed(decision.state) && !rules.isServed(row.state)
    if (mustWait) {
      await queries.updateDomain(tx, row.id, {
        ...advice,
        state: 'issuing',
        holds: decision.holds,
        wanted: decision.wanted,
        revealing: true,
        next_check_at: new Date(clock.now() + CHECK_LEASE_MS),
      })
    } else await show(tx, row, decision, advice)
    await syncRoutes(tx, row.site_id)
    return mustWait ? { domain: row, decision, advice } : undefined
  }

  async function reveal({ value: unrevealed, changes }: Changed<Unrevealed | undefined>): Promise<void> {
    await propagate(changes)
    if (!unrevealed) return
    await transaction(sql, async (tx) => {
      const row = await queries.lockDomain(tx, unrevealed.domain)
      if (row && row.holds && !row.stopped_at && row.state === 'issuing' && row.revealing)
        await show(tx, row, unrevealed.decision, unrevealed.advice)
    })
  }

  /** Checks in a row that ended alike; they space out. */
  function checksInARow(row: DomainRow, decision: Pick<rules.Decision, 'state' | 'reason'>): number {
    return decision.state === row.state && decision.reason === row.reason ? row.checks + 1 : 0
  }

  async function show(tx: Sql, row: DomainRow, decision: rules.Decision, advice: DomainChanges): Promise<void> {
    const checks = checksInARow(row, decision)
    const ageMs = clock.now() - row.created_at.getTime()
    const pause = rules.pauseBeforeNextCheck(decision, checks, ageMs, config.domainCheckMs)
    await queries.updateDomain(tx, row.id, {
      ...advice,
      state: decision.state,
      reason: decision.reason,
      holds: decision.holds,
      wanted: decision.wanted,
      revealing: false,
      checked_at: now(),
      next_check_at: pause === undefined ? null : new Date(clock.now() + pause),
      failing_since: decision.state === 'failing' ? (row.failing_since ?? now()) : null,
      checks,
    })
  }

  async function syncRoutes(tx: RoutingTransaction, siteId: string): Promise<void> {
    const rows = (await queries.listDomains(tx, siteId)).filter(({ holds }) => holds)
    const [first] = rows
    if (!first) return
    const told = await queries.routesAt(
      tx,
      rows.map(({ domain }) => domain),
    )
    const routes = rules.routesOfDomains(rows, siteHost(first.slug, config.sitesDomain))
    for (const { id, domain, reason } of rows) {
      const route: NewRoute = routes.find(({ host }) => host === domain) ?? { kind: 'none', host: domain }
      // Its plan is back, and it is about to be looked at: until then visitors see what they saw.
      if (route.kind === 'none' && reason === 'not_checked') continue
      // Another account may take the name at this moment; its route is not overwritten.
      if (!isTold(route, told.get(domain)) && (await queries.lockHolding(tx, id))) await setRoute(tx, route)
    }
  }

  async function check(id: string, isAsked = false): Promise<void> {
    const before = await queries.findById(sql, id)
    if (!before) return
    await deps.learnCertificate(before.domain)
    const seen = await look(before)
    const changed = await changeRoutes(sql, async (tx) => {
      const row = await queries.lockDomain(tx, before)
      return row && conclude(tx, row, seen, isAsked)
    })
    await reveal(changed)
  }

  const running = new Map<string, Promise<void>>()
  const waiting = new Map<string, Promise<void>>()

  return {
    syncRoutes,
    firstAdvice,

    async stop(tx, row) {
      const { holds, wanted } = row
      const decision: rules.Decision = { state: 'blocked', reason: 'plan_ended', holds, wanted }
      const detail = plainly('plan_ended', row.domain)
      await show(tx, row, decision, { stopped_at: now(), detail, records: [], alternative: null, warnings: [] })
      await syncRoutes(tx, row.site_id)
    },

    /** One after the other; asking while one runs shares the next, which begins after all of them have asked. */
    checkNow(id) {
      const next = waiting.get(id)
      if (next) return next
      const previous = running.get(id)
      const begin = (): Promise<void> => {
        waiting.delete(id)
        const run = check(id, true).finally(() => {
          if (running.get(id) === run) running.delete(id)
        })
        running.set(id, run)
        return run
      }
      if (!previous) return begin()
      const queued = previous.catch(() => {}).then(begin)
      waiting.set(id, queued)
      return queued
    },

    /** DNS was right a moment ago, or nothing would have been ordered: an issued certificate is served without asking again. */
    async arrived(name) {
      const holder = await queries.findHolder(sql, name)
      if (!holder) return
      if (holder.state !== 'issuing') return check(holder.id)
      const changed = await changeRoutes(sql, async (tx) => {
        const row = await queries.lockDomain(tx, holder)
        const decision: rules.Decision = { state: 'active', reason: null, holds: true, wanted: true }
        return row?.state === 'issuing' ? apply(tx, row, decision, { detail: '', next_try_at: null }) : undefined
      })
      await reveal(changed)
    },

    async runDue() {
      const ids = await queries.takeDueDomains(sql, now(), new Date(clock.now() + CHECK_LEASE_MS), CHECKS_AT_ONCE)
      const results = await Promise.allSettled(ids.map((id) => check(id)))
      for (const result of results)
        if (result.status === 'rejected') log.warn({ err: result.reason as unknown }, 'a domain could not be checked')
      return ids.length
    },
  }
}

/** A zone with nothing in it. */
const unseen: Observation = {
  chain: [],
  chainEnd: 'name',
  addresses: [],
  failure: undefined,
  txts: [],
  caa: { kind: 'none' },
  strays: [],
  probes: [],
}

function isTold(route: NewRoute, told: { kind: string; to?: string } | undefined): boolean {
  if (!told) return route.kind === 'none'
  return told.kind === route.kind && told.to === ('to' in route ? route.to : undefined)
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
