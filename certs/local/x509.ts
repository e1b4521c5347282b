/** Signs the certificates of the local CA: X.509 v3, ECDSA P-256 with SHA-256 (RFC 5280). */
import { createHash, createPublicKey, randomBytes, sign, type KeyObject } from 'node:crypto'
import { isIP } from 'node:net'
import * as der from './der.ts'

export interface CertificateRequest {
  readonly subject: string
  readonly issuer: string
  readonly subjectKey: KeyObject
  readonly issuerKey: KeyObject
  readonly notBeforeMs: number
  readonly notAfterMs: number
  /** A leaf names its hosts and addresses; a CA names none. */
  readonly role: { readonly kind: 'ca' } | { readonly kind: 'server'; readonly names: readonly string[] }
}

const OID = {
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  commonName: '2.5.4.3',
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyId: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
} as const

/** Bits of KeyUsage (RFC 5280 §4.2.1.3) as [octet, unused bits]. */
const KEY_USAGE = { digitalSignature: [0x80, 7], certAndCrlSign: [0x06, 1] } as const

/** PEM of the signed certificate. */
export function signCertificate(request: CertificateRequest): string {
  const algorithm = der.sequence(der.objectId(OID.ecdsaWithSha256))
  const body = der.sequence(
    der.explicit(0, der.integer(Buffer.from([2]))),
    der.integer(serialNumber()),
    algorithm,
    name(request.issuer),
    der.sequence(der.time(request.notBeforeMs), der.time(request.notAfterMs)),
    name(request.subject),
    publicKeyInfo(request.subjectKey),
    der.explicit(3, der.sequence(...extensions(request))),
  )
  return toPem(der.sequence(body, algorithm, der.bits(sign('sha256', body, request.issuerKey))))
}

/** 127 random bits, positive and never zero. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16)
  bytes[0] = (bytes.readUInt8() & 0x7f) | 0x40
  return bytes
}

function name(commonName: string): Buffer {
  return der.sequence(der.set(der.sequence(der.objectId(OID.commonName), der.text(commonName))))
}

function extensions({ role, subjectKey, issuerKey }: CertificateRequest): Buffer[] {
  const isCa = role.kind === 'ca'
  const usage = isCa ? KEY_USAGE.certAndCrlSign : KEY_USAGE.digitalSignature
  // A root signs leaves only: path length 0.
  const constraints = isCa ? der.sequence(der.boolean(true), der.integer(Buffer.from([0]))) : der.sequence()
  const common = [
    extension(OID.basicConstraints, constraints, true),
    extension(OID.keyUsage, der.bits(Buffer.from([usage[0]]), usage[1]), true),
    extension(OID.subjectKeyId, der.octets(keyId(subjectKey))),
    extension(OID.authorityKeyId, der.sequence(der.implicit(0, keyId(issuerKey)))),
  ]
  if (role.kind === 'ca') return common
  return [
    ...common,
    extension(OID.extendedKeyUsage, der.sequence(der.objectId(OID.serverAuth))),
    extension(OID.subjectAltName, der.sequence(...role.names.map(alternativeName))),
  ]
}

function extension(id: string, value: Buffer, critical = false): Buffer {
  return der.sequence(der.objectId(id), ...(critical ? [der.boolean(true)] : []), der.octets(value))
}

function alternativeName(value: string): Buffer {
  return isIP(value) === 0 ? der.implicit(2, Buffer.from(value, 'ascii')) : der.implicit(7, addressBytes(value))
}

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number))
  const [head = '', tail] = address.split('::')
  const front = head === '' ? [] : head.split(':')
  const back = tail === undefined || tail === '' ? [] : tail.split(':')
  const groups = [...front, ...Array<string>(8 - front.length - back.length).fill('0'), ...back]
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex')
}

function publicKeyInfo(key: KeyObject): Buffer {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key
  return publicKey.export({ type: 'spki', format: 'der' })
}

function keyId(key: KeyObject): Buffer {
  return createHash('sha1').update(publicKeyInfo(key)).digest()
}

function toPem(bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}
