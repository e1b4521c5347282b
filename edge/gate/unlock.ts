/**
 * Password protection of a drop. Who has given the password carries a signed cookie; the edge keeps no list.
 * The signature covers the drop, the generation of its password and the stored hash, so that a new password
 * locks everyone out at once and a cookie of one drop is worth nothing at another.
 */
import { MINUTE_MS } from '../../shared/clock.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { limitKeyOfIp } from '../../shared/ip.ts'
import { MAX_PASSWORD_CHARS } from '../../shared/limits.ts'
import { verifyPassword } from '../../shared/password.ts'
import { equalTexts } from '../../shared/secrets.ts'
import type { Secrets } from '../../shared/secrets.ts'
import type { ServedSite, Visit } from '../context.ts'
import { createAttempts } from './attempts.ts'
import type { AttemptLimit } from './attempts.ts'

export const UNLOCK_PATH = '/.dropway/unlock'
const COOKIE = '__Host-dropway-unlock'
/** As long as browsers keep a cookie: who has unlocked a drop stays unlocked. */
const COOKIE_MAX_AGE_SECONDS = 400 * 24 * 60 * 60
/** Each value costs a comparison; a header full of them must not cost hundreds. */
const MAX_COOKIE_VALUES = 4
/** Longer addresses are not worth carrying through a form. */
const MAX_NEXT_CHARS = 2000

/** A person mistypes a few times; a machine is held to one guess a minute and visitor. */
const PER_VISITOR: AttemptLimit = { attempts: 10, windowMs: 10 * MINUTE_MS, maxKeys: 50_000 }
/** Guessing from many networks at once; far above what the visitors of one drop mistype. */
const PER_DROP: AttemptLimit = { attempts: 200, windowMs: 10 * MINUTE_MS, maxKeys: 50_000 }

export type UnlockOutcome =
  | { readonly kind: 'unlocked'; readonly setCookie: string; readonly location: string }
  | { readonly kind: 'wrong' }
  | { readonly kind: 'limited'; readonly retryAfterSeconds: number }

/** Told to the other workers of the edge, so that all of them together allow what one does. */
export interface UnlockAttempt {
  readonly visitorKey: string
  readonly dropKey: string
  readonly isGivenBack: boolean
}

export interface Unlock {
  /** True for a drop without a password. */
  isUnlocked(route: ServedSite, cookieHeader: string | undefined): boolean
  /** `body`: the form as posted, urlencoded `password` and `next`. */
  attempt(route: ServedSite, visit: Visit, body: Buffer): Promise<UnlockOutcome>
  /** Counts what another worker was asked. */
  hear(attempt: UnlockAttempt): void
}

export interface UnlockDeps {
  readonly secrets: Secrets
  readonly clock: Clock
  tell(attempt: UnlockAttempt): void
}

export function createUnlock({ secrets, clock, tell }: UnlockDeps): Unlock {
  const perVisitor = createAttempts(PER_VISITOR, clock)
  const perDrop = createAttempts(PER_DROP, clock)
  /** Signing is a tenth of the cost of a request; routes are replaced, never changed, so it is done once for each. */
  const tokens = new WeakMap<ServedSite, string>()

  function tokenOf(route: ServedSite): string {
    let token = tokens.get(route)
    if (token === undefined) {
      const { hash, generation } = route.password!
      token = secrets.sign('unlock-cookie', `${route.site_id}\n${generation}\n${hash}`)
      tokens.set(route, token)
    }
    return token
  }

  /** Counted before the hash is computed: a hundred guesses sent at once are a hundred guesses. */
  function takeAttempt(visitorKey: string, dropKey: string): number | undefined {
    const visitorWaitMs = perVisitor.take(visitorKey)
    if (visitorWaitMs !== undefined) return visitorWaitMs
    const dropWaitMs = perDrop.take(dropKey)
    if (dropWaitMs !== undefined) perVisitor.giveBack(visitorKey)
    else tell({ visitorKey, dropKey, isGivenBack: false })
    return dropWaitMs
  }

  function giveBack(visitorKey: string, dropKey: string): void {
    perVisitor.giveBack(visitorKey)
    perDrop.giveBack(dropKey)
  }

  return {
    isUnlocked(route, cookieHeader) {
      if (route.password === null) return true
      if (cookieHeader === undefined) return false
      return cookieValues(cookieHeader, COOKIE).some((value) => equalTexts(value, tokenOf(route)))
    },

    async attempt(route, visit, body) {
      const form = new URLSearchParams(body.toString())
      const location = safeNext(form.get('next'))
      if (route.password === null) return { kind: 'unlocked', setCookie: clearedCookie(), location }
      const visitorKey = `${limitKeyOfIp(visit.ip)} ${route.site_id}`
      const waitMs = takeAttempt(visitorKey, route.site_id)
      if (waitMs !== undefined) return { kind: 'limited', retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) }
      const isRight = await isRightPassword(form.get('password'), route.password.hash)
      if (isRight === 'busy') return { kind: 'limited', retryAfterSeconds: 2 }
      if (!isRight) return { kind: 'wrong' }
      giveBack(visitorKey, route.site_id)
      tell({ visitorKey, dropKey: route.site_id, isGivenBack: true })
      return { kind: 'unlocked', setCookie: unlockCookie(tokenOf(route)), location }
    },

    hear({ visitorKey, dropKey, isGivenBack }) {
      if (isGivenBack) return giveBack(visitorKey, dropKey)
      perVisitor.take(visitorKey)
      perDrop.take(dropKey)
    },
  }
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

/** The values of one name: a browser may send two, and the right one counts; nobody sends more by accident. */
function cookieValues(header: string, name: string): string[] {
  const values: string[] = []
  for (const pair of header.split(';')) {
    const at = pair.indexOf('=')
    if (at > 0 && pair.slice(0, at).trim() === name) values.push(pair.slice(at + 1).trim())
    if (values.length === MAX_COOKIE_VALUES) break
  }
  return values
}

/**
 * Where to go after unlocking: a path of this drop. Browsers read `//host` and `/\host` as another host, and
 * drop tabs and line breaks before they look, so only plain printable text passes.
 */
export function safeNext(next: string | null): string {
  if (next === null || next.length > MAX_NEXT_CHARS) return '/'
  return /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(next) && !next.startsWith(UNLOCK_PATH) ? next : '/'
}
