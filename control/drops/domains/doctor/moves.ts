/** How a domain moves from state to state, inside the transaction that has locked it. */
import { MINUTE_MS, type Clock } from '../../../../shared/running/clock.ts'
import type { RetryState } from '../../../../shared/certificates/retry.ts'
import { siteHost } from '../../../../shared/http/hosts.ts'
import type { Log } from '../../../../shared/running/log.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import type { Sql } from '../../../ground/database/sql.ts'
import type { RoutingTransaction } from '../../../ground/routing/changes.ts'
import { setDomainWanted, setRoute, type NewRoute } from '../../../ground/routing/outbox.ts'
import { tellWebhooks, type WebhookEvent } from '../../../ground/routing/webhook-outbox.ts'
import type { DomainNotices } from '../notices.ts'
import * as queries from '../queries.ts'
import type { DomainChanges, DomainRow } from '../queries.ts'
import * as rules from '../rules.ts'
import { diagnose, type Diagnosis } from './diagnose.ts'
import {
  adviceOf,
  checksInARow,
  explainUnseen,
  firstAdviceOf,
  newToken,
  ownershipChanges,
  ownershipOf,
  wantedFor,
  type Installation,
  type Seen,
} from './judgement.ts'

/** A control that dies during a check leaves the domain to others after this long. */
export const CHECK_LEASE_MS = 2 * MINUTE_MS

export interface MovesContext {
  readonly clock: Clock
  readonly log: Log
  readonly config: Pick<ControlConfig, 'sitesDomain' | 'domainCheckMs'>
  readonly installation: Installation
  readonly notices: DomainNotices
  /** What an apex's A and AAAA records should say; empty when unknown. */
  serviceAddresses(): Promise<readonly string[]>
}

/** A decision that is shown once every edge serves what it says. */
export interface Unrevealed {
  readonly domain: DomainRow
  readonly decision: rules.Decision
  readonly advice: DomainChanges
}

/** Decides about a domain from what was seen, and acts on it. The caller has locked the domain. */
export async function conclude(
  context: MovesContext,
  tx: RoutingTransaction,
  locked: DomainRow,
  seen: Seen,
  isAsked: boolean,
): Promise<Unrevealed | undefined> {
  const { clock, config, installation } = context
  const holder = await queries.findHolder(tx, locked.domain)
  const other = holder && holder.id !== locked.id ? holder : undefined
  // The name has moved since the zone was read: what was read is history.
  if (other?.held_since && other.held_since.getTime() > seen.beganMs) {
    await queries.updateDomain(tx, locked.id, { next_check_at: new Date(clock.now() + config.domainCheckMs) })
    return undefined
  }
  // A plan that has ended neither takes a name nor loses it.
  const isIdle = locked.stopped_at !== null && !locked.holds
  const ownership = isIdle ? 'unproven' : ownershipOf(locked, holder, seen.observation, installation)
  const moved = ownershipChanges(locked, other, ownership, seen.observation, {
    installation,
    now: new Date(clock.now()),
  })
  const row: DomainRow = { ...locked, ...moved }
  const diagnosis = diagnose(seen.observation, wantedFor(row, ownership, seen, installation))
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
  if (other && ownership === 'takes_over') await dispossess(context, tx, other, row, decision)
  const isMended = locked.records.length > 0 && diagnosis.records.length === 0
  const hurries = rules.mayHurry({ before: row.reason, decision, retry, isAsked, isMended })
  if (decision.wanted !== row.wanted || hurries)
    await setDomainWanted(
      tx,
      row.domain,
      decision.wanted ? { wanted: true, organisation: row.org_id } : { wanted: false },
    )
  const advice = {
    ...moved,
    ...adviceOf(row, decision, diagnosis, retry, hurries, {
      authorities: installation.authorities,
      nowMs: clock.now(),
    }),
  }
  await tellOwner(context, tx, row, decision, diagnosis, retry)
  return apply(context, tx, locked, decision, advice)
}

