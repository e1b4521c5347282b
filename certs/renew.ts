/**
 * Keeps every wanted custom domain, and the service's own names where they are ours to get, in possession of a
 * certificate. Runs in the primary process of each edge.
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
import { OWN_ORGANISATION } from '../shared/certificates/own-names.ts'
import type { FailureReason } from '../shared/certificates/retry.ts'
import { SECOND_MS, type Clock } from '../shared/running/clock.ts'
import type { Log } from '../shared/running/log.ts'
import type { DomainWish } from '../shared/redis/stream.ts'
import type { Secrets } from '../shared/secrets/secrets.ts'
import type { OrderBudget } from './orders/order-budget.ts'
import { acquireOrderLock, type OrderLock } from './orders/order-lock.ts'
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
import { createCertificateStore, type CertificateStore } from './store.ts'

const DEFAULT_TICK_MS = 10 * SECOND_MS
const BEGIN_AGAIN_MS = 300
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
  /** Names of the service that are wanted whatever Redis says (own-names.ts). */
  readonly ownNames?: readonly string[]
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

/** The service's own names are never given up. */
const OWN_WISH: DomainWish = { wanted: true, organisation: OWN_ORGANISATION }

const ownFailure: Pick<IssueError, 'reason' | 'problem' | 'retryAfterMs' | 'hasAnswered'> = {
  reason: 'internal',
  problem: undefined,
  retryAfterMs: undefined,
  hasAnswered: true,
}

interface Known {
  readonly lifetime: Lifetime
  /** The CA's word on its renewal, if it gave one, and when to ask for it again. */
  advice: { readonly window: RenewalWindow | undefined; readonly askAgainMs: number }
}

export function createIssuer(deps: IssuerDependencies): Issuer {
  return new CertificateIssuer(deps)
}

class CertificateIssuer implements Issuer {
  readonly #deps: IssuerDependencies
  readonly #clock: Clock
  readonly #log: Log
  readonly #source: CertificateSource
  readonly #events: CertificateEvents
  readonly #store: CertificateStore
  readonly #known = new Map<string, Known>()
  readonly #running = new Map<string, Promise<void>>()
  readonly #waiting: string[] = []
  /** Names for which there was no room in the budget, and from when on there is. */
  readonly #postponed = new Map<string, number>()
  /** Whoever starts an edge may have mended what stood in the way of the service's own names. */
  #isBeginning = true
  #isStopped = true
  #timer: NodeJS.Timeout | undefined
  #surveying: Promise<void> | undefined

  constructor(deps: IssuerDependencies) {
    this.#deps = deps
    this.#clock = deps.clock
    this.#log = deps.log
    this.#source = deps.source
    this.#events = deps.events ?? {}
    this.#store = createCertificateStore(deps.redis, deps.secrets)
  }

  start(): void {
    this.#isStopped = false
    this.#timer = setInterval(() => void this.tick(), this.#deps.tickMs ?? DEFAULT_TICK_MS)
    this.#timer.unref()
    void this.tick()
  }

  async stop(waitMs = 5 * SECOND_MS): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#timer)
    this.#waiting.length = 0
    const ended = Promise.allSettled([...this.#running.values(), this.#surveying])
    await Promise.race([ended, sleep(waitMs, undefined, { ref: false })])
  }

  onDomain(name: string, wanted: boolean): void {
    if (!wanted) return this.#work(name)
    this.#announced(name).catch((error: unknown) =>
      this.#log.debug({ err: error, domain: name }, 'Redis is away; the next look finds it'),
    )
  }

  onCertificate(name: string): void {
    this.#known.delete(name)
  }

  tick(): Promise<void> {
    this.#surveying ??= this.#survey()
      .catch((error: unknown) => {
        this.#log.debug({ err: error }, 'certificates could not be looked over; later again')
        // Redis is not connected yet when an edge starts.
        if (this.#isBeginning && !this.#isStopped) setTimeout(() => void this.tick(), BEGIN_AGAIN_MS).unref()
      })
      .finally(() => {
        this.#surveying = undefined
      })
    return this.#surveying
  }

  #isOwn(name: string): boolean {
    return this.#deps.ownNames?.includes(name) === true
  }

