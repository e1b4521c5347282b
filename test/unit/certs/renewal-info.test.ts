import { expect, test } from 'vitest'
import { renewalId, renewalInfoSchema } from '../../../certs/orders/renewal-info.ts'

/** The example certificate of RFC 9773, appendix A. */
const EXAMPLE = `-----BEGIN CERTIFICATE-----
MIIBQzCB66ADAgECAgUAh2VDITAKBggqhkjOPQQDAjAVMRMwEQYDVQQDEwpFeGFt
cGxlIENBMCIYDzAwMDEwMTAxMDAwMDAwWhgPMDAwMTAxMDEwMDAwMDBaMBYxFDAS
BgNVBAMTC2V4YW1wbGUuY29tMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEeBZu
7cbpAYNXZLbbh8rNIzuOoqOOtmxA1v7cRm//AwyMwWxyHz4zfwmBhcSrf47NUAFf
qzLQ2PPQxdTXREYEnKMjMCEwHwYDVR0jBBgwFoAUaYhba4dGQEHhs3uEe6CuLN4B
yNQwCgYIKoZIzj0EAwIDRwAwRAIge09+S5TZAlw5tgtiVvuERV6cT4mfutXIlwTb
+FYN/8oCIClDsqBklhB9KAelFiYt9+6FDj3z4KGVelYM5MdsO3pK
-----END CERTIFICATE-----`

test('the identifier of the RFC example', () => {
  expect(renewalId(EXAMPLE)).toBe('aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE')
})

test('a suggested window is read, anything else refused', () => {
  const reply = { suggestedWindow: { start: '2026-01-02T04:00:00Z', end: '2026-01-03T04:00:00Z' } }
  expect(renewalInfoSchema.parse(reply)).toEqual({
    startMs: Date.parse('2026-01-02T04:00:00Z'),
    endMs: Date.parse('2026-01-03T04:00:00Z'),
  })
  expect(renewalInfoSchema.safeParse({}).success).toBe(false)
})