async function tellOwner(
  { notices, clock }: MovesContext,
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
  context: MovesContext,
  tx: RoutingTransaction,
  loser: DomainRow,
  winner: DomainRow,
  decision: rules.Decision,
): Promise<void> {
  const { clock, log, notices, installation } = context
  const lost: DomainRow = {
    ...loser,
    verify_token: newToken(),
    transfer_token: newToken(),
    transfer_from: winner.id,
    is_cname_spent: true,
  }
  const { verify_token, transfer_token, transfer_from, is_cname_spent } = lost
  await show(
    context,
    tx,
    loser,
    { state: 'blocked', reason: 'held_elsewhere', holds: false, wanted: false },
    {
      verify_token,
      transfer_token,
      transfer_from,
      is_cname_spent,
      held_since: null,
      ...firstAdviceOf(lost, await context.serviceAddresses(), installation),
      warnings: [],
      next_try_at: null,
      detail: explainUnseen('held_elsewhere', loser.domain, installation.authorities),
    },
  )
  if (!rules.isServed(decision.state)) await setRoute(tx, { kind: 'none', host: loser.domain })
  if (loser.wanted && !decision.wanted) await setDomainWanted(tx, loser.domain, { wanted: false })
  // Its other half led here; under the lock of its own drop it is found out where it leads now.
  await queries.hurryPairOf(tx, loser, new Date(clock.now()))
  await notices.moved(tx, loser, winner)
  log.info({ domain: loser.domain, from: loser.org_id, to: winner.org_id }, 'a domain has moved to another account')
}

/**
 * Acts on a decision. A domain that is to be served for the first time gets its route now and shows its new state
 * only when every edge serves it (`reveal`): a caller who reads `active` can visit.
 */
export async function apply(
  context: MovesContext,
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
      next_check_at: new Date(context.clock.now() + CHECK_LEASE_MS),
    })
  } else await show(context, tx, row, decision, advice)
  await syncRoutes(tx, row.site_id, context.config.sitesDomain)
  return mustWait ? { domain: row, decision, advice } : undefined
}

/** What webhooks hear when a domain comes into this state. */
const TOLD_STATES: ReadonlyMap<rules.DomainState, WebhookEvent> = new Map([
  ['active', 'domain.ready'],
  ['failing', 'domain.failing'],
])

/** Writes a state that people see, and when the domain is looked at next. */
export async function show(
  { clock, config }: MovesContext,
  tx: Sql,
  row: DomainRow,
  decision: rules.Decision,
  advice: DomainChanges,
): Promise<void> {
  const told = TOLD_STATES.get(decision.state)
  if (told !== undefined && decision.state !== row.state)
    await tellWebhooks(tx, { type: told, siteId: row.site_id, at: new Date(clock.now()) })
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
    checked_at: new Date(clock.now()),
    next_check_at: pause === undefined ? null : new Date(clock.now() + pause),
    failing_since: decision.state === 'failing' ? (row.failing_since ?? new Date(clock.now())) : null,
    checks,
  })
}

/** Writes the routes of a drop's domains where they differ from what the edges were told. The site is locked. */
export async function syncRoutes(tx: RoutingTransaction, siteId: string, sitesDomain: string): Promise<void> {
  const rows = (await queries.listDomains(tx, siteId)).filter(({ holds }) => holds)
  const [first] = rows
  if (!first) return
  const told = await queries.routesAt(
    tx,
    rows.map(({ domain }) => domain),
  )
  const routes = rules.routesOfDomains(rows, siteHost(first.slug, sitesDomain))
  for (const { id, domain, reason } of rows) {
    const route: NewRoute = routes.find(({ host }) => host === domain) ?? { kind: 'none', host: domain }
    // Its plan is back, and it is about to be looked at: until then visitors see what they saw.
    if (route.kind === 'none' && reason === 'not_checked') continue
    // Another account may take the name at this moment; its route is not overwritten.
    if (!isTold(route, told.get(domain)) && (await queries.lockHolding(tx, id))) await setRoute(tx, route)
  }
}

/** The plan has ended: name and certificate stay, and visitors see a page that says so. The site is locked. */
export async function stop(context: MovesContext, tx: RoutingTransaction, row: DomainRow): Promise<void> {
  const { holds, wanted } = row
  const decision: rules.Decision = { state: 'blocked', reason: 'plan_ended', holds, wanted }
  const detail = explainUnseen('plan_ended', row.domain, context.installation.authorities)
  const stopped_at = new Date(context.clock.now())
  await show(context, tx, row, decision, { stopped_at, detail, records: [], alternative: null, warnings: [] })
  await syncRoutes(tx, row.site_id, context.config.sitesDomain)
}

function isTold(route: NewRoute, told: { kind: string; to?: string } | undefined): boolean {
  if (!told) return route.kind === 'none'
  return told.kind === route.kind && told.to === ('to' in route ? route.to : undefined)
}
