import type { ProofOfWork } from '../../../shared/proof-of-work.ts'
import type { AccountsOptions } from './accounts.ts'
import type { Links } from './links.ts'
import type { Throttle } from '../../ground/http/limits/throttle.ts'

/** What the parts of accounts share; each takes what it needs of it. */
export interface AccountDeps extends AccountsOptions {
  readonly throttle: Throttle
  readonly links: Links
  readonly proofOfWork: ProofOfWork
  now(): Date
}
