/**
 * How a domain's state moves: look at DNS, the way in and the CA's last word; decide in one transaction (moves.ts with
 * judgement.ts, ownership.ts, diagnose.ts and ../rules.ts); tell the edges; and show the new state when they serve it.
 */
import type { Redis } from 'ioredis'
import { decodeRetryState } from '../../../../shared/certificates/retry.ts'
import { keys } from '../../../../shared/redis/keys.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import { transaction, type Pool } from '../../../ground/database/sql.ts'
import {
  changeRoutes,
  type Changed,
  type RouteChanges,
  type RoutingTransaction,
} from '../../../ground/routing/changes.ts'
import type { Dns } from '../dns/dns.ts'
import { visitedName } from '../dns/names.ts'
import { observe } from '../dns/observe.ts'
import { createProbe } from '../dns/probe.ts'
import * as queries from '../queries.ts'
import type { DomainRow } from '../queries.ts'
import type * as rules from '../rules.ts'
import type { Diagnosis } from './diagnose.ts'
import { firstAdviceOf, installationOf, ownershipOf, type Seen } from './judgement.ts'
import { apply, CHECK_LEASE_MS, conclude, show, stop, syncRoutes, type MovesContext, type Unrevealed } from './moves.ts'

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

interface ChecksDependencies extends Omit<MovesContext, 'config' | 'installation'> {
  sql: Pool
  redis: Redis
  dns: Dns
  config: ChecksConfig
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

export function createChecks(deps: ChecksDependencies): Checks {
  const { sql, redis, dns, clock, log, config, propagate } = deps
  const asksCa = config.acmeDirectoryUrl !== undefined
  const prober = createProbe({ redis, ...config })
  const installation = installationOf(config)
  const context: MovesContext = { ...deps, installation }

  async function look(row: DomainRow): Promise<Seen> {
    const beganMs = clock.now()
    const [zone, serviceAddresses, holder] = await Promise.all([
      observe(dns, row.domain, asksCa),
      deps.serviceAddresses(),
      queries.findHolder(sql, row.domain),
    ])
    const ownership = ownershipOf(row, holder, zone, installation)
    // Only at a proven name: no owner makes us look at others' addresses.
    const mayProbe = asksCa && (ownership === 'holds' || ownership === 'takes_over') && zone.addresses.length > 0
    const probes = mayProbe ? await prober.probe(visitedName(row.domain), zone.addresses) : []
    const retry = decodeRetryState(await redis.hget(keys.acmeRetry, row.domain).catch(() => null))
    return { observation: { ...zone, probes }, beganMs, serviceAddresses, retry }
  }

  async function reveal({ value: unrevealed, changes }: Changed<Unrevealed | undefined>): Promise<void> {
    await propagate(changes)
    if (!unrevealed) return
    await transaction(sql, async (tx) => {
      const row = await queries.lockDomain(tx, unrevealed.domain)
      if (row && row.holds && !row.stopped_at && row.state === 'issuing' && row.revealing)
        await show(context, tx, row, unrevealed.decision, unrevealed.advice)
    })
  }

  async function check(id: string, isAsked = false): Promise<void> {
    const before = await queries.findById(sql, id)
    if (!before) return
    await deps.learnCertificate(before.domain)
    const seen = await look(before)
    const changed = await changeRoutes(sql, async (tx) => {
      const row = await queries.lockDomain(tx, before)
      return row && conclude(context, tx, row, seen, isAsked)
    })
    await reveal(changed)
  }

  return {
    syncRoutes: (tx, siteId) => syncRoutes(tx, siteId, config.sitesDomain),
    firstAdvice: async (row) => firstAdviceOf(row, await deps.serviceAddresses(), installation),
    stop: (tx, row) => stop(context, tx, row),
    checkNow: latest((id) => check(id, true)),

    // DNS was right a moment ago, or nothing would have been ordered: an issued certificate is served without asking again.
    async arrived(name) {
      const holder = await queries.findHolder(sql, name)
      if (!holder) return
      if (holder.state !== 'issuing') return check(holder.id)
      const changed = await changeRoutes(sql, async (tx) => {
        const row = await queries.lockDomain(tx, holder)
        const decision: rules.Decision = { state: 'active', reason: null, holds: true, wanted: true }
        return row?.state === 'issuing'
          ? apply(context, tx, row, decision, { detail: '', next_try_at: null })
          : undefined
      })
      await reveal(changed)
    },

    async runDue() {
      const ids = await queries.takeDueDomains(
        sql,
        new Date(clock.now()),
        new Date(clock.now() + CHECK_LEASE_MS),
        CHECKS_AT_ONCE,
      )
      const results = await Promise.allSettled(ids.map((id) => check(id)))
      for (const result of results)
        if (result.status === 'rejected') log.warn({ err: result.reason as unknown }, 'a domain could not be checked')
      return ids.length
    },
  }
}

/** Runs of one id happen one after the other; asking while one runs shares the next, which begins after all have asked. */
function latest(run: (id: string) => Promise<void>): (id: string) => Promise<void> {
  const running = new Map<string, Promise<void>>()
  const waiting = new Map<string, Promise<void>>()
  return (id) => {
    const next = waiting.get(id)
    if (next) return next
    const previous = running.get(id)
    const begin = (): Promise<void> => {
      waiting.delete(id)
      const begun = run(id).finally(() => {
        if (running.get(id) === begun) running.delete(id)
      })
      running.set(id, begun)
      return begun
    }
    if (!previous) return begin()
    const queued = previous.catch(() => {}).then(begin)
    waiting.set(id, queued)
    return queued
  }
}
