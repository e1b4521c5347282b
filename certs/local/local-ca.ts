/**
 * A certificate authority of one's own, for machines where no one bought a wildcard certificate.
 * It lives in `<DATA_DIR>/ca`: `ca.pem` is the root that people may import into a browser, `ca.key` its key (0600),
 * `service.pem` the certificate of the service's own names with its key (0600).
 *
 * Two processes may start at once. The root's key is linked into place (the first one wins) and the root is
 * made from the key that won, so that any two writers agree. The service certificate is one file, renamed
 * into place: whichever writes last, it is whole and signed by the same root.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  X509Certificate,
  type KeyObject,
} from 'node:crypto'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { DAY_MS, HOUR_MS, type Clock } from '../../shared/running/clock.ts'
import { certificateFacts, type CertificateBundle } from '../../shared/certificates/bundle.ts'
import { readIfThere, readOrCreate, replaceFile } from '../../shared/secrets/whole-files.ts'
import { renewalDueAt } from '../policy.ts'
import { signCertificate } from './x509.ts'

const ROOT_LIFETIME_MS = 3650 * DAY_MS
/** Browsers refuse leaves of more than 398 days. */
const LEAF_LIFETIME_MS = 365 * DAY_MS
/** Machines on one network do not agree on the time to the second. */
const CLOCK_SKEW_MS = HOUR_MS

export interface LocalCa {
  /** The root, to be imported into browsers and handed to test clients. */
  readonly rootFile: string
  readonly rootPem: string
  /** The certificate for these names: the kept one, or a new one when it is due or names others. */
  serviceCertificate(names: readonly string[]): CertificateBundle
  /** A new certificate with a key of its own, kept nowhere. */
  issue(names: readonly string[]): CertificateBundle
  /** A leaf for names of the moment, kept nowhere. All such leaves of one process share one key. */
  mint(names: readonly string[]): CertificateBundle
}

export function openLocalCa(dataDir: string, clock: Clock): LocalCa {
  const folder = path.join(dataDir, 'ca')
  mkdirSync(folder, { recursive: true })
  const caKey = createPrivateKey(readOrCreate(path.join(folder, 'ca.key'), newKeyPem))
  const rootFile = path.join(folder, 'ca.pem')
  const rootPem = openRoot(rootFile, caKey, clock)
  const issuer = commonNameOf(rootPem)
  const leaf = (key: KeyObject, names: readonly string[]): string => {
    const [subject] = names
    if (subject === undefined) throw new Error('A certificate needs a name')
    const own = signCertificate({
      subject,
      issuer,
      subjectKey: key,
      issuerKey: caKey,
      notBeforeMs: clock.now() - CLOCK_SKEW_MS,
      notAfterMs: clock.now() - CLOCK_SKEW_MS + LEAF_LIFETIME_MS,
      role: { kind: 'server', names },
    })
    return own + rootPem
  }
  const issue = (names: readonly string[]): CertificateBundle => {
    const key = newKeyPem()
    return { cert: leaf(createPrivateKey(key), names), key }
  }
  let mintKey: { pem: string; key: KeyObject } | undefined
  return {
    rootFile,
    rootPem,
    issue,
    serviceCertificate(names) {
      const file = path.join(folder, 'service.pem')
      const kept = readBundle(file)
      if (kept && isUsable(kept, names, rootPem, clock)) return kept
      const bundle = issue(names)
      replaceFile(file, bundle.key + bundle.cert)
      return bundle
    },
    mint(names) {
      if (!mintKey) {
        const pem = newKeyPem()
        mintKey = { pem, key: createPrivateKey(pem) }
      }
      return { cert: leaf(mintKey.key, names), key: mintKey.pem }
    },
  }
}

/** A root that is about to end is replaced by one of the same name and key, which old leaves still chain to. */
function openRoot(file: string, key: KeyObject, clock: Clock): string {
  const create = (commonName: string): string =>
    signCertificate({
      subject: commonName,
      issuer: commonName,
      subjectKey: key,
      issuerKey: key,
      notBeforeMs: clock.now() - CLOCK_SKEW_MS,
      notAfterMs: clock.now() + ROOT_LIFETIME_MS,
      role: { kind: 'ca' },
    })
  // The random part tells the roots of several machines apart in a browser's list.
  const pem = readOrCreate(file, () => create(`Dropway local CA ${randomBytes(3).toString('hex')}`))
  const { notAfterMs } = certificateFacts(pem)
  if (notAfterMs - clock.now() > LEAF_LIFETIME_MS) return pem
  const renewed = create(commonNameOf(pem))
  replaceFile(file, renewed)
  return renewed
}

function isUsable(bundle: CertificateBundle, names: readonly string[], rootPem: string, clock: Clock): boolean {
  const facts = certificateFacts(bundle.cert)
  const hasAllNames = names.every((name) => facts.names.includes(asWritten(name)))
  const isSigned = new X509Certificate(bundle.cert).verify(createPublicKey(rootPem))
  return hasAllNames && isSigned && clock.now() < renewalDueAt(facts, 0)
}

/** OpenSSL prints IPv6 addresses in full. */
function asWritten(name: string): string {
  return name === '::1' ? '0:0:0:0:0:0:0:1' : name
}

function newKeyPem(): string {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    type: 'pkcs8',
    format: 'pem',
  }) as string
}

function commonNameOf(pem: string): string {
  const { subject } = new X509Certificate(pem)
  const [, name] = /^CN=(.+)$/m.exec(subject) ?? []
  if (name === undefined) throw new Error(`A certificate authority without a common name: ${subject}`)
  return name
}

function readBundle(file: string): CertificateBundle | undefined {
  const pem = readIfThere(file)
  const start = pem?.indexOf('-----BEGIN CERTIFICATE-----') ?? -1
  return pem === undefined || start === -1 ? undefined : { key: pem.slice(0, start), cert: pem.slice(start) }
}
