/**
 * Signing in with the operator's provider of OpenID Connect. The browser carries what it was sent away with in a sealed
 * cookie: nothing is kept here for people who never come back, and no answer is good in another browser.
 */
import { randomBytes } from 'node:crypto'
import { errors } from '../../../shared/contracts/errors.ts'
import { PROVIDER_VISIT_PATH } from '../../../shared/contracts/visit-desk.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { MINUTE_MS, SECOND_MS, type Clock } from '../../../shared/running/clock.ts'
import type { Log } from '../../../shared/running/log.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import { transaction, type Pool } from '../../ground/database/sql.ts'
import { cookie } from '../../ground/http/reply.ts'
import type { ProviderSettings } from '../../ground/terms/provider.ts'
import * as queries from '../access/provider-queries.ts'
import type { Accounts, Circumstances, SignedIn } from '../accounts/contract.ts'
import type { OrganisationHooks } from '../organisations/dependencies.ts'
import { followGroups } from '../organisations/grouped.ts'
import type { Asked, ProviderClient } from './client.ts'
import { openGrant, recheckNext, sealGrant } from './recheck.ts'
import { roleOfGroups, type ProvedPerson, type ProviderGrant } from './rules.ts'

export const PROVIDER_PATHS = {
  begin: '/signin/oidc',
  callback: '/signin/oidc/callback',
  /** Where a drop sends a visitor who may be one of its viewers. */
  visit: PROVIDER_VISIT_PATH,
  /** OpenID Connect Back-Channel Logout 1.0: what the provider is told to call. */
  logout: '/signin/oidc/logout',
} as const

export const PROVIDER_COOKIE = '__Host-dropway_provider'
/** Time to find the phone. */
const ASKED_MS = 10 * MINUTE_MS
const SEAL_CONTEXT = 'provider sign-in'
const MAX_CARRIED_CHARS = 4000
/** People who are asked after in one run; the others are due in the next. */
const CHECKED_AT_ONCE = 500

/** People in a row about whom the provider says nothing: it is away, and the others wait for the next run. */
const UNANSWERED_IN_A_ROW = 3

/** What a person was about to do. */
export type Errand =
  | { readonly kind: 'account'; readonly next: string; readonly token: string | undefined }
  /** To see a drop that only its viewers see. */
  | {
      readonly kind: 'visit'
      readonly siteId: string
      readonly host: string
      readonly next: string
      readonly silently: boolean
    }
  /** To delete the account, where no password can be asked for. */
  | { readonly kind: 'closing'; readonly userId: string }

export interface Begun {
  readonly location: string
  readonly setCookie: string
}

export type Finished =
  | { readonly kind: 'account'; readonly signedIn: SignedIn; readonly errand: Extract<Errand, { kind: 'account' }> }
  | { readonly kind: 'visit'; readonly email: string; readonly errand: Extract<Errand, { kind: 'visit' }> }
  /** The account is gone. */
  | { readonly kind: 'closed'; readonly setCookie: string }

export interface ProviderSignIn {
  readonly name: string
  begin(errand: Errand): Promise<Begun>
  /** What the browser was about to do, as far as its cookie says. */
  errandOf(sealed: string | undefined): Errand | undefined
  /** `callback`: the whole address that it came back to. */
  finish(callback: URL, sealed: string | undefined, circumstances: Circumstances): Promise<Finished>
  readonly clearedCookie: string
  /** Ends what a logout token names: sessions, and with them the grants that were given in them. False for none of the provider's. */
  logOut(token: string): Promise<boolean>
  /** Asks after everyone who is due. People stay in while the provider is away. A job. */
  recheck(stopping: AbortSignal): Promise<void>
}

interface ProviderDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly log: Log
  readonly baseUrl: string
  readonly secrets: Pick<Secrets, 'seal' | 'open'>
  readonly settings: ProviderSettings
  readonly client: ProviderClient
  readonly accounts: Pick<Accounts, 'signInProved' | 'deleteVouchedAccount'>
  readonly hooks: Pick<OrganisationHooks, 'onMemberLeft' | 'onMemberBack' | 'propagate'>
}

interface Carried {
  readonly asked: Omit<Asked, 'redirectUri'>
  readonly errand: Errand
  readonly until: number
}

const secret = (): string => randomBytes(32).toString('base64url')

