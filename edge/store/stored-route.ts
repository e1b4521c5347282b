/**
 * A route record as the replica keeps it: a list instead of an object, hashes as bytes, the host only as the key. That
 * is about a third of the published JSON, and the revision stands first. Records are validated before they come here.
 */
import { ROUTE_RECORD_FORMAT, siteStates, type RouteRecord, type SiteRoute } from '../../shared/route-record.ts'

/** Changes with the contract or with the layout below; a file of another format is filled anew from the snapshot. */
export const STORED_FORMAT = `${ROUTE_RECORD_FORMAT}.1`

const HASH_BYTES = 32

type StoredSite = [
  revision: number,
  kind: 'site',
  siteId: string,
  state: number,
  versionNumber: number,
  /** Numbers of the retained versions. */
  versions: number[],
  /** Theirs in the same order, then the live manifest's if it is none of them. */
  hashes: Uint8Array,
  /** Which of the hashes is live. */
  live: number | null,
  expiresAt: number | null,
  password: SiteRoute['password'],
  spaFallback: boolean,
  badge: boolean,
  analytics: SiteRoute['analytics'],
]

export type StoredRoute =
  | StoredSite
  | [revision: number, kind: 'alias' | 'redirect', to: string]
  | [revision: number, kind: 'none']

export function toStored(record: RouteRecord): StoredRoute {
  switch (record.kind) {
    case 'site':
      return storedSite(record)
    case 'alias':
    case 'redirect':
      return [record.revision, record.kind, record.to]
    case 'none':
      return [record.revision, 'none']
    default:
      return record satisfies never
  }
}

export function fromStored(host: string, stored: StoredRoute): RouteRecord {
  const base = { v: ROUTE_RECORD_FORMAT, host, revision: stored[0] } as const
  switch (stored[1]) {
    case 'site':
      return siteOf(base, stored as StoredSite)
    case 'none':
      return { ...base, kind: 'none' }
    default:
      return { ...base, kind: stored[1], to: stored[2] as string }
  }
}

function storedSite(site: SiteRoute): StoredSite {
  const { manifest } = site
  const hashes = site.versions.map(([, hash]) => hash)
  if (manifest !== null && !hashes.includes(manifest)) hashes.push(manifest)
  return [
    site.revision,
    'site',
    site.site_id,
    siteStates.indexOf(site.state),
    site.version_number,
    site.versions.map(([number]) => number),
    Buffer.from(hashes.join(''), 'hex'),
    manifest === null ? null : hashes.indexOf(manifest),
    site.expires_at,
    site.password,
    site.spa_fallback,
    site.badge,
    site.analytics,
  ]
}

function siteOf(base: Pick<SiteRoute, 'v' | 'host' | 'revision'>, stored: StoredSite): SiteRoute {
  const [, kind, site_id, state, version_number, numbers, bytes, live, ...settings] = stored
  const [expires_at, password, spa_fallback, badge, analytics] = settings
  const hashes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const hashAt = (index: number): string => hashes.toString('hex', index * HASH_BYTES, (index + 1) * HASH_BYTES)
  return {
    v: base.v,
    host: base.host,
    revision: base.revision,
    kind,
    site_id,
    state: siteStates[state]!,
    manifest: live === null ? null : hashAt(live),
    version_number,
    versions: numbers.map((number, index) => [number, hashAt(index)]),
    expires_at,
    password,
    spa_fallback,
    badge,
    analytics,
  }
}
