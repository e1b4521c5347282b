/** Accounts: who a person is, and everything that happens to that. See contract.ts for the promises. */
import { errors } from '../../../shared/contracts/errors.ts'
import { DAY_MS } from '../../../shared/running/clock.ts'
import { createProofOfWork } from '../../../shared/secrets/proof-of-work.ts'
import { createThrottle } from '../../ground/http/limits/throttle.ts'
import { SESSION_COOKIE, sweepSessions } from '../access/sessions.ts'
import { createAbandonment, createCloseAccount, createClosing, createErasure } from './closing.ts'
import type { Accounts } from './contract.ts'
import type { AccountsDependencies, PartDependencies } from './dependencies.ts'
import { createEmailChange, createVerification } from './email.ts'
import { createLinks } from './links.ts'
import { createAccessEnd, createPasswords, createReadmission } from './passwords.ts'
import { deleteOldLinks } from './queries.ts'
import { ACCOUNT_ALLOWANCES } from './rules.ts'
import { createSigningIn } from './signing-in.ts'
import { createSigningUp } from './signing-up.ts'

/** A link opened long after its end is still told apart from a wrong one. */
const KEEP_DEAD_LINKS_MS = 30 * DAY_MS

const refusePassword = (): Promise<never> => Promise.reject(errors.passwordSignInOff())

/** What is closed where people come in by the operator's provider alone: every way of this service's own. */
const WITHOUT_PASSWORDS = {
  signUp: refusePassword,
  signIn: refusePassword,
  continueSignIn: refusePassword,
  signInWithPasskey: refusePassword,
  requestRecovery: refusePassword,
  requestReset: refusePassword,
  resetPassword: refusePassword,
  changePassword: refusePassword,
  requestEmailChange: refusePassword,
  confirmEmailChange: refusePassword,
} satisfies Partial<Accounts>

export function createAccounts(options: AccountsDependencies): Accounts {
  const { sql, clock, baseUrl, enqueueMail, geoHeader, anonymousIdOf, secrets } = options
  const deps: PartDependencies = {
    ...options,
    throttle: createThrottle({ sql, clock, allowances: ACCOUNT_ALLOWANCES }),
    proofOfWork: createProofOfWork(secrets),
    links: createLinks({ clock, baseUrl, dropUrl: options.dropUrl, enqueueMail }),
    now: () => new Date(clock.now()),
  }
  const erasure = createErasure({ sql, clock, keptMs: options.personalDataKeptMs })
  const closeAccount = createCloseAccount(deps)
  const accounts: Accounts = {
    circumstancesOf: (request) => ({
      ip: request.ip,
      userAgent: request.header('user-agent') ?? '',
      acceptLanguage: request.header('accept-language'),
      geoCountry: geoHeader === undefined ? undefined : request.header(geoHeader),
      anonymousId: anonymousIdOf(request),
      sessionSecret: request.cookie(SESSION_COOKIE),
    }),
    async sweep() {
      await sweepSessions(sql, deps.now())
      await deleteOldLinks(sql, new Date(clock.now() - KEEP_DEAD_LINKS_MS))
      await deps.throttle.sweep()
      await erasure.run()
    },
    ...createSigningUp(deps),
    ...createSigningIn(deps),
    ...createVerification(deps),
    ...createPasswords(deps),
    ...createAccessEnd(deps),
    ...createReadmission(deps),
    ...createEmailChange(deps),
    ...createClosing({ ...deps, closeAccount }),
    ...createAbandonment({ ...deps, closeAccount }),
  }
  return options.passwordSignIn ? accounts : { ...accounts, ...WITHOUT_PASSWORDS }
}
