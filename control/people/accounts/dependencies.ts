/** What accounts need of the others, and what their parts share. */
import type { Clock } from '../../../shared/running/clock.ts'
import type { Log } from '../../../shared/running/log.ts'
import type { ProofOfWork } from '../../../shared/secrets/proof-of-work.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import type { Pool } from '../../ground/database/sql.ts'
import type { Throttle } from '../../ground/http/limits/throttle.ts'
import type { Request } from '../../ground/http/route.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import type { Factors } from '../factors/factors.ts'
import type { Passkeys } from '../factors/passkeys.ts'
import type { AccountHooks } from './contract.ts'
import type { Newcomers } from '../newcomers/newcomers.ts'
import type { Links } from './links.ts'
import type { AllowanceName } from './rules.ts'

export interface AbandonmentSettings {
  readonly unverifiedLifetimeMs: number
  readonly unverifiedWarningsMs: readonly number[]
}

export interface AccountsDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly log: Log
  readonly baseUrl: string
  readonly secrets: Pick<Secrets, 'sign' | 'verify'>
  readonly enqueueMail: EnqueueMail
  readonly hooks: AccountHooks
  readonly factors: Pick<
    Factors,
    'isEnrolled' | 'takeCode' | 'requestRecovery' | 'applyRecovery' | 'endPasskeys' | 'forget'
  >
  readonly passkeys: Pick<Passkeys, 'userOf'>
  readonly newcomers: Pick<Newcomers, 'admit' | 'policy'>
  /** Off: people come in by the operator's provider alone. */
  readonly passwordSignIn: boolean
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

/** Each part takes what it needs of this. */
export interface PartDependencies extends AccountsDependencies {
  readonly throttle: Throttle<AllowanceName>
  readonly links: Links
  readonly proofOfWork: ProofOfWork
  now(): Date
}
