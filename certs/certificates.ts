/**
 * Which certificate a handshake gets. Synchronous and without any waiting: SNI callbacks run inside the handshake.
 *
 * Look-up order, for the name in lower case:
 *   1. a certificate of exactly this name (set here, or found by `lookup`, the edge's local replica)
 *   2. one of its wildcard parent
 *   3. a leaf minted by the local CA, where wildcards do not work (see service-certificate.ts)
 *   4. the default certificate
 * An unknown name never makes anything happen but step 4.
 *
 * Contexts are built on first use and bounded; bundles are small and kept, or come from `lookup`. A changed
 * certificate is swapped by `set`/`forget`: running connections keep theirs, the next handshake gets the new one.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import tls from 'node:tls'
import { LRUCache } from 'lru-cache'
import { certificateFacts, namesCover, wildcardOf, type CertificateBundle } from '../shared/certificates/bundle.ts'

/** A context takes about 40 kB of native memory and half a millisecond to build; this many serve the names of the moment. */
const DEFAULT_MAX_CONTEXTS = 1000

export interface CertificateIndexOptions {
  readonly fallback: CertificateBundle
  /** Bundles that are not held in memory, from the local replica. Must not block; undefined when there is none. */
  readonly lookup?: (name: string) => CertificateBundle | undefined
  /** Makes a certificate for a name of the service itself; undefined for any other name. */
  readonly mint?: (name: string) => CertificateBundle | undefined
  readonly maxContexts?: number
  /** Shared by all contexts: minVersion, ciphers, ticketKeys. */
  readonly tlsOptions?: Omit<tls.SecureContextOptions, 'cert' | 'key'>
  /** Told about a bundle that cannot be used; the name then gets the next certificate in the order. */
  readonly onBadBundle?: (name: string, error: unknown) => void
}

export interface CertificateIndex {
  contextFor(servername: string | undefined): tls.SecureContext
  /** Does the certificate that a handshake with this name got stand for the host too? If not, the answer is 421. */
  coversHost(servername: string | undefined | false, host: string): boolean
  /** Is there a certificate for exactly this name? */
  has(name: string): boolean
  set(name: string, bundle: CertificateBundle): void
  remove(name: string): void
  /** The bundle behind `lookup` has changed: the next handshake reads it anew. */
  forget(name: string): void
  setFallback(bundle: CertificateBundle): void
}

interface Entry {
  readonly context: tls.SecureContext
  readonly names: readonly string[]
}

export function createCertificateIndex(options: CertificateIndexOptions): CertificateIndex {
  const bundles = new Map<string, CertificateBundle>()
  const max = options.maxContexts ?? DEFAULT_MAX_CONTEXTS
  const entries = new LRUCache<string, Entry>({ max, dispose: release })
  // Minted leaves have a cache of their own: made-up names must not push out real certificates.
  const minted = new LRUCache<string, Entry>({ max, dispose: release })

  const build = (bundle: CertificateBundle): Entry => ({
    context: tls.createSecureContext({ ...options.tlsOptions, cert: bundle.cert, key: bundle.key }),
    names: certificateFacts(bundle.cert).names,
  })
  let fallback = build(options.fallback)

  function cached(
    cache: LRUCache<string, Entry>,
    name: string,
    find: (name: string) => CertificateBundle | undefined,
  ): Entry | undefined {
    const present = cache.get(name)
    if (present) return present
    try {
      const bundle = find(name)
      if (!bundle) return undefined
      const entry = build(bundle)
      cache.set(name, entry)
      return entry
    } catch (error) {
      options.onBadBundle?.(name, error)
      return undefined
    }
  }

  const findBundle = (name: string): CertificateBundle | undefined => bundles.get(name) ?? options.lookup?.(name)

  function entryFor(servername: string | undefined | false): Entry {
    if (!servername) return fallback
    const name = servername.toLowerCase()
    const wildcard = wildcardOf(name)
    return (
      cached(entries, name, findBundle) ??
      (wildcard === undefined ? undefined : cached(entries, wildcard, findBundle)) ??
      (options.mint ? cached(minted, name, options.mint) : undefined) ??
      fallback
    )
  }

  return {
    contextFor: (servername) => entryFor(servername).context,
    coversHost: (servername, host) => namesCover(entryFor(servername).names, host),
    has: (name) => cached(entries, name.toLowerCase(), findBundle) !== undefined,
    set(name, bundle) {
      requirePair(bundle)
      bundles.set(name, bundle)
      entries.delete(name)
    },
    remove(name) {
      bundles.delete(name)
      entries.delete(name)
    },
    forget(name) {
      entries.delete(name)
    },
    setFallback(bundle) {
      fallback = build(bundle)
      minted.clear()
    },
  }
}

/** Throws when it cannot be served: it must not replace a bundle that can. */
function requirePair({ cert, key }: CertificateBundle): void {
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
    throw new Error('the certificate and its key do not belong together')
}

/**
 * Native memory that the garbage collector does not see is given back at once: without this, many names in turn make
 * the process grow by hundreds of megabytes. Connections hold their own reference, and a handshake takes its context
 * in the same tick in which it was looked up.
 */
function release({ context }: Entry): void {
  ;(context.context as { close(): void }).close()
}
