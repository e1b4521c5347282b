/** Accounts: who somebody is, and everything that happens to that. See contract.ts for the promises. */
import { DAY_MS, type Clock } from '../../../shared/clock.ts'
import type { Log } from '../../../shared/log.ts'
import { createProofOfWork } from '../../../shared/proof-of-work.ts'
import type { Secrets } from '../../../shared/secrets.ts'
import type { Pool } from '../../ground/database/sql.ts'
import type { Request } from '../../ground/http/route.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import { createAbandonment, type AbandonmentSettings } from './abandonment.ts'
import { createClosing, createCloseAccount } from './closing.ts'
import type { AccountHooks, Accounts } from './contract.ts'
import { createEmailChange } from './email-change.ts'
import { createErasure } from './erasure.ts'
import { createLinks } from './links.ts'
import { createPasswords } from './passwords.ts'
import { sweepAccounts } from './queries.ts'
import { SESSION_COOKIE } from '../access/session-cookie.ts'
import { aliveAt } from '../access/sessions.ts'
import { createSigningIn } from './signing-in.ts'
import { createSigningUp } from './signing-up.ts'
import { createThrottle } from '../../ground/http/limits/throttle.ts'
import { createVerification } from './verification.ts'

/** A link opened long after its end is still told apart from a wrong one. */
const KEEP_DEAD_LINKS_MS = 30 * DAY_MS

export interface AccountsOptions {
  readonly sql: Pool
  readonly clock: Clock
  readonly log: Log
  readonly baseUrl: string
  readonly secrets: Pick<Secrets, 'sign' | 'verify'>
  readonly enqueueMail: EnqueueMail
  readonly hooks: AccountHooks
  /** How long what names the person of a closed account is kept in logs. */
  readonly personalDataKeptMs: number
  readonly settings: AbandonmentSettings
  /** The address of a drop. */
  readonly dropUrl: (slug: string) => string
  /** Header in which the proxy in front tells the visitor's country; undefined when none is trusted. */
  readonly geoHeader: string | undefined
  /** The browser's verified anonymous id. */
  readonly anonymousIdOf: (request: Request) => string | undefined
}

export function createAccounts(options: AccountsOptions): Accounts {
  const { sql, clock, baseUrl, enqueueMail, geoHeader, anonymousIdOf, secrets } = options
  const deps = {
    ...options,
    throttle: createThrottle({ sql, clock }),
    proofOfWork: createProofOfWork(secrets),
    links: createLinks({ clock, baseUrl, dropUrl: options.dropUrl, enqueueMail }),
    now: () => new Date(clock.now()),
  }
  const erasure = createErasure({ sql, clock, keptMs: options.personalDataKeptMs })
  const closeAccount = createCloseAccount(deps)
  return {
    visit: (request) => ({
      ip: request.ip,
      userAgent: request.header('user-agent') ?? '',
      acceptLanguage: request.header('accept-language'),
      geoCountry: geoHeader === undefined ? undefined : request.header(geoHeader),
      anonymousId: anonymousIdOf(request),
      sessionSecret: request.cookie(SESSION_COOKIE),
    }),
    async sweep() {
      await sweepAccounts(sql, aliveAt(deps.now()), new Date(clock.now() - KEEP_DEAD_LINKS_MS))
      await erasure.run()
    },
    ...createSigningUp(deps),
    ...createSigningIn(deps),
    ...createVerification(deps),
    ...createPasswords(deps),
    ...createEmailChange(deps),
    ...createClosing({ ...deps, closeAccount }),
    ...createAbandonment({ ...deps, closeAccount }),
  }
}
