import { expect, test } from 'vitest'
import { ownCertificateFinding } from '../../../control/operations/admin/doctor/own-certificates.ts'
import type { RetryState } from '../../../shared/certificates/retry.ts'

const NOW_MS = 1_700_000_000_000
const DAY_MS = 86_400_000
const retry = (attempts: number, reason: RetryState['reason'] = 'internal'): RetryState => ({
  attempts,
  next_attempt_ms: NOW_MS + 60_000,
  reason,
  last_error: 'it refuses (REFUSED)',
  failures_ms: [],
})
const finding = (endsMs: number | undefined, state?: RetryState) =>
  ownCertificateFinding({ name: '*.sites.example', endsMs, retry: state }, NOW_MS)

test('nothing is said where no edge orders certificates for the service itself', () => {
  expect(finding(undefined)).toBeUndefined()
  // A certificate from before, which files have replaced.
  expect(finding(NOW_MS - DAY_MS)).toBeUndefined()
})

test('a good certificate is fine, also while a renewal failed once', () => {
  expect(finding(NOW_MS + DAY_MS)).toMatchObject({ state: 'ok' })
  expect(finding(NOW_MS + DAY_MS, retry(1))).toMatchObject({ state: 'ok' })
})

test.each([
  ['internal', /DNS01 settings/],
  ['dns', /_acme-challenge/],
  ['caa_forbids', /issuewild/],
  ['ca_unavailable', /ACME_DIRECTORY_URL/],
  ['challenge_wrong', /DNS01_WAIT/],
] as const)('no certificate because of %s: what was said, and what to do', (reason, mend) => {
  expect(finding(undefined, retry(1, reason))).toMatchObject({
    check: 'certificate *.sites.example',
    state: 'problem',
    detail: expect.stringContaining('it refuses (REFUSED)') as string,
    mend: expect.stringMatching(mend) as string,
  })
  expect(finding(NOW_MS + DAY_MS, retry(3, reason))).toMatchObject({ state: 'warning' })
})
