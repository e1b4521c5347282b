/** Where certificates of custom domains come from: an ACME CA, or the local CA where none is set. */
import type { CertificateBundle } from '../shared/certificates/bundle.ts'
import type { FailureReason } from '../shared/certificates/retry.ts'
import type { LocalCa } from './local/local-ca.ts'
import type { RenewalAdvice } from './orders/renewal-info.ts'

export interface CertificateSource {
  /** `previous` is the certificate that it is to replace. Throws an IssueError that says why not. */
  obtain(name: string, previous?: CertificateBundle): Promise<CertificateBundle>
  /** Best effort: the domain is no longer ours. */
  revoke(bundle: CertificateBundle): Promise<void>
  /** When the CA would like to see it renewed (ARI); undefined where no CA does that. Throws when it gives no answer. */
  renewalAdvice(bundle: CertificateBundle): Promise<RenewalAdvice | undefined>
}

export class IssueError extends Error {
  readonly reason: FailureReason
  /** The CA's own word for it (RFC 8555 §6.7), without the prefix. */
  readonly problem: string | undefined
  /** For how long the CA wants to be left alone. */
  readonly retryAfterMs: number | undefined
  /** False when the CA said nothing at all: then the message is ours, and no one's words to quote. */
  readonly hasAnswered: boolean

  constructor(
    reason: FailureReason,
    message: string,
    { problem, retryAfterMs, hasAnswered = true, ...options }: ErrorOptions & IssueErrorDetails = {},
  ) {
    super(message, options)
    this.reason = reason
    this.problem = problem
    this.retryAfterMs = retryAfterMs
    this.hasAnswered = hasAnswered
  }
}

interface IssueErrorDetails {
  readonly problem?: string | undefined
  readonly retryAfterMs?: number | undefined
  readonly hasAnswered?: boolean
}

export function createLocalSource(ca: LocalCa): CertificateSource {
  return {
    obtain: async (name) => ca.issue([name]),
    revoke: async () => {},
    renewalAdvice: async () => undefined,
  }
}
