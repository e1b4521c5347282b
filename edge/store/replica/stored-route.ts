/**
 * A route record as the replica keeps it, which is read at a host's first visit and so costs every cold request:
 *
 *   length of the head · head: a JSON list · { number, manifest hash } of each retained version, and of the live one
 *
 * A visit needs one hash of them all, and only that is turned into text. The host is the key. Records are validated
 * before they come here.
 */
import {
  ROUTE_RECORD_FORMAT,
  siteStates,
  type RouteRecord,
  type SiteRoute,
} from '../../../shared/contracts/route-record.ts'
import type { ServedRoute, ServedSite } from '../../context.ts'

/** Changes with the contract or with the layout; a file of another format is filled anew from the snapshot. */
export const STORED_FORMAT = `${ROUTE_RECORD_FORMAT}.2`

const LENGTH_BYTES = 4
const NUMBER_BYTES = 4
const HASH_BYTES = 32
const VERSION_BYTES = NUMBER_BYTES + HASH_BYTES
/** The number of a live manifest that is none of the retained ones: versions count from 1. */
const NO_NUMBER = 0

type Version = SiteRoute['versions'][number]

type Head =
  | [
      revision: number,
      kind: 'site',
      siteId: string,
      state: number,
      versionNumber: number,
      /** Which of the hashes is live. */
      live: number | null,
      expiresAt: number | null,
      password: SiteRoute['password'],
      spaFallback: boolean,
      badge: boolean,
      analytics: SiteRoute['analytics'],
      /** The release before reads past it, and asks for a password that nobody has. */
      viewers?: SiteRoute['viewers'] | null,
      previews?: SiteRoute['previews'] | null,
      names?: SiteRoute['names'] | null,
      llmsTxt?: SiteRoute['llms_txt'] | null,
      ai?: SiteRoute['ai'] | null,
      card?: SiteRoute['card'] | null,
      review?: SiteRoute['review'] | null,
    ]
  | [revision: number, kind: 'preview', to: string, label: string]
  | [revision: number, kind: 'alias' | 'redirect', to: string]
  | [revision: number, kind: 'none']

export function toStored(record: RouteRecord): Buffer {
  const versions = versionsOf(record)
  const head = Buffer.from(JSON.stringify(headOf(record, versions)))
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt32BE(head.length)
  return Buffer.concat([length, head, ...versions.map(packed)])
}

/** `stored` may be overwritten afterwards. */
export function fromStored(host: string, stored: Buffer): ServedRoute {
  const end = headEnd(stored)
  const head = readHead(stored, end)
  const v = ROUTE_RECORD_FORMAT
  const revision = head[0]
  switch (head[1]) {
    case 'site':
      return {
        v,
        host,
        revision,
        kind: 'site',
        site_id: head[2],
        state: siteStates[head[3]]!,
        manifest: head[5] === null ? null : hashAt(stored, end + head[5] * VERSION_BYTES),
        version_number: head[4],
        expires_at: head[6],
        password: head[7],
        spa_fallback: head[8],
        badge: head[9],
        analytics: head[10],
        ...(head[11] ? { viewers: head[11] } : {}),
        ...(head[12] ? { previews: head[12] } : {}),
        ...(head[13] ? { names: head[13] } : {}),
        ...(head[14] === false ? { llms_txt: false } : {}),
        ...(head[15] ? { ai: head[15] } : {}),
        ...(head[16] ? { card: head[16] } : {}),
        ...(head[17] ? { review: head[17] } : {}),
      } satisfies ServedSite
    case 'none':
      return { v, host, revision, kind: 'none' }
    case 'preview':
      return { v, host, revision, kind: 'preview', to: head[2], label: head[3] }
    default:
      return { v, host, revision, kind: head[1], to: head[2] }
  }
}

export function revisionOf(stored: Buffer): number {
  return readHead(stored, headEnd(stored))[0]
}

/** The manifest of a retained version. */
export function manifestOf(stored: Buffer, versionNumber: number): string | undefined {
  if (versionNumber === NO_NUMBER) return undefined
  for (let at = headEnd(stored); at < stored.length; at += VERSION_BYTES)
    if (stored.readUInt32BE(at) === versionNumber) return hashAt(stored, at)
  return undefined
}

function headOf(record: RouteRecord, versions: readonly Version[]): Head {
  switch (record.kind) {
    case 'site':
      return [
        record.revision,
        'site',
        record.site_id,
        siteStates.indexOf(record.state),
        record.version_number,
        record.manifest === null ? null : versions.findIndex(([, hash]) => hash === record.manifest),
        record.expires_at,
        record.password,
        record.spa_fallback,
        record.badge,
        record.analytics,
        record.viewers ?? null,
        record.previews ?? null,
        record.names ?? null,
        record.llms_txt ?? null,
        record.ai ?? null,
        record.card ?? null,
        record.review ?? null,
      ]
    case 'alias':
    case 'redirect':
      return [record.revision, record.kind, record.to]
    case 'preview':
      return [record.revision, 'preview', record.to, record.label]
    case 'none':
      return [record.revision, 'none']
    default:
      return record satisfies never
  }
}

function versionsOf(record: RouteRecord): readonly Version[] {
  if (record.kind !== 'site') return []
  const { manifest, versions } = record
  if (manifest === null || versions.some(([, hash]) => hash === manifest)) return versions
  return [...versions, [NO_NUMBER, manifest]]
}

function packed([number, hash]: Version): Buffer {
  const bytes = Buffer.alloc(VERSION_BYTES)
  bytes.writeUInt32BE(number)
  bytes.write(hash, NUMBER_BYTES, 'hex')
  return bytes
}

function headEnd(stored: Buffer): number {
  return LENGTH_BYTES + stored.readUInt32BE()
}

function readHead(stored: Buffer, end: number): Head {
  return JSON.parse(stored.toString('utf8', LENGTH_BYTES, end)) as Head
}

function hashAt(stored: Buffer, at: number): string {
  return stored.toString('hex', at + NUMBER_BYTES, at + VERSION_BYTES)
}
