/**
 * Keeps every wanted custom domain in possession of a certificate. Runs in the primary process of each edge.
 *
 *   a domain is announced ─┐
 *   every `tickMs` ────────┴▶ due? ─▶ lock ─▶ still wanted? still due? may we try? ─▶ obtain ─▶ store, fenced
 *                                └─ held by another edge: nothing to do               └─ failed: retry later
 *
 * Nothing in here is ever started by a handshake or a visitor. A certificate that cannot be renewed stays in use:
 * only a domain that is no longer wanted loses its certificate.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { certificateFacts, type CertificateBundle } from '../shared/certificates/bundle.ts'
import type { FailureReason } from '../shared/certificates/retry.ts'
import { SECOND_MS, type Clock } from '../shared/running/clock.ts'
import type { Log } from '../shared/running/log.ts'
import type { Secrets } from '../shared/secrets/secrets.ts'
import type { OrderBudget } from './order-budget.ts'
import { acquireOrderLock, type OrderLock } from './order-lock.ts'
import {
  adviceIntervalMs,
  afterFailure,
  daysLeft,
  hurried,
  renewalDueAt,
  spreadOf,
  type Lifetime,
  type RenewalWindow,
  isForgettable,
} from './policy.ts'
import { IssueError, type CertificateSource } from './source.ts'
import { createCertificateStore } from './store.ts'

const DEFAULT_TICK_MS = 10 * SECOND_MS
/** A CA answers slowly, not in parallel for free; a burst of new domains must not take all sockets. */
const MAX_ORDERS_AT_ONCE = 8
const MAX_QUESTIONS_PER_TICK = 20
/** Domains that were announced before announcements said whose they are share one part of the budget. */
const UNKNOWN_ORGANISATION = 'unknown'

/** What happened, for metrics. */
export interface CertificateEvents {
  issued?(name: string, seconds: number): void
  renewed?(name: string, seconds: number): void
  failed?(name: string, reason: FailureReason): void
  /** Too many orders lately, of its organisation or in all. */
  postponed?(name: string): void
  revoked?(name: string): void
  /** After each look at everything: how many there are and how many days the nearest to its end has left. */
  surveyed?(summary: { certificates: number; wanted: number; fewestDaysLeft: number | undefined }): void
}

export interface IssuerDependencies {
  readonly redis: Redis
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
  readonly source: CertificateSource
  /** Where the source limits orders. */
  readonly budget?: OrderBudget | undefined
  readonly events?: CertificateEvents
  readonly tickMs?: number
  readonly lockTtlMs?: number
}

export interface Issuer {
  start(): void
  /** Resolves when no order is under way any more, or after `waitMs`; a later edge then takes over. */
  stop(waitMs?: number): Promise<void>
  /** The change log said so. An announcement of a wanted domain also means: try again now if you may. */
  onDomain(name: string, wanted: boolean): void
  /** The change log carried a new or removed certificate. */
  onCertificate(name: string): void
  /** One look at everything; also what the timer does. */
  tick(): Promise<void>
}

const ownFailure: Pick<IssueError, 'reason' | 'problem' | 'retryAfterMs'> = {
  reason: 'internal',
  problem: undefined,
  retryAfterMs: undefined,
}

interface Known {
  readonly lifetime: Lifetime
  /** The CA's word on its renewal, if it gave one, and when to ask for it again. */
  advice: { readonly window: RenewalWindow | undefined; readonly askAgainMs: number }
}

