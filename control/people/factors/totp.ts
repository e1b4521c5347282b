/** One-time codes of a generator (RFC 6238: SHA-1, six digits, thirty seconds): no I/O, no clock. */
import { createHmac } from 'node:crypto'
import { equalTexts } from '../../../shared/secrets/secrets.ts'

export const STEP_SECONDS = 30
const DIGITS = 6
/** A phone's clock may be one step off, in either direction. */
const DRIFT_STEPS = 1
/** RFC 4226 §4: 160 bits. */
export const SECRET_BYTES = 20

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** RFC 4648 §6, without padding: what generators take when it is typed. */
export function base32(bytes: Uint8Array): string {
  let text = ''
  let bits = 0
  let value = 0
  for (const byte of bytes) {
    value = (value << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += ALPHABET.charAt((value >>> bits) & 31)
      value &= (1 << bits) - 1
    }
  }
  return bits > 0 ? text + ALPHABET.charAt((value << (5 - bits)) & 31) : text
}

export const codeStepAt = (nowMs: number): number => Math.floor(nowMs / 1000 / STEP_SECONDS)

/** RFC 4226 §5.3. */
export function codeAt(secret: Uint8Array, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const digest = createHmac('sha1', secret).update(counter).digest()
  const offset = (digest.at(-1) ?? 0) & 15
  return String((digest.readUInt32BE(offset) & 0x7fffffff) % 10 ** DIGITS).padStart(DIGITS, '0')
}

/** The step that a code is of; undefined when it is wrong, or was taken before. */
export function matchingStep(
  secret: Uint8Array,
  typed: string,
  { nowMs, lastStep }: { nowMs: number; lastStep: number },
): number | undefined {
  const code = typed.replaceAll(/\s/g, '')
  if (!/^\d{6}$/.test(code)) return undefined
  const now = codeStepAt(nowMs)
  return Array.from({ length: 2 * DRIFT_STEPS + 1 }, (_, index) => now - DRIFT_STEPS + index).find(
    (step) => step > lastStep && equalTexts(codeAt(secret, step), code),
  )
}

/** What a QR code carries to the generator. */
export function otpauthUri(secret: Uint8Array, { account, issuer }: { account: string; issuer: string }): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`
  return `otpauth://totp/${label}?secret=${base32(secret)}&issuer=${encodeURIComponent(issuer)}`
}
