/**
 * Whether this edge could serve what it was told. Asked before it replaces what is served now: a publisher whose version
 * cannot be served learns it, and visitors go on with the version before.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import tls from 'node:tls'
import { LRUCache } from 'lru-cache'
import type { BlobStore } from '../../../shared/blobs/blob-store.ts'
import { openBundle } from '../../../shared/certificates/bundle.ts'
import { LANDING_PAGE } from '../../../shared/content/upload-kind.ts'
import { createManifestReader, type ManifestPart } from '../../../shared/content/manifest-reader.ts'
import type { Manifest, ManifestFiles } from '../../../shared/contracts/manifest.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import { firstLine } from './read-entries.ts'
import type { Entry, Replica } from '../replica/replica.ts'

/** Why an entry cannot be used; undefined: it can. */
export type ProblemOf = (entry: Entry) => Promise<string | undefined>

export interface UsabilityDependencies {
  readonly replica: Pick<Replica, 'route'>
  readonly blobs: Pick<BlobStore, 'read' | 'has'>
  readonly secrets: Secrets
  /** Throws on what cannot be served. */
  indexManifest(manifest: Manifest): unknown
}

/** Long manifests whose next version is looked at where it differs: as many as have so many bytes. */
const HELD_BYTES = 16_000_000

export function createProblemOf({ replica, blobs, secrets, indexManifest }: UsabilityDependencies): ProblemOf {
  const reader = createManifestReader(blobs, landingOf)
  const held = new LRUCache<string, readonly ManifestPart<string | undefined>[]>({
    maxSize: HELD_BYTES,
    dispose: (parts) => reader.release(parts),
  })

  async function requireSite(manifestHash: string): Promise<void> {
    const { rest, parts, size } = await reader.read(manifestHash)
    indexManifest(rest)
    hold(manifestHash, parts, size)
    for (const { read: landing } of parts)
      if (landing !== undefined && !(await blobs.has(landing)))
        throw new Error('its landing page is not in the blob store')
  }

  function hold(manifestHash: string, parts: readonly ManifestPart<string | undefined>[], size: number): void {
    const isLong = parts.some(({ text }) => text !== undefined)
    if (!isLong || size > HELD_BYTES) return
    held.set(manifestHash, reader.hold(parts), { size })
  }

  async function requireUsable(entry: Entry): Promise<void> {
    if (entry.kind === 'certificate' && entry.value !== '') requireCertificate(secrets, entry.name, entry.value)
    if (entry.kind !== 'route' || entry.record.kind !== 'site' || entry.record.state !== 'live') return
    const { host, manifest } = entry.record
    if (manifest === null) throw new Error('it is live and has no manifest')
    const known = replica.route(host)
    // What is served already is not asked for again with every change of a setting.
    if (known?.kind === 'site' && known.manifest === manifest) return
    await requireSite(manifest)
  }

  return async (entry) => {
    try {
      await requireUsable(entry)
      return undefined
    } catch (error) {
      return firstLine(error)
    }
  }
}

/** The hash of its bytes. */
function landingOf(files: ManifestFiles): string | undefined {
  return files.find(([path]) => path === LANDING_PAGE)?.[1].hash
}

/** As the workers use it: opened, a pair, and one that TLS takes. */
function requireCertificate(secrets: Secrets, name: string, sealed: string): void {
  const { cert, key } = openBundle(secrets, name, sealed)
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
    throw new Error('the certificate and its key do not belong together')
  tls.createSecureContext({ cert, key })
}