export function createProviderSignIn(deps: ProviderDependencies): ProviderSignIn {
  const { sql, clock, baseUrl, secrets, settings, client, accounts, hooks } = deps
  const redirectUri = baseUrl + PROVIDER_PATHS.callback
  const now = (): Date => new Date(clock.now())

  function carriedIn(sealed: string | undefined): Carried | undefined {
    if (sealed === undefined || sealed.length > MAX_CARRIED_CHARS) return undefined
    try {
      const carried = JSON.parse(secrets.open(sealed, SEAL_CONTEXT).toString('utf8')) as Carried
      return carried.until > clock.now() ? carried : undefined
    } catch {
      return undefined
    }
  }

  async function enterAccount(
    { person, grant }: { person: ProvedPerson; grant: ProviderGrant },
    errand: Extract<Errand, { kind: 'account' }>,
    circumstances: Circumstances,
  ): Promise<SignedIn> {
    const { issuer, groups, name } = settings
    const { subject, email, sid } = person
    const known = await queries.findIdentity(sql, issuer, subject)
    const role = roleOfGroups(person.groups, groups)
    const who = { email, userId: known?.userId, token: errand.token, isOfKnownGroup: role !== undefined }
    return accounts.signInProved(who, circumstances, async (tx, user) => {
      const identityId = known?.id ?? newId('pid')
      const sealedGrant = sealGrant(secrets, identityId, grant)
      // The question about them that is under way may end in their removal: decided once it is over.
      await queries.lockIdentitiesOf(tx, user.userId)
      const isBack = await queries.isRemoved(tx, user.userId)
      const identity = { id: identityId, issuer, subject, userId: user.userId, sealedGrant, sid }
      const isSuccessor = !known && (await queries.hasRemovedNamesake(tx, identity))
      await queries.putIdentity(tx, { ...identity, now: now() })
      if (isBack && !isSuccessor) await hooks.onMemberBack(tx, user.userId, now())
      if (groups.size > 0) await followGroups(tx, { issuer, name, ...user, role, now: now() }, hooks)
      // Two first sign-ins at once: whichever row is there is theirs.
      const stored = await queries.findIdentity(tx, issuer, subject)
      if (stored?.userId !== user.userId) throw errors.providerRefused('You signed in twice at once. Try again.')
      return { provider: { identityId: stored.id, sid }, isSuccessor }
    })
  }

  async function closeAccount(
    { subject }: ProvedPerson,
    userId: string,
    circumstances: Circumstances,
  ): Promise<{ setCookie: string }> {
    const known = await queries.findIdentity(sql, settings.issuer, subject)
    if (known?.userId !== userId) throw errors.providerRefused('You signed in as somebody else. Nothing was deleted.')
    return accounts.deleteVouchedAccount(userId, circumstances)
  }

  return {
    name: settings.name,

    async begin(errand) {
      const asked = { state: secret(), nonce: secret(), verifier: secret() }
      const silently = errand.kind === 'visit' && errand.silently
      const anew = errand.kind === 'closing'
      const location = await client.authorizationUrl({ ...asked, redirectUri }, { silently, anew })
      const carried: Carried = { asked, errand, until: clock.now() + ASKED_MS }
      const sealed = secrets.seal(JSON.stringify(carried), SEAL_CONTEXT)
      return { location, setCookie: cookie(PROVIDER_COOKIE, sealed, { maxAgeSeconds: ASKED_MS / SECOND_MS }) }
    },

    errandOf: (sealed) => carriedIn(sealed)?.errand,
    clearedCookie: cookie(PROVIDER_COOKIE, '', { maxAgeSeconds: 0 }),

    async finish(callback, sealed, circumstances) {
      const carried = carriedIn(sealed)
      if (!carried) throw errors.providerRefused('It took too long, or was begun in another browser. Begin again.')
      const { asked, errand } = carried
      const proof = await client.finish(callback, { ...asked, redirectUri }, { anew: errand.kind === 'closing' })
      switch (errand.kind) {
        case 'visit':
          return { kind: 'visit', email: proof.person.email, errand }
        case 'account':
          return { kind: 'account', signedIn: await enterAccount(proof, errand, circumstances), errand }
        case 'closing':
          return { kind: 'closed', ...(await closeAccount(proof.person, errand.userId, circumstances)) }
      }
    },

    async logOut(token) {
      const ended = await client.readLogoutToken(token)
      if (!ended) return false
      const over = { issuer: settings.issuer, ...ended }
      await transaction(sql, async (tx) => {
        // A grant that ended with its session would be refused at the next question, and read as a removal.
        for (const identity of await queries.lockLoggedOut(tx, over))
          if (!openGrant(secrets, identity)?.isOffline) await queries.forgetGrant(tx, identity.id)
        await queries.deleteProviderSessions(tx, over)
      })
      return true
    },

    async recheck(stopping) {
      // Those who were due when the run began: nobody is asked after twice in it.
      const before = new Date(clock.now() - settings.recheckMs)
      let unanswered = 0
      for (let count = 0; count < CHECKED_AT_ONCE && !stopping.aborted; count++) {
        const outcome = await recheckNext(deps, before)
        unanswered = outcome === 'unknown' ? unanswered + 1 : 0
        if (outcome === 'nobody' || unanswered === UNANSWERED_IN_A_ROW) return
      }
    },
  }
}
