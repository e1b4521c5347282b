/**
 * Password protection of a drop. Who has given the password carries a signed cookie; the edge keeps no list.
 * The signature covers the drop, the generation of its password and the stored hash, so that a new password
 * locks everyone out at once and a cookie of one drop is worth nothing at another.
 */
import { timingSafeEqual } from 'node:crypto'
import { MINUTE_MS, DAY_MS, SECOND_MS } from '../../shared/running/clock.ts'
import type { Clock } from '../../shared/running/clock.ts'
import { ApiError } from '../../shared/contracts/errors.ts'
import { limitKeyOfIp } from '../../shared/http/ip.ts'
import { safeNext } from '../../shared/http/safe-next.ts'
import { MAX_PASSWORD_CHARS } from '../../shared/contracts/limits.ts'
import { verifyPassword } from '../../shared/secrets/password.ts'
import { guessBits, PROOF_LIFETIME_MS, type Challenge, type ProofOfWork } from '../../shared/secrets/proof-of-work.ts'
import type { Secrets } from '../../shared/secrets/secrets.ts'
import type { ServedSite, Arrival } from '../context.ts'
import { createAttempts } from './attempts.ts'
import type { AttemptLimit, Usage } from './attempts.ts'
import { cookieValues } from './cookies.ts'

export const UNLOCK_PATH = '/.dropway/unlock'
const COOKIE = '__Host-dropway-unlock'
/** As long as browsers keep a cookie: an unlocked drop stays unlocked. */
const COOKIE_MAX_AGE_SECONDS = (400 * DAY_MS) / SECOND_MS
/** Longer addresses are not worth carrying through a form. */
const MAX_NEXT_CHARS = 2000

/**
 * A person mistypes a few times. Beyond these, a guess costs a proof of work: a limit that refused would let strangers lock
 * out everyone who knows the password.
 */
const PER_VISITOR: AttemptLimit = { attempts: 10, windowMs: 10 * MINUTE_MS, maxKeys: 50_000 }
/** Guessing from many networks at once; far above what the visitors of one drop mistype. */
const PER_DROP: AttemptLimit = { attempts: 200, windowMs: 10 * MINUTE_MS, maxKeys: 50_000 }
/** An answer to a challenge is good for one guess. Each costs its maker seconds, so we never have to forget many. */
const PER_PROOF: AttemptLimit = { attempts: 1, windowMs: PROOF_LIFETIME_MS, maxKeys: 50_000 }

/** `work`: what the browser has to solve before the next guess. */
export type UnlockOutcome =
  | { readonly kind: 'unlocked'; readonly setCookie: string; readonly location: string }
  | { readonly kind: 'wrong'; readonly work: Challenge | undefined }
  /** Not compared: no answer came with it, or too much is being compared just now. */
  | { readonly kind: 'limited'; readonly retryAfterSeconds: number; readonly work: Challenge | undefined }

/** Told to the other workers of the edge, so that all of them together allow what one does. */
export interface UnlockAttempt {
  readonly visitorKey: string
  readonly dropKey: string
  readonly isGivenBack: boolean
  /** The challenge whose answer came with it. */
  readonly proofId?: string | undefined
}

export interface Unlock {
  /** True for a drop without a password. */
  isUnlocked(route: ServedSite, cookieHeader: string | undefined): boolean
  /** What a visitor has to solve before a guess, so that the page does so while the password is typed. */
  workFor(route: ServedSite, arrival: Arrival): Challenge | undefined
  /** `form`: `password`, `next` and, where it was asked for, `proof`. */
  attempt(route: ServedSite, arrival: Arrival, form: URLSearchParams): Promise<UnlockOutcome>
  /** Counts what another worker was asked. */
  hear(attempt: UnlockAttempt): void
}

export interface UnlockDependencies {
  readonly secrets: Secrets
  readonly proofOfWork: ProofOfWork
  readonly clock: Clock
  tell(attempt: UnlockAttempt): void
}

