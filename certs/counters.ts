/** Counts what the issuer does, for the edge's metrics. */
import type { FailureReason } from '../shared/certificates/retry.ts'
import type { CertificateEvents } from './renew.ts'

export interface CertificateCounts {
  readonly issued: number
  readonly renewed: number
  readonly revoked: number
  /** Orders that waited for room in the budget. */
  readonly postponed: number
  readonly failed: ReadonlyMap<FailureReason, number>
  /** Time that all orders took, and the last one. */
  readonly issueSeconds: number
  readonly lastIssueSeconds: number
  /** As of the last look at everything. */
  readonly certificates: number
  readonly wanted: number
  readonly fewestDaysLeft: number | undefined
}

export function createCertificateCounters(): { readonly events: CertificateEvents; read(): CertificateCounts } {
  const failed = new Map<FailureReason, number>()
  const orders = { issued: 0, renewed: 0, revoked: 0, postponed: 0, issueSeconds: 0, lastIssueSeconds: 0 }
  let survey: Parameters<NonNullable<CertificateEvents['surveyed']>>[0] = {
    certificates: 0,
    wanted: 0,
    fewestDaysLeft: undefined,
  }
  const took = (seconds: number): void => {
    orders.issueSeconds += seconds
    orders.lastIssueSeconds = seconds
  }
  return {
    events: {
      issued(_, seconds) {
        orders.issued += 1
        took(seconds)
      },
      renewed(_, seconds) {
        orders.renewed += 1
        took(seconds)
      },
      revoked() {
        orders.revoked += 1
      },
      postponed() {
        orders.postponed += 1
      },
      failed(_, reason) {
        failed.set(reason, (failed.get(reason) ?? 0) + 1)
      },
      surveyed(summary) {
        survey = summary
      },
    },
    read: () => ({ ...orders, failed, ...survey }),
  }
}
