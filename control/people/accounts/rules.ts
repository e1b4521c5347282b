/** Decisions about accounts: what is an acceptable password, how often a caller may try. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { MAX_PASSWORD_CHARS } from '../../../shared/contracts/limits.ts'
import { PROOF_LIFETIME_MS } from '../../../shared/secrets/proof-of-work.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import type { Allowance } from '../../ground/http/limits/throttle.ts'

export const MIN_PASSWORD_CHARS = 10

/** The most used passwords of ten and more characters; guessing starts with them. */
const COMMON_PASSWORDS: ReadonlySet<string> = new Set(
  `1234567890 12345678910 0123456789 0987654321 123456789a 1234567891 1q2w3e4r5t 1q2w3e4r5t6y q1w2e3r4t5 qwertyuiop qwerty12345
qwerty123456 qwertyuiop123 password12 password123 password1234 password12345 passw0rd123 p@ssword123 letmein123 letmein1234
welcome123 welcome1234 iloveyou12 iloveyou123 iloveyou1234 administrator admin12345 admin123456 changeme123 abcdefghij abcd123456
abc1234567 asdfghjkl1 asdfghjkl123 1qaz2wsx3edc zaq12wsxcde 1111111111 0000000000 football123 baseball123 princess123 sunshine123
superman123 trustno1trustno1 monkey12345 dragon12345 dropway123 dropwaydropway`.split(/\s/),
)

export function requireGoodPassword(password: string, email: string): void {
  const length = [...password].length
  if (length < MIN_PASSWORD_CHARS || length > MAX_PASSWORD_CHARS) {
    throw errors.invalidRequest(`password: use ${MIN_PASSWORD_CHARS} to ${MAX_PASSWORD_CHARS} characters`)
  }
  const plain = password.toLowerCase()
  if (COMMON_PASSWORDS.has(plain) || plain === email || new Set(plain).size < 4) {
    throw errors.invalidRequest('password: this one is guessed first; choose another')
  }
}

/** A hash of no password, with the cost of a real one: unknown e-mails take as long as wrong passwords. */
export const DUMMY_PASSWORD_HASH =
  '$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'

/** Enough to tell a few namesakes apart, and too little to guess a password from. */
const TAG_CHARS = 3

/** A few bits of a password, keyed: which of several accounts with one address a sign-in means. */
export function passwordTag(secrets: Pick<Secrets, 'sign'>, email: string, password: string): string {
  return secrets.sign('password-tag', `${email} ${password}`).slice(0, TAG_CHARS)
}

/** How long a link in a mail works. */
export const LINK_LIFETIMES_MS = { verify: 3 * DAY_MS, reset: HOUR_MS, email_change: DAY_MS } as const

/**
 * Attempts per window. A person who forgot a password needs a handful; a whole office shares an address. Beyond its
 * allowance a sign-in is not refused but costs a proof of work: strangers' guesses must not lock the owner out.
 */
export const ACCOUNT_ALLOWANCES = {
  signInPerAccountAndNetwork: { limit: 10, windowMs: 15 * MINUTE_MS },
  signInPerAccount: { limit: 100, windowMs: 15 * MINUTE_MS },
  signInPerNetwork: { limit: 100, windowMs: 15 * MINUTE_MS },
  signUpPerNetwork: { limit: 100, windowMs: HOUR_MS },
  resetPerNetwork: { limit: 30, windowMs: HOUR_MS },
  /** Silently no further mail: an answer would tell that the account exists. */
  resetMailPerAccount: { limit: 5, windowMs: HOUR_MS },
  /** Silently no further mail: a stranger must not fill the owner's mailbox. Counted for every address alike. */
  signUpAgainMailPerAddress: { limit: 5, windowMs: DAY_MS },
  verificationMailPerAccount: { limit: 5, windowMs: HOUR_MS },
  emailChangePerAccount: { limit: 5, windowMs: HOUR_MS },
  /** Each answer to a challenge counts as one sign-in. */
  signInPerProof: { limit: 1, windowMs: PROOF_LIFETIME_MS },
  passwordCheckPerAccount: { limit: 10, windowMs: 15 * MINUTE_MS },
} as const satisfies Record<string, Allowance>

export type AllowanceName = keyof typeof ACCOUNT_ALLOWANCES
