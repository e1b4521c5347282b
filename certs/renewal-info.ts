/** ACME Renewal Information (RFC 9773): how a certificate is named in the question, and what the answer says. */
import { X509Certificate } from 'node:crypto'
import { z } from 'zod'
import type { RenewalWindow } from './policy.ts'

export const renewalInfoSchema = z
  .object({
    suggestedWindow: z.object({ start: z.iso.datetime({ offset: true }), end: z.iso.datetime({ offset: true }) }),
  })
  .transform(({ suggestedWindow }): RenewalWindow => ({
    startMs: Date.parse(suggestedWindow.start),
    endMs: Date.parse(suggestedWindow.end),
  }))

/** DER of the OID 2.5.29.35 (authorityKeyIdentifier), followed by OCTET STRING { SEQUENCE { [0] keyIdentifier … } }. */
const AUTHORITY_KEY_ID = Buffer.from('0603551d23', 'hex')

/** `base64url(authority key id) "." base64url(serial)` (RFC 9773 §4.1). */
export function renewalId(certPem: string): string {
  const certificate = new X509Certificate(certPem)
  return `${authorityKeyId(certificate.raw).toString('base64url')}.${serial(certificate).toString('base64url')}`
}

function authorityKeyId(der: Buffer): Buffer {
  const start = der.indexOf(AUTHORITY_KEY_ID)
  const sequence = start + AUTHORITY_KEY_ID.length + 2
  if (start === -1 || der[sequence] !== 0x30 || der[sequence + 2] !== 0x80)
    throw new Error('the certificate names no authority key')
  const length = der[sequence + 3]!
  return der.subarray(sequence + 4, sequence + 4 + length)
}

/** With the sign byte of its DER form. */
function serial(certificate: X509Certificate): Buffer {
  const hex = certificate.serialNumber
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex')
  return bytes[0]! >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes
}
