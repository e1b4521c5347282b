/** Where certificates of custom domains come from: an ACME CA, or the local CA where none is set. */
import type { CertificateBundle } from '../shared/certificate-bundle.ts'
import type { FailureReason } from '../shared/certificate-retry.ts'
import type { LocalCa } from './local-ca.ts'
import type { RenewalWindow } from './policy.ts'

export interface CertificateSource {
  /** Throws an IssueError that says why not. */
  obtain(name: string): Promise<CertificateBundle>
  /** Best effort: the domain is no longer ours. */
  revoke(bundle: CertificateBundle): Promise<void>
  /** When the CA would like to see it renewed (ARI); undefined when it does not say. */
  suggestedWindow(bundle: CertificateBundle): Promise<RenewalWindow | undefined>
}

export class IssueError extends Error {
  readonly reason: FailureReason
  constructor(reason: FailureReason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}

export function createLocalSource(ca: LocalCa): CertificateSource {
  return {
    obtain: async (name) => ca.issue([name]),
    revoke: async () => {},
    suggestedWindow: async () => undefined,
  }
}