export function createUnlock({ secrets, proofOfWork, clock, tell }: UnlockDependencies): Unlock {
  const perVisitor = createAttempts(PER_VISITOR, clock)
  const perDrop = createAttempts(PER_DROP, clock)
  const perProof = createAttempts(PER_PROOF, clock)
  /** Signing is a tenth of the cost of a request; routes are replaced, never changed, so it is done once for each. */
  const tokens = new WeakMap<ServedSite, Token>()

  function tokenOf(route: ServedSite, { hash, generation }: NonNullable<ServedSite['password']>): Token {
    let token = tokens.get(route)
    if (token === undefined) {
      const text = secrets.sign('unlock-cookie', `${route.site_id}\n${generation}\n${hash}`)
      const bytes = Buffer.from(text)
      tokens.set(route, (token = { text, bytes, given: Buffer.alloc(bytes.length) }))
    }
    return token
  }

  /** Undefined for a proof that is wrong, for another drop, too old or used before. */
  function takeProof(proof: string | null, route: ServedSite): string | undefined {
    const id = proofOfWork.check(proof ?? undefined, purposeOf(route), clock.now())
    return id !== undefined && perProof.take(id).used <= 1 ? id : undefined
  }

  /**
   * Counted before the hash is computed: a hundred guesses sent at once are a hundred guesses. What is refused does not
   * count: making it harder for others costs the work as well.
   */
  function takeAttempt(keys: Keys, route: ServedSite, proof: string | null): Usage | undefined {
    const usage = worse(perVisitor.take(keys.visitorKey), perDrop.take(keys.dropKey))
    const proofId = usage.used > 1 ? takeProof(proof, route) : undefined
    if (usage.used > 1 && proofId === undefined) {
      giveBack(keys)
      return usage
    }
    tell({ ...keys, isGivenBack: false, proofId })
    return undefined
  }

  function giveBack({ visitorKey, dropKey }: Keys): void {
    perVisitor.giveBack(visitorKey)
    perDrop.giveBack(dropKey)
  }

  function giveBackEverywhere(keys: Keys): void {
    giveBack(keys)
    tell({ ...keys, isGivenBack: true })
  }

  function workFor(route: ServedSite, { visitorKey, dropKey }: Keys): Challenge | undefined {
    const bits = guessBits(worse(perVisitor.foresee(visitorKey), perDrop.foresee(dropKey)).used)
    return bits === undefined ? undefined : proofOfWork.ask(purposeOf(route), bits, clock.now())
  }

  return {
    isUnlocked(route, cookieHeader) {
      const { password } = route
      if (password === null) return true
      if (cookieHeader === undefined) return false
      const token = tokenOf(route, password)
      return cookieValues(cookieHeader, COOKIE).some((value) => isToken(value, token))
    },

    workFor: (route, arrival) => (route.password === null ? undefined : workFor(route, keysOf(route, arrival))),

    async attempt(route, arrival, form) {
      const location = nextAfterUnlocking(form.get('next'))
      if (route.password === null) return { kind: 'unlocked', setCookie: clearedCookie(), location }
      const keys = keysOf(route, arrival)
      const refused = takeAttempt(keys, route, form.get('proof'))
      if (refused) {
        const retryAfterSeconds = Math.max(1, Math.ceil(refused.endsInMs / 1000))
        return { kind: 'limited', retryAfterSeconds, work: workFor(route, keys) }
      }
      const isRight = await isRightPassword(form.get('password'), route.password.hash)
      if (isRight === false) return { kind: 'wrong', work: workFor(route, keys) }
      giveBackEverywhere(keys)
      if (isRight === 'busy') return { kind: 'limited', retryAfterSeconds: 2, work: workFor(route, keys) }
      return { kind: 'unlocked', setCookie: unlockCookie(tokenOf(route, route.password).text), location }
    },

    hear({ isGivenBack, proofId, ...keys }) {
      if (isGivenBack) return giveBack(keys)
      perVisitor.take(keys.visitorKey)
      perDrop.take(keys.dropKey)
      if (proofId !== undefined) perProof.take(proofId)
    },
  }
}

/** What the cookie of a drop holds. */
interface Token {
  readonly text: string
  readonly bytes: Buffer
  /** Where what a visitor gives is put to be compared, of the same length: no memory is taken for each request. */
  readonly given: Buffer
}

/** In constant time; how long a token is, is no secret. */
function isToken(value: string, { text, bytes, given }: Token): boolean {
  return value.length === text.length && given.write(value) === bytes.length && timingSafeEqual(given, bytes)
}

type Keys = Pick<UnlockAttempt, 'visitorKey' | 'dropKey'>

function keysOf(route: ServedSite, { ip }: Arrival): Keys {
  return { visitorKey: `${limitKeyOfIp(ip)} ${route.site_id}`, dropKey: route.site_id }
}

function purposeOf(route: ServedSite): string {
  return `unlock ${route.site_id}`
}

function worse(one: Usage, other: Usage): Usage {
  return one.used >= other.used ? one : other
}

async function isRightPassword(password: string | null, hash: string): Promise<boolean | 'busy'> {
  if (password === null || password === '' || password.length > MAX_PASSWORD_CHARS) return false
  try {
    return await verifyPassword(password, hash)
  } catch (error) {
    if (error instanceof ApiError && error.status === 503) return 'busy'
    throw error
  }
}

function unlockCookie(token: string): string {
  return `${COOKIE}=${token}; Path=/; Max-Age=${COOKIE_MAX_AGE_SECONDS}; Secure; HttpOnly; SameSite=Lax`
}

function clearedCookie(): string {
  return `${COOKIE}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax`
}

/** Addresses of the gate itself, at every drop. */
const OWN_PATHS = '/.dropway/'

/** Where to go after unlocking: a path of this drop, but not the form itself. */
export function nextAfterUnlocking(next: string | null): string {
  const path = safeNext(next, '/')
  return path.length > MAX_NEXT_CHARS || path.startsWith(OWN_PATHS) ? '/' : path
}
