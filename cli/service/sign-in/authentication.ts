/** Which token a call carries: DROPWAY_TOKEN, what a workflow was given, or the one that `login` stored, renewed when it is about to expire. */
import { ApiFailure } from '../api-failure.ts'
import type { CredentialStore, Credentials } from './credentials.ts'
import type { OAuth } from './oauth.ts'

/** A token is renewed this early, so that it does not expire on its way. */
const EARLY_MS = 30_000

export interface Authentication {
  /** The token to send; undefined when the user is not signed in. */
  token(): Promise<string | undefined>
  /** Another token after this one was refused; undefined when there is none. */
  renew(refused: string): Promise<string | undefined>
  /** From now on this is what calls carry; it is asked for again when it was refused. */
  actAs(giveToken: () => Promise<string>): Promise<void>
}

export function createAuthentication(deps: {
  origin: string
  token: string | undefined
  store: CredentialStore
  oauth: Pick<OAuth, 'refresh'>
}): Authentication {
  const { origin, store, oauth } = deps
  let given: { token: string; give: () => Promise<string> } | undefined

  async function refreshUnless(isGood: (credentials: Credentials) => boolean): Promise<string | undefined> {
    return store.locked(async () => {
      // Another process may have renewed it while this one waited.
      const current = await store.read(origin)
      if (current === undefined || isGood(current)) return current?.access_token
      const { refresh_token } = current
      if (refresh_token === undefined) return undefined
      try {
        const renewed = await oauth.refresh(current, refresh_token)
        await store.write(origin, renewed)
        return renewed.access_token
      } catch (error) {
        // The service refused for good; anything else (no network) is told as it is.
        if (error instanceof ApiFailure && error.status < 500) return undefined
        throw error
      }
    })
  }

  return {
    async token() {
      if (deps.token !== undefined) return deps.token
      if (given) return given.token
      const stored = await store.read(origin)
      if (stored === undefined || stored.expires_at - EARLY_MS > Date.now()) return stored?.access_token
      return refreshUnless((current) => current.expires_at - EARLY_MS > Date.now())
    },
    async actAs(give) {
      given = { token: await give(), give }
    },
    async renew(refused) {
      if (given) {
        if (given.token === refused) given = { ...given, token: await given.give() }
        return given.token
      }
      if (deps.token !== undefined || (await store.read(origin)) === undefined) return undefined
      return refreshUnless((current) => current.access_token !== refused)
    },
  }
}
