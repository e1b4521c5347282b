/**
 * A question that takes a machine a moment to answer and us none to check: `<challenge>:<nonce>` whose SHA-256 begins with
 * so many zero bits. The challenge is signed, for one purpose and for a while; nothing is kept here. What may be used only
 * once is for its user to remember, by the id that `check` returns.
 */
import { createHash, randomBytes } from 'node:crypto'
import { MINUTE_MS } from '../running/clock.ts'
import type { Secrets } from './secrets.ts'

export const PROOF_LIFETIME_MS = 10 * MINUTE_MS
/** About a second in a browser. */
const MIN_GUESS_BITS = 19
/** About half a minute: what a person still waits for while others guess their password from thousands of networks. */
const MAX_GUESS_BITS = 24
/** Our challenges are shorter by half; whatever is longer is not hashed. */
const MAX_PROOF_CHARS = 500

/**
 * How hard a further guess at a password is when the allowance was used `used` times, this guess included: each doubling
 * doubles the work. Guesses are not refused, since strangers' guesses must not lock out who knows the password.
 */
export function guessBits(used: number): number | undefined {
  if (used <= 1) return undefined
  return Math.min(MAX_GUESS_BITS, MIN_GUESS_BITS + Math.floor(Math.log2(used)))
}

export interface Challenge {
  readonly challenge: string
  readonly bits: number
}

export interface ProofOfWork {
  ask(purpose: string, bits: number, now: number): Challenge
  /** The id of the challenge that `proof` answers, for this purpose and in time; else undefined. */
  check(proof: string | undefined, purpose: string, now: number): string | undefined
}

export function createProofOfWork(secrets: Pick<Secrets, 'sign' | 'verify'>): ProofOfWork {
  const nameOf = (purpose: string): string => createHash('sha256').update(purpose).digest('base64url').slice(0, 16)
  return {
    ask(purpose, bits, now) {
      const id = randomBytes(9).toString('base64url')
      const text = `work~${now + PROOF_LIFETIME_MS}~${bits}~${nameOf(purpose)}~${id}`
      return { challenge: `${text}.${secrets.sign('proof-of-work', text)}`, bits }
    },
    check(proof, purpose, now) {
      if (proof === undefined || proof.length > MAX_PROOF_CHARS) return undefined
      const challenge = proof.slice(0, Math.max(0, proof.lastIndexOf(':')))
      const cut = challenge.lastIndexOf('.')
      const text = challenge.slice(0, Math.max(0, cut))
      if (!secrets.verify('proof-of-work', text, challenge.slice(cut + 1))) return undefined
      const [kind, expiresAt, bits, name, id] = text.split('~')
      const isOurs = kind === 'work' && name === nameOf(purpose) && Number(expiresAt) > now
      return isOurs && hasLeadingZeroBits(createHash('sha256').update(proof).digest(), Number(bits)) ? id : undefined
    },
  }
}

export function hasLeadingZeroBits(bytes: Uint8Array, bits: number): boolean {
  let left = bits
  for (const byte of bytes) {
    if (left <= 0) return true
    const zeros = Math.clz32(byte) - 24
    if (zeros < Math.min(8, left)) return false
    left -= 8
  }
  return left <= 0
}
