/**
 * The certificate of the service's own names: the dashboard's host, `{sites_domain}` and `*.{sites_domain}`.
 * From files when the operator bought one, re-read when they change; as the issuer got it by dns-01, where that is set
 * up; else from the local CA, renewed before it ends.
 */
import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { isIP } from 'node:net'
import tls from 'node:tls'
import { HOUR_MS, SECOND_MS, type Clock } from '../shared/running/clock.ts'
import type { Log } from '../shared/running/log.ts'
import type { CertificateBundle } from '../shared/certificates/bundle.ts'
import type { LocalCa } from './local/local-ca.ts'

/** How soon a replaced file, or a certificate that has arrived, is served. */
const FILE_POLL_MS = 2 * SECOND_MS
/** The local CA's leaf lives for months; this only must happen before it ends. */
const RENEWAL_POLL_MS = HOUR_MS

export interface ServiceNames {
  readonly serviceHost: string
  readonly sitesDomain: string
}

export type ServiceCertificateSource =
  | { readonly kind: 'files'; readonly certFile: string; readonly keyFile: string }
  | { readonly kind: 'local-ca'; readonly ca: LocalCa }
  | {
      readonly kind: 'issued'
      /** The wildcard's, from the local replica; undefined while there is none. Called often, so it must cost little. */
      readonly read: () => CertificateBundle | undefined
      /** Its leaf is shown until the first certificate is there, so that the service can be reached at all. */
      readonly ca: LocalCa
    }

export interface ServiceCertificate {
  current(): CertificateBundle
  /** For `createCertificateIndex`; see `mintFor`. */
  readonly mint: ((name: string) => CertificateBundle | undefined) | undefined
  /** Calls back with every new certificate. Returns how to stop. */
  watch(onChange: (bundle: CertificateBundle) => void): () => void
}

export interface ServiceCertificateOptions {
  readonly source: ServiceCertificateSource
  readonly names: ServiceNames
  readonly clock: Clock
  readonly log: Log
}

export function openServiceCertificate(options: ServiceCertificateOptions): ServiceCertificate {
  const { source } = options
  switch (source.kind) {
    case 'files':
      return fromFiles(source, options)
    case 'issued':
      return fromIssuer(source, options)
    case 'local-ca':
      return fromLocalCa(source.ca, options)
    default:
      return source satisfies never
  }
}

/** Every name that the service certificate stands for. */
export function serviceCertificateNames({ serviceHost, sitesDomain }: ServiceNames): string[] {
  const names = new Set([serviceHost.replace(/^\[|\]$/g, ''), sitesDomain, `*.${sitesDomain}`])
  // On one machine people also type the address.
  if (names.has('localhost')) for (const address of ['127.0.0.1', '::1']) names.add(address)
  return [...names]
}

function fromLocalCa(
  ca: LocalCa,
  { names, log }: Pick<ServiceCertificateOptions, 'names' | 'log'>,
): ServiceCertificate {
  const all = serviceCertificateNames(names)
  const current = (): CertificateBundle => ca.serviceCertificate(all)
  return {
    current,
    mint: mintFor(ca, names),
    watch: (onChange) => poll(RENEWAL_POLL_MS, current, onChange, log),
  }
}

function fromIssuer(
  { read, ca }: Extract<ServiceCertificateSource, { kind: 'issued' }>,
  { names, log }: ServiceCertificateOptions,
): ServiceCertificate {
  const standIn = fromLocalCa(ca, { names, log })
  const current = (): CertificateBundle => read() ?? standIn.current()
  return { current, mint: undefined, watch: (onChange) => poll(FILE_POLL_MS, current, onChange, log) }
}

/**
 * Browsers, Node and OpenSSL ignore a wildcard directly below a top-level name (`*.localhost`), so there each
 * address gets a leaf of its own, made by the local CA when a visitor asks. Nothing leaves the process.
 */
function mintFor(ca: LocalCa, names: ServiceNames): ServiceCertificate['mint'] {
  if (names.sitesDomain.includes('.')) return undefined
  const suffix = `.${names.sitesDomain}`
  const all = serviceCertificateNames(names)
  return (name) => {
    const label = name.endsWith(suffix) ? name.slice(0, -suffix.length) : ''
    const isAddressOfOurs = /^[a-z0-9-]{1,63}$/.test(label) && isIP(name) === 0
    return isAddressOfOurs ? ca.mint([name, ...all]) : undefined
  }
}

function fromFiles(
  { certFile, keyFile }: { certFile: string; keyFile: string },
  { clock, log }: Pick<ServiceCertificateOptions, 'clock' | 'log'>,
): ServiceCertificate {
  const read = (): CertificateBundle => {
    const bundle = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
    // Throws when the two do not belong together, as they may for a moment while they are being replaced.
    tls.createSecureContext(bundle)
    return bundle
  }
  let good = read()
  let seen = stamp(certFile, keyFile)
  let toldOf: CertificateBundle | undefined
  /** Visitors are refused by their browsers, and nothing else here fails: the log is where an operator hears of it. */
  const tellIfEnded = (): void => {
    const end = new X509Certificate(good.cert).validToDate
    if (toldOf === good || end.getTime() > clock.now()) return
    toldOf = good
    log.error({ certFile, end }, `the certificate in SITES_CERT_FILE ended on ${end.toUTCString()}: replace the file`)
  }
  const current = (): CertificateBundle => {
    const now = stamp(certFile, keyFile)
    if (now !== seen) {
      good = read()
      seen = now
    }
    tellIfEnded()
    return good
  }
  return {
    current: () => good,
    mint: undefined,
    watch: (onChange) => poll(FILE_POLL_MS, current, onChange, log),
  }
}

function stamp(...files: string[]): string {
  return files
    .map((file) => statSync(file))
    .map((stat) => `${stat.ino}:${stat.mtimeMs}:${stat.size}`)
    .join('|')
}

function poll(
  everyMs: number,
  current: () => CertificateBundle,
  onChange: (bundle: CertificateBundle) => void,
  log: Log,
): () => void {
  let last = current()
  const timer = setInterval(() => {
    try {
      const bundle = current()
      if (bundle.cert === last.cert) return
      onChange(bundle)
      last = bundle
      log.info('the service certificate was replaced')
    } catch (error) {
      log.warn({ err: error }, 'the service certificate could not be read anew; the old one stays')
    }
  }, everyMs)
  timer.unref()
  return () => clearInterval(timer)
}
