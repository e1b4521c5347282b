/** A certificate with its key, what is read from it, and the sealed form in which it rests in Redis and Postgres. */
import { X509Certificate } from 'node:crypto'
import { z } from 'zod'
import type { Secrets } from '../secrets/secrets.ts'

/** `cert`: PEM chain, leaf first. `key`: PEM of its private key; secret, so it is sealed wherever it rests. */
export const certificateBundleSchema = z.object({ cert: z.string(), key: z.string() })
export type CertificateBundle = z.infer<typeof certificateBundleSchema>

/** The name is part of the seal: a bundle cannot be served for another name than it was sealed for. */
export function sealBundle(secrets: Secrets, name: string, bundle: CertificateBundle): string {
  return secrets.seal(JSON.stringify(bundle), `certificate:${name}`)
}

/** Throws when it was not sealed by this service for this name. */
export function openBundle(secrets: Secrets, name: string, sealed: string): CertificateBundle {
  return certificateBundleSchema.parse(JSON.parse(secrets.open(sealed, `certificate:${name}`).toString('utf8')))
}

export interface CertificateFacts {
  /** DNS names and IP addresses, lower case. */
  readonly names: readonly string[]
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

export function certificateFacts(certPem: string): CertificateFacts {
  const leaf = new X509Certificate(certPem)
  return {
    names: alternativeNames(leaf.subjectAltName ?? ''),
    notBeforeMs: leaf.validFromDate.getTime(),
    notAfterMs: leaf.validToDate.getTime(),
  }
}

/** Does one of a certificate's names stand for the host? A wildcard stands for exactly one label (RFC 6125 §6.4.3). */
export function namesCover(names: readonly string[], host: string): boolean {
  const wildcard = wildcardOf(host)
  return names.some((name) => name === host || name === wildcard)
}

/** `a.example.com` → `*.example.com`; undefined for a single label. */
export function wildcardOf(host: string): string | undefined {
  const dot = host.indexOf('.')
  return dot === -1 ? undefined : `*${host.slice(dot)}`
}

/** OpenSSL's text form: `DNS:a.example, DNS:*.example, IP Address:127.0.0.1`. */
function alternativeNames(text: string): string[] {
  return text
    .split(', ')
    .map((entry) => /^(?:DNS|IP Address):(.+)$/.exec(entry)?.[1]?.toLowerCase())
    .filter((name) => name !== undefined)
}
