/** What makes addresses of previews unguessable, and what lets members in where only they may look. */
import { equalTexts, type Secrets } from './secrets.ts'

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'
const SIGNATURE_CHARS = 12

/** The label of a version in its preview address: its number, and 60 bits that only the service knows. */
export function previewLabelOf(secrets: Pick<Secrets, 'sign'>, siteId: string, versionNumber: number): string {
  const signature = Buffer.from(secrets.sign('preview-label', `${siteId}\n${versionNumber}`), 'base64url')
  const chars = Array.from({ length: SIGNATURE_CHARS }, (_, index) => {
    const bit = index * 5
    const pair = signature.readUInt16BE(Math.floor(bit / 8))
    return BASE32[(pair >> (11 - (bit % 8))) & 31]
  })
  return `${versionNumber}-${chars.join('')}`
}

export function isPreviewLabelOf(
  secrets: Pick<Secrets, 'sign'>,
  siteId: string,
  versionNumber: number,
  label: string,
): boolean {
  return equalTexts(previewLabelOf(secrets, siteId, versionNumber), label)
}

/**
 * `entry`: carried in an address from the service's host to that of a preview, for a minute. `visit`: the cookie that it
 * is exchanged for there. Both are worth nothing at another drop, and an entry nothing at another host.
 */
export type PassKind = 'entry' | 'visit'

export function makePass(
  secrets: Pick<Secrets, 'sign'>,
  pass: { kind: PassKind; siteId: string; host: string; expiresAt: number },
): string {
  return `${pass.expiresAt}.${secrets.sign('preview-pass', textOf(pass))}`
}

export function isPass(
  secrets: Pick<Secrets, 'verify'>,
  given: string,
  wanted: { kind: PassKind; siteId: string; host: string; now: number },
): boolean {
  const [, digits, signature] = /^(\d{13})\.([A-Za-z0-9_-]{43})$/.exec(given) ?? []
  if (digits === undefined || signature === undefined || Number(digits) <= wanted.now) return false
  return secrets.verify('preview-pass', textOf({ ...wanted, expiresAt: Number(digits) }), signature)
}

function textOf({
  kind,
  siteId,
  host,
  expiresAt,
}: {
  kind: PassKind
  siteId: string
  host: string
  expiresAt: number
}): string {
  return [kind, siteId, host, expiresAt].join('\n')
}