export function createIssuer(deps: IssuerDependencies): Issuer {
  const { redis, clock, log, source, events = {} } = deps
  const store = createCertificateStore(redis, deps.secrets)
  const known = new Map<string, Known>()
  const running = new Map<string, Promise<void>>()
  const waiting: string[] = []
  /** Names for which there was no room in the budget, and from when on there is. */
  const postponed = new Map<string, number>()
  let stopped = true
  let timer: NodeJS.Timeout | undefined

  const isDue = (name: string, { lifetime, advice }: Known): boolean =>
    clock.now() >= renewalDueAt(lifetime, spreadOf(name), advice.window)

  function note(name: string, bundle: CertificateBundle): Known {
    const { notBeforeMs, notAfterMs } = certificateFacts(bundle.cert)
    const entry: Known = { lifetime: { notBeforeMs, notAfterMs }, advice: { window: undefined, askAgainMs: 0 } }
    known.set(name, entry)
    return entry
  }

  /** At most one run per name in this process, and a bounded number in all. */
  function work(name: string): void {
    if (stopped || running.has(name)) return
    if (running.size >= MAX_ORDERS_AT_ONCE) {
      if (waiting.includes(name)) return
      // Renewals first: a certificate in use is worth more than a new one.
      const place = known.has(name) ? waiting.findIndex((other) => !known.has(other)) : -1
      waiting.splice(place < 0 ? waiting.length : place, 0, name)
      return
    }
    const run = attempt(name)
      .catch((error: unknown) => log.warn({ err: error, domain: name }, 'a certificate could not be looked after'))
      .finally(() => {
        running.delete(name)
        const next = waiting.shift()
        if (next !== undefined) work(next)
      })
    running.set(name, run)
  }

  async function attempt(name: string): Promise<void> {
    const lock = await acquireOrderLock(redis, name, deps.lockTtlMs)
    if (!lock) return
    try {
      const { wanted, organisation } = await store.domain(name)
      if (wanted) await provide(name, lock, organisation)
      else await giveUp(name, lock)
    } finally {
      await lock.release()
    }
  }

  async function provide(name: string, lock: OrderLock, organisation = UNKNOWN_ORGANISATION): Promise<void> {
    const previous = await usableBundle(name)
    if (previous) {
      const advice = known.get(name)?.advice
      const entry = note(name, previous)
      if (advice) entry.advice = advice
      if (!isDue(name, entry)) return
    }
    const retry = await store.retryState(name)
    if (retry && clock.now() < retry.next_attempt_ms) return
    const waitMs = await deps.budget?.take(organisation, previous ? 'renewal' : 'new')
    if (waitMs !== undefined) return postpone(name, organisation, waitMs)
    const startedMs = performance.now()
    try {
      const bundle = await source.obtain(name, previous)
      if (!(await store.save(name, bundle, lock))) {
        log.warn({ domain: name }, 'a certificate came too late: another edge has taken over')
        return
      }
      note(name, bundle)
      const seconds = (performance.now() - startedMs) / SECOND_MS
      events[previous ? 'renewed' : 'issued']?.(name, seconds)
      log.info({ domain: name, seconds }, previous ? 'certificate renewed' : 'certificate issued')
    } catch (error) {
      await fail(name, error)
    }
  }

  /** No failure of the name: no CA was asked. Other edges find out for themselves. */
  function postpone(name: string, organisation: string, waitMs: number): void {
    postponed.set(name, clock.now() + waitMs)
    events.postponed?.(name)
    log.warn({ domain: name, organisation, waitMs }, 'no order at the CA yet: too many lately')
  }

  async function fail(name: string, error: unknown): Promise<void> {
    const message = error instanceof Error ? error.message : String(error)
    const { reason, problem, retryAfterMs } = error instanceof IssueError ? error : ownFailure
    const state = afterFailure(await store.retryState(name), clock.now(), { reason, message, problem, retryAfterMs })
    await store.saveRetryState(name, state)
    events.failed?.(name, reason)
    log.warn({ domain: name, reason, detail: message, attempts: state.attempts }, 'no certificate yet')
  }

  /** A bundle that cannot be opened (another SECRET_KEY) is as good as none. */
  async function usableBundle(name: string): Promise<CertificateBundle | undefined> {
    try {
      return await store.bundle(name)
    } catch (error) {
      log.warn({ err: error, domain: name }, 'a stored certificate cannot be opened and is replaced')
      return undefined
    }
  }

  async function giveUp(name: string, lock: OrderLock): Promise<void> {
    const bundle = await usableBundle(name)
    if (!(await store.remove(name, lock))) return
    known.delete(name)
    if (!bundle || certificateFacts(bundle.cert).notAfterMs <= clock.now()) return
    try {
      await source.revoke(bundle)
      events.revoked?.(name)
      log.info({ domain: name }, 'certificate revoked and removed')
    } catch (error) {
      log.warn({ err: error, domain: name }, 'certificate removed, but the CA did not revoke it')
    }
  }

  async function survey(): Promise<void> {
    const domains = await store.domains()
    const retries = await store.retryStates()
    let fewestDaysLeft: number | undefined
    let wantedCount = 0
    const newNames: string[] = []
    for (const [name, { wanted }] of domains) {
      if (!wanted) {
        work(name)
        continue
      }
      wantedCount++
      const entry = known.get(name) ?? (await learn(name))
      if (entry) fewestDaysLeft = Math.min(fewestDaysLeft ?? Infinity, daysLeft(entry.lifetime, clock.now()))
      if (clock.now() < Math.max(retries.get(name)?.next_attempt_ms ?? 0, postponed.get(name) ?? 0)) continue
      if (!entry) newNames.push(name)
      else if (isDue(name, entry)) work(name)
    }
    for (const name of newNames) work(name)
    for (const name of known.keys()) if (!domains.get(name)?.wanted) known.delete(name)
    for (const [name, untilMs] of postponed) if (clock.now() >= untilMs) postponed.delete(name)
    // A name that is removed and added again has not failed less often: what is known of it outlives it for a while.
    for (const [name, retry] of retries)
      if (!domains.has(name) && isForgettable(retry, clock.now())) await store.forgetRetryState(name)
    events.surveyed?.({ certificates: known.size, wanted: wantedCount, fewestDaysLeft })
    await askForAdvice()
  }

  async function learn(name: string): Promise<Known | undefined> {
    const bundle = await usableBundle(name)
    return bundle && note(name, bundle)
  }

  /** A failed question leaves what was said before, and ends the round: a CA that is away must not hold up the rest. */
  async function askForAdvice(): Promise<void> {
    const due = [...known].filter(([, { advice }]) => advice.askAgainMs <= clock.now())
    for (const [name, entry] of due.slice(0, MAX_QUESTIONS_PER_TICK)) {
      entry.advice = { ...entry.advice, askAgainMs: clock.now() + adviceIntervalMs(undefined) }
      const bundle = await usableBundle(name)
      if (!bundle) continue
      try {
        const advice = await source.renewalAdvice(bundle)
        entry.advice = { window: advice?.window, askAgainMs: clock.now() + adviceIntervalMs(advice?.retryAfterMs) }
      } catch (error) {
        log.debug({ err: error, domain: name }, 'the CA gave no renewal information')
        return
      }
    }
  }

  let surveying: Promise<void> | undefined
  const tick = (): Promise<void> =>
    (surveying ??= survey()
      .catch((error: unknown) => log.debug({ err: error }, 'certificates could not be looked over; later again'))
      .finally(() => {
        surveying = undefined
      }))

  async function announced(name: string): Promise<void> {
    const retry = await store.retryState(name)
    if (retry) await store.saveRetryState(name, hurried(retry, clock.now()))
    work(name)
  }

  return {
    tick,
    start() {
      stopped = false
      timer = setInterval(() => void tick(), deps.tickMs ?? DEFAULT_TICK_MS)
      timer.unref()
      void tick()
    },
    async stop(waitMs = 5 * SECOND_MS) {
      stopped = true
      clearInterval(timer)
      waiting.length = 0
      const settled = Promise.allSettled([...running.values(), surveying])
      await Promise.race([settled, sleep(waitMs, undefined, { ref: false })])
    },
    onDomain(name, wanted) {
      if (!wanted) return work(name)
      announced(name).catch((error: unknown) =>
        log.debug({ err: error, domain: name }, 'Redis is away; the next look finds it'),
      )
    },
    onCertificate(name) {
      known.delete(name)
    },
  }
}