  #isDue(name: string, { lifetime, advice }: Known): boolean {
    return this.#clock.now() >= renewalDueAt(lifetime, spreadOf(name), advice.window)
  }

  #note(name: string, bundle: CertificateBundle): Known {
    const { notBeforeMs, notAfterMs } = certificateFacts(bundle.cert)
    const entry: Known = { lifetime: { notBeforeMs, notAfterMs }, advice: { window: undefined, askAgainMs: 0 } }
    this.#known.set(name, entry)
    return entry
  }

  /** At most one run per name in this process, and a bounded number in all. */
  #work(name: string): void {
    if (this.#isStopped || this.#running.has(name)) return
    if (this.#running.size >= MAX_ORDERS_AT_ONCE) {
      if (this.#waiting.includes(name)) return
      // Renewals first: a certificate in use is worth more than a new one.
      const place = this.#known.has(name) ? this.#waiting.findIndex((other) => !this.#known.has(other)) : -1
      this.#waiting.splice(place < 0 ? this.#waiting.length : place, 0, name)
      return
    }
    const run = this.#attempt(name)
      .catch((error: unknown) =>
        this.#log.warn({ err: error, domain: name }, 'a certificate could not be looked after'),
      )
      .finally(() => {
        this.#running.delete(name)
        const next = this.#waiting.shift()
        if (next !== undefined) this.#work(next)
      })
    this.#running.set(name, run)
  }

  async #attempt(name: string): Promise<void> {
    const lock = await acquireOrderLock(this.#deps.redis, name, this.#deps.lockTtlMs)
    if (!lock) return
    try {
      const { wanted, organisation } = this.#isOwn(name) ? OWN_WISH : await this.#store.domain(name)
      if (wanted) await this.#provide(name, lock, organisation)
      else await this.#giveUp(name, lock)
    } finally {
      await lock.release()
    }
  }

  async #provide(name: string, lock: OrderLock, organisation = UNKNOWN_ORGANISATION): Promise<void> {
    const previous = await this.#usableBundle(name)
    if (previous) {
      const advice = this.#known.get(name)?.advice
      const entry = this.#note(name, previous)
      if (advice) entry.advice = advice
      if (!this.#isDue(name, entry)) return
    }
    const retry = await this.#store.retryState(name)
    if (retry && this.#clock.now() < retry.next_attempt_ms) return
    const waitMs = await this.#deps.budget?.take(organisation, previous ? 'renewal' : 'new')
    if (waitMs !== undefined) return this.#postpone(name, organisation, waitMs)
    const startedMs = performance.now()
    try {
      const bundle = await this.#source.obtain(name, previous)
      if (!(await this.#store.save(name, bundle, lock))) {
        this.#log.warn({ domain: name }, 'a certificate came too late: another edge has taken over')
        return
      }
      this.#note(name, bundle)
      const seconds = (performance.now() - startedMs) / SECOND_MS
      this.#events[previous ? 'renewed' : 'issued']?.(name, seconds)
      this.#log.info({ domain: name, seconds }, previous ? 'certificate renewed' : 'certificate issued')
    } catch (error) {
      await this.#fail(name, error)
    }
  }

  /** No failure of the name: no CA was asked. Other edges find out for themselves. */
  #postpone(name: string, organisation: string, waitMs: number): void {
    this.#postponed.set(name, this.#clock.now() + waitMs)
    this.#events.postponed?.(name)
    this.#log.warn({ domain: name, organisation, waitMs }, 'no order at the CA yet: too many lately')
  }

  async #fail(name: string, error: unknown): Promise<void> {
    const message = error instanceof Error ? error.message : String(error)
    const { reason, problem, retryAfterMs, hasAnswered } = error instanceof IssueError ? error : ownFailure
    const state = afterFailure(await this.#store.retryState(name), this.#clock.now(), {
      reason,
      message: hasAnswered ? message : '',
      problem,
      retryAfterMs,
    })
    await this.#store.saveRetryState(name, state)
    this.#events.failed?.(name, reason)
    this.#log.warn({ domain: name, reason, detail: message, attempts: state.attempts }, 'no certificate yet')
  }

  /** A bundle that cannot be opened (another SECRET_KEY) is as good as none. */
  async #usableBundle(name: string): Promise<CertificateBundle | undefined> {
    try {
      return await this.#store.bundle(name)
    } catch (error) {
      this.#log.warn({ err: error, domain: name }, 'a stored certificate cannot be opened and is replaced')
      return undefined
    }
  }

  async #giveUp(name: string, lock: OrderLock): Promise<void> {
    const bundle = await this.#usableBundle(name)
    if (!(await this.#store.remove(name, lock))) return
    this.#known.delete(name)
    if (!bundle || certificateFacts(bundle.cert).notAfterMs <= this.#clock.now()) return
    try {
      await this.#source.revoke(bundle)
      this.#events.revoked?.(name)
      this.#log.info({ domain: name }, 'certificate revoked and removed')
    } catch (error) {
      this.#log.warn({ err: error, domain: name }, 'certificate removed, but the CA did not revoke it')
    }
  }

  async #survey(): Promise<void> {
    const domains = await this.#store.domains()
    for (const name of this.#deps.ownNames ?? []) {
      domains.set(name, OWN_WISH)
      if (this.#isBeginning) await this.#hurry(name)
    }
    this.#isBeginning = false
    const retries = await this.#store.retryStates()
    let fewestDaysLeft: number | undefined
    let wantedCount = 0
    const newNames: string[] = []
    for (const [name, { wanted }] of domains) {
      if (!wanted) {
        this.#work(name)
        continue
      }
      wantedCount++
      const entry = this.#known.get(name) ?? (await this.#learn(name))
      if (entry) fewestDaysLeft = Math.min(fewestDaysLeft ?? Infinity, daysLeft(entry.lifetime, this.#clock.now()))
      if (this.#clock.now() < Math.max(retries.get(name)?.next_attempt_ms ?? 0, this.#postponed.get(name) ?? 0))
        continue
      if (!entry) newNames.push(name)
      else if (this.#isDue(name, entry)) this.#work(name)
    }
    for (const name of newNames) this.#work(name)
    for (const name of this.#known.keys()) if (!domains.get(name)?.wanted) this.#known.delete(name)
    for (const [name, untilMs] of this.#postponed) if (this.#clock.now() >= untilMs) this.#postponed.delete(name)
    // A name that is removed and added again has not failed less often: what is known of it outlives it for a while.
    for (const [name, retry] of retries)
      if (!domains.has(name) && isForgettable(retry, this.#clock.now())) await this.#store.forgetRetryState(name)
    this.#events.surveyed?.({ certificates: this.#known.size, wanted: wantedCount, fewestDaysLeft })
    await this.#askForAdvice()
  }

  async #learn(name: string): Promise<Known | undefined> {
    const bundle = await this.#usableBundle(name)
    return bundle && this.#note(name, bundle)
  }

  /** A failed question leaves what was said before, and ends the round: a CA that is away must not hold up the rest. */
  async #askForAdvice(): Promise<void> {
    const due = [...this.#known].filter(([, { advice }]) => advice.askAgainMs <= this.#clock.now())
    for (const [name, entry] of due.slice(0, MAX_QUESTIONS_PER_TICK)) {
      entry.advice = { ...entry.advice, askAgainMs: this.#clock.now() + adviceIntervalMs(undefined) }
      const bundle = await this.#usableBundle(name)
      if (!bundle) continue
      try {
        const advice = await this.#source.renewalAdvice(bundle)
        entry.advice = {
          window: advice?.window,
          askAgainMs: this.#clock.now() + adviceIntervalMs(advice?.retryAfterMs),
        }
      } catch (error) {
        this.#log.debug({ err: error, domain: name }, 'the CA gave no renewal information')
        return
      }
    }
  }

  async #announced(name: string): Promise<void> {
    await this.#hurry(name)
    this.#work(name)
  }

  async #hurry(name: string): Promise<void> {
    const retry = await this.#store.retryState(name)
    if (retry) await this.#store.saveRetryState(name, hurried(retry, this.#clock.now()))
  }
}
