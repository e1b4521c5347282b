/**
 * Everything derived from SECRET_KEY. One master key, one derived key per purpose (HKDF), so that
 * a value made for one purpose can never be replayed for another.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'

export type Purpose =
  | 'seal'
  | 'unlock-cookie'
  | 'anonymous-cookie'
  | 'anonymous-network'
  | 'csrf'
  | 'tls-tickets'
  | 'proof-of-work'
  | 'oauth-refresh'
  | 'device-code'
  | 'oauth-client'
  | 'content-upload'
  | 'password-tag'
  | 'first-owner'
  | 'pending-sign-in'
  | 'preview-label'
  | 'preview-pass'

export interface Secrets {
  /** Authenticated encryption (AES-256-GCM); `context` must be given again to open it. */
  seal(plain: Uint8Array | string, context: string): string
  /** Throws when it was not sealed by this key and context. */
  open(sealed: string, context: string): Buffer
  /** Signature (base64url) of a text for one purpose. */
  sign(purpose: Purpose, text: string): string
  verify(purpose: Purpose, text: string, signature: string): boolean
  /** 32 raw bytes for one purpose. */
  key(purpose: Purpose): Buffer
}

export function createSecrets(secretKey: string): Secrets {
  const derived = new Map<Purpose, Buffer>()
  const key = (purpose: Purpose): Buffer => {
    let bytes = derived.get(purpose)
    if (!bytes) derived.set(purpose, (bytes = Buffer.from(hkdfSync('sha256', secretKey, 'dropway', purpose, 32))))
    return bytes
  }
  const sign = (purpose: Purpose, text: string): string =>
    createHmac('sha256', key(purpose)).update(text).digest('base64url')
  return {
    key,
    sign,
    verify: (purpose, text, signature) => equalTexts(sign(purpose, text), signature),
    seal(plain, context) {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key('seal'), nonce).setAAD(Buffer.from(context))
      const body = Buffer.concat([cipher.update(plain), cipher.final()])
      return `s1.${Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64url')}`
    },
    open(sealed, context) {
      if (!sealed.startsWith('s1.')) throw new Error('not a sealed value')
      const bytes = Buffer.from(sealed.slice(3), 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', key('seal'), bytes.subarray(0, 12))
        .setAAD(Buffer.from(context))
        .setAuthTag(bytes.subarray(12, 28))
      return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()])
    },
  }
}

/** Constant-time comparison of two texts of any length. */
export function equalTexts(a: string, b: string): boolean {
  return timingSafeEqual(createHash('sha256').update(a).digest(), createHash('sha256').update(b).digest())
}

/** How bearer secrets (tokens, sessions, links) are kept: they have 160+ random bits, so a plain hash is enough. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** A fresh bearer secret, URL-safe. */
export function randomSecret(bytes = 24): string {
  return randomBytes(bytes).toString('base64url')
}
