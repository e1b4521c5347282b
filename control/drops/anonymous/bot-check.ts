/**
 * The invisible bot check. People and plain tools within their limits never notice it: a filled honeypot is refused,
 * a form that is sent faster than people type is held for a moment, and only suspicious traffic is asked for a proof
 * of work, which our page solves by itself.
 */
import { HOUR_MS } from '../../../shared/running/clock.ts'
import { createProofOfWork, type Challenge } from '../../../shared/secrets/proof-of-work.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'

export interface Signals {
  /** Value of the field that people do not see. */
  readonly honeypot: string | undefined
  /** The signed time at which our page was rendered. */
  readonly started: string | undefined
  /** `<challenge>:<nonce>`. */
  readonly proof: string | undefined
  /** Our form, or a page of another site: these must show `started`. Tools and scripts of our own pages need not. */
  readonly isBrowser: boolean
  /** How often this network's content was refused lately. */
  readonly recentRejections: number
}

export type BotVerdict = 'pass' | 'wait' | 'reject' | 'prove'

/** No person reads the page, picks a file and sends it faster. */
const MIN_FORM_MS = 700
const MAX_FORM_AGE_MS = 24 * HOUR_MS
const SUSPICIOUS_REJECTIONS = 5
/** About a quarter of a second in a browser. */
const PROOF_BITS = 16
const PURPOSE = 'publish'

/** Pure: what to do with a publisher. `startedAt` and `isProven` have been verified. */
export function assess(
  signals: Pick<Signals, 'honeypot' | 'isBrowser' | 'recentRejections'>,
  facts: { startedAt: number | undefined; isProven: boolean; now: number },
): BotVerdict {
  if (signals.honeypot) return 'reject'
  if (facts.isProven) return 'pass'
  if (signals.recentRejections >= SUSPICIOUS_REJECTIONS) return 'prove'
  if (!signals.isBrowser) return 'pass'
  if (facts.startedAt === undefined) return 'prove'
  const elapsed = facts.now - facts.startedAt
  if (elapsed < 0 || elapsed > MAX_FORM_AGE_MS) return 'prove'
  return elapsed < MIN_FORM_MS ? 'wait' : 'pass'
}

export interface BotCheck {
  /** Goes into the page as a hidden field. */
  startToken(now: number): string
  /** `spends`: the id of the proof that the verdict rests on, which the caller takes once. */
  check(signals: Signals, now: number): { verdict: BotVerdict; waitMs?: number; challenge?: Challenge; spends?: string }
  /** A new question, for a publisher whose proof was taken before. */
  ask(now: number): Challenge
}

export function createBotCheck(secrets: Pick<Secrets, 'sign' | 'verify'>): BotCheck {
  const work = createProofOfWork(secrets)
  const signed = (text: string): string => `${text}.${secrets.sign('proof-of-work', text)}`
  const opened = (token: string | undefined): string | undefined => {
    const cut = token?.lastIndexOf('.') ?? -1
    if (token === undefined || cut < 0) return undefined
    const text = token.slice(0, cut)
    return secrets.verify('proof-of-work', text, token.slice(cut + 1)) ? text : undefined
  }

  function startedAt(token: string | undefined): number | undefined {
    const text = opened(token)
    return text?.startsWith('form:') ? Number(text.slice('form:'.length)) : undefined
  }

  const ask = (now: number): Challenge => work.ask(PURPOSE, PROOF_BITS, now)

  return {
    startToken: (now) => signed(`form:${now}`),
    check(signals, now) {
      const started = startedAt(signals.started)
      const proofId = work.check(signals.proof, PURPOSE, now)
      const unproven = assess(signals, { startedAt: started, isProven: false, now })
      const verdict = assess(signals, { startedAt: started, isProven: proofId !== undefined, now })
      if (verdict === 'wait') return { verdict, waitMs: (started ?? now) + MIN_FORM_MS - now }
      if (verdict === 'prove') return { verdict, challenge: ask(now) }
      return verdict === unproven || proofId === undefined ? { verdict } : { verdict, spends: proofId }
    },
    ask,
  }
}
