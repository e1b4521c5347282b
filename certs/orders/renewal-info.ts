/** ACME Renewal Information (RFC 9773): how a certificate is named in the question, and what the answer says. */
import { X509Certificate } from 'node:crypto'
import { z } from 'zod'
import { SECOND_MS } from '../../shared/running/clock.ts'
import type { RenewalWindow } from '../policy.ts'

/** What the CA says about the renewal of one certificate. */
export interface RenewalAdvice {
  readonly window: RenewalWindow
  /** When it wants to be asked again; undefined when it does not say. */
  readonly retryAfterMs: number | undefined
}

/** A window that ends before it begins is as good as no answer (§4.2). */
export const renewalInfoSchema = z
  .object({
    suggestedWindow: z.object({ start: z.iso.datetime({ offset: true }), end: z.iso.datetime({ offset: true }) }),
  })
  .transform(({ suggestedWindow }): RenewalWindow => ({
    startMs: Date.parse(suggestedWindow.start),
    endMs: Date.parse(suggestedWindow.end),
  }))
  .refine(({ startMs, endMs }) => endMs > startMs, 'the window ends before it begins')

/** Seconds or a date (RFC 9110 §10.2.3); anything else says nothing. */
export function parseRetryAfter(header: unknown, nowMs: number): number | undefined {
  if (typeof header !== 'string') return undefined
  const waitMs = /^\d+$/.test(header) ? Number(header) * SECOND_MS : Date.parse(header) - nowMs
  return Number.isFinite(waitMs) ? waitMs : undefined
}

/** DER of the OID 2.5.29.35 (authorityKeyIdentifier), followed by OCTET STRING { SEQUENCE { [0] keyIdentifier … } }. */
const AUTHORITY_KEY_ID = Buffer.from('0603551d23', 'hex')

/** `base64url(authority key id) "." base64url(serial)` (RFC 9773 §4.1); undefined for one that names no such key. */
export function renewalId(certPem: string): string | undefined {
  const certificate = new X509Certificate(certPem)
  const authority = authorityKeyId(certificate.raw)
  return authority && `${authority.toString('base64url')}.${serial(certificate).toString('base64url')}`
}

function authorityKeyId(der: Buffer): Buffer | undefined {
  const start = der.indexOf(AUTHORITY_KEY_ID)
  const sequence = start + AUTHORITY_KEY_ID.length + 2
  const length = der[sequence + 3]
  if (start === -1 || der[sequence] !== 0x30 || der[sequence + 2] !== 0x80 || length === undefined) return undefined
  return der.subarray(sequence + 4, sequence + 4 + length)
}

/** With the sign byte of its DER form. */
function serial(certificate: X509Certificate): Buffer {
  const hex = certificate.serialNumber
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex')
  const [highest = 0] = bytes
  return highest >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes
}
