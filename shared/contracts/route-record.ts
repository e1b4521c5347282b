/**
 * Contract 1: what the edge knows about a host. Control computes it, Redis carries it, the replica keeps it.
 * `revision` grows with every change of a host; an older revision never replaces a newer one. It stands in every format.
 */
import { MAX_HOST_CHARS } from './limits.ts'
import { MAX_ENDED_ADMISSIONS } from './admission.ts'
import { z } from 'zod'
import { analyticsSchema } from './analytics.ts'

export const ROUTE_RECORD_FORMAT = 1

const host = z.string().min(1).max(MAX_HOST_CHARS)
export const sha256Hex = z.string().regex(/^[0-9a-f]{64}$/)

/**
 * What a visitor meets at a drop's address:
 * `live` content · `reserved` 404 · `gone` (deleted) 410 · `removed` (taken down) 410 · `expired` 410 ·
 * `unverified` 503 · `paused` 503. A live drop whose `expires_at` has passed is expired, to the second.
 */
export const siteStates = ['live', 'reserved', 'gone', 'removed', 'expired', 'unverified', 'paused'] as const
export type SiteState = (typeof siteStates)[number]

const base = { v: z.literal(ROUTE_RECORD_FORMAT), host, revision: z.int().positive() }

const ended = z.array(z.tuple([z.string(), z.int()])).max(MAX_ENDED_ADMISSIONS)

const siteRecord = z.strictObject({
  ...base,
  kind: z.literal('site'),
  site_id: z.string(),
  state: z.enum(siteStates),
  /** Hash of the live manifest; null until the first upload and after deletion. */
  manifest: sha256Hex.nullable(),
  version_number: z.int().nonnegative(),
  /** Retained versions for preview addresses: [number, manifest hash], newest first. */
  versions: z.array(z.tuple([z.int().positive(), sha256Hex])),
  /** Milliseconds since the epoch; null when the drop has no clock. */
  expires_at: z.int().nullable(),
  /** PHC string of the visitor password, and the generation that unlock cookies are bound to. */
  password: z.strictObject({ hash: z.string(), generation: z.int().nonnegative() }).nullable(),
  /**
   * Only named viewers see it; `password` then holds the generation that admissions are bound to (admission.ts), and no
   * hash that a password gives. `ended`: admissions that were taken back before their end. `asks`: strangers may ask.
   */
  viewers: z.strictObject({ ended, asks: z.boolean() }).optional(),
  /**
   * What passes of the review page (review-pass.ts) are held against where not only viewers see it: written while one
   * that was taken back has not ended by itself.
   */
  review: z.strictObject({ generation: z.int().nonnegative(), ended }).optional(),
  spa_fallback: z.boolean(),
  badge: z.boolean(),
  analytics: analyticsSchema.nullable(),
  /** Who may see previews; whoever has the address where it is left out. */
  previews: z.enum(['members', 'off']).optional(),
  /** Named previews: [name, version number]. Left out where there are none. */
  names: z.array(z.tuple([z.string(), z.int().positive()])).optional(),
  /** False where the owner wants no list of pages for machines. */
  llms_txt: z.literal(false).optional(),
  /** What the owner does not want machines to do with the content; left out where all is allowed. */
  ai: z.enum(['no-training', 'none']).optional(),
  /** The picture for where its address is shared: hash and size of a PNG. Left out where there is none. */
  card: z.tuple([sha256Hex, z.int().positive()]).optional(),
})

/** A custom domain: serves the site of another host. */
const aliasRecord = z.strictObject({ ...base, kind: z.literal('alias'), to: host })
/** An old slug during its cool-down, or apex ↔ www: 301 to the same path at `to`. */
const redirectRecord = z.strictObject({ ...base, kind: z.literal('redirect'), to: host })
/** A preview whose label is too long to name its drop: the same label at `to`. */
const previewRecord = z.strictObject({ ...base, kind: z.literal('preview'), to: host, label: z.string() })
/** The host is known to be nothing: a removed domain, a slug that is free again. Answers 404 like an unknown host. */
const noneRecord = z.strictObject({ ...base, kind: z.literal('none') })

export const routeRecordSchema = z.discriminatedUnion('kind', [
  siteRecord,
  aliasRecord,
  redirectRecord,
  previewRecord,
  noneRecord,
])

export type RouteRecord = z.infer<typeof routeRecordSchema>
export type SiteRoute = z.infer<typeof siteRecord>

/** Where a drop's card is. It stands before whatever the drop has at that path. */
export const CARD_PATH = '/.dropway/card.png'
const CARD_NAME_CHARS = 12
/** What networks ask for: 1.91 to 1. */
export const CARD_WIDTH = 1200
export const CARD_HEIGHT = 630

/** Whoever keeps pictures by address asks again when the card is another one. */
export function cardTarget(hash: string): string {
  return `${CARD_PATH}?v=${hash.slice(0, CARD_NAME_CHARS)}`
}

export function encodeRouteRecord(record: RouteRecord): string {
  return JSON.stringify(record)
}

/** Throws on a record of another format or shape: a plane never guesses what the other one meant. */
export function decodeRouteRecord(text: string): RouteRecord {
  return routeRecordSchema.parse(JSON.parse(text))
}
