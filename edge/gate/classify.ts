/** Authority → what it stands for. Everything is read from memory or the local replica. */
import { isIP } from 'node:net'
import { LRUCache } from 'lru-cache'
import { wildcardOf } from '../../shared/certificates/bundle.ts'
import { parseAuthority, parsePreviewHost, readPreviewLabel } from '../../shared/http/hosts.ts'
import { isPreviewLabelOf } from '../../shared/secrets/previews.ts'
import type { Secrets } from '../../shared/secrets/secrets.ts'
import { grownTo } from '../../shared/values/grown-to.ts'
import type { Drop, Exchange, ServedRoute, ServedSite } from '../context.ts'
import type { Routes } from '../store/routes.ts'

/** Longer targets are refused with 414; no browser or link is that long. */
const MAX_TARGET_CHARS = 8192

export type Destination =
  | { readonly kind: 'refused'; readonly status: 400 | 414 | 421 | 429 }
  /** The service's own host: control answers. */
  | { readonly kind: 'service' }
  | { readonly kind: 'site'; readonly drop: Drop }
  | { readonly kind: 'moved'; readonly to: string }
  /** Known to be nothing. */
  | { readonly kind: 'unknown' }
  /** This machine has never had the whole routing table, or cannot read the host's record: it must not guess. */
  | { readonly kind: 'unready' }

export interface ClassifyDependencies {
  readonly routes: Routes
  readonly serviceHost: string
  readonly sitesDomain: string
  readonly secrets: Pick<Secrets, 'sign'>
}

export interface Classify {
  (exchange: Exchange): Destination
  /** What a drop's host stands for now, without a request. */
  at(host: string): Destination
}

const UNKNOWN: Destination = { kind: 'unknown' }
const UNREADY: Destination = { kind: 'unready' }
const SERVICE: Destination = { kind: 'service' }
const refused = (status: 400 | 414 | 421 | 429): Destination => ({ kind: 'refused', status })
const BAD_REQUEST = refused(400)

export function createClassify({ routes, serviceHost, sitesDomain, secrets }: ClassifyDependencies): Classify {
  const service = bareHost(serviceHost)
  const previews = createPreviews(routes, secrets)
  const hosts = new LRUCache<string, string>(grownTo(10_000))
  const destinations = new WeakMap<ServedRoute, Destination>()

  /** Same text, same host: parsed once. */
  function hostOf(authority: string | undefined): string | undefined {
    if (authority === undefined) return undefined
    let host = hosts.get(authority)
    if (host === undefined) {
      host = parseAuthority(authority)
      if (host !== undefined) hosts.set(authority, host)
    }
    return host
  }

  function destinationOf(host: string): Destination {
    // A drop from before slugs with two hyphens were refused loses its address to the preview of that name.
    const preview = host.includes('--') ? previewDestination(host) : undefined
    if (preview !== undefined) return preview
    const record = recordOf(host)
    if (record === undefined) return routes.isComplete() ? UNKNOWN : UNREADY
    if (record.kind === 'preview') return previewAt(record.to, record.label) ?? UNKNOWN
    // One hop only: an alias of an alias is never intended.
    if (record.kind === 'alias') return aliasDestination(routes.get(record.to))
    return ownDestination(record)
  }

  /** The host's own, else that of the wildcard which stands for it. */
  function recordOf(host: string): ServedRoute | undefined {
    const own = routes.get(host)
    if (own !== undefined && own.kind !== 'none') return own
    const wildcard = wildcardOf(host)
    return (wildcard === undefined ? undefined : routes.get(wildcard)) ?? own
  }

  function ownDestination(record: ServedRoute): Destination {
    let destination = destinations.get(record)
    if (destination === undefined) destinations.set(record, (destination = toDestination(record)))
    return destination
  }

  function aliasDestination(record: ServedRoute | undefined): Destination {
    if (record === undefined) return routes.isComplete() ? UNKNOWN : UNREADY
    return record.kind === 'alias' ? UNKNOWN : ownDestination(record)
  }

  function previewDestination(host: string): Destination | undefined {
    const preview = host.endsWith(`.${sitesDomain}`) ? parsePreviewHost(host) : undefined
    return preview && previewAt(preview.siteHost, preview.label)
  }

  function previewAt(siteHost: string, label: string): Destination | undefined {
    const record = routes.get(siteHost)
    if (record?.kind === 'unsure') return UNREADY
    return record?.kind === 'site' ? previews(record, label) : undefined
  }

  const classify = (exchange: Exchange): Destination => {
    const host = hostOf(exchange.authority)
    if (host === undefined) return BAD_REQUEST
    exchange.named(host)
    if (!exchange.countRequest()) return refused(429)
    if (exchange.target.length > MAX_TARGET_CHARS) return refused(414)
    if (exchange.target.charCodeAt(0) !== 47 && exchange.target !== '*') return BAD_REQUEST
    if (!exchange.certificateCovers(host) && isIP(host) === 0) return refused(421)
    return host === service ? SERVICE : destinationOf(host)
  }
  return Object.assign(classify, { at: destinationOf })
}

/** Whether control answers what is asked of this authority. */
export function createServiceTest(serviceHost: string): (authority: string) => boolean {
  const service = bareHost(serviceHost)
  return (authority) => parseAuthority(authority) === service
}

function bareHost(host: string): string {
  return host.replace(/^\[|\]$/g, '')
}

function toDestination(record: ServedRoute): Destination {
  switch (record.kind) {
    case 'site':
      return { kind: 'site', drop: dropOf(record) }
    case 'redirect':
      return { kind: 'moved', to: record.to }
    case 'unsure':
      return UNREADY
    case 'alias':
    case 'preview':
    case 'none':
      return UNKNOWN
    default:
      return record satisfies never
  }
}

function dropOf(route: ServedSite, { isPreview = false, isForMembers = false, previewName }: Partial<Drop> = {}): Drop {
  const { version_number: versionNumber, password } = route
  const drop = { route, versionNumber, isProtected: password !== null, isPreview, isForMembers }
  return previewName === undefined ? drop : { ...drop, previewName }
}

/** Answers that are kept for one drop: whoever asks for what is not there must not fill the memory. */
const MAX_KEPT_PREVIEWS = 200

/** A version at `<label>--<slug>`: the site's route, with that version's manifest. */
function createPreviews(
  routes: Routes,
  secrets: Pick<Secrets, 'sign'>,
): (route: ServedSite, label: string) => Destination | undefined {
  const made = new WeakMap<ServedSite, Map<string, Destination | undefined>>()
  return (record, label) => {
    let ofSite = made.get(record)
    if (ofSite === undefined) made.set(record, (ofSite = new Map()))
    if (ofSite.has(label)) return ofSite.get(label)
    if (ofSite.size >= MAX_KEPT_PREVIEWS) ofSite.clear()
    const found = shownAt(record, label, secrets)
    const manifest = found && routes.manifestOf(record.host, found.versionNumber)
    const destination = found && manifest && previewOf(record, found, manifest)
    ofSite.set(label, destination || undefined)
    return destination || undefined
  }
}

interface ShownVersion {
  readonly versionNumber: number
  readonly isForMembers: boolean
  readonly previewName?: string
}

/** Which version a label shows, and to whom: a bare number can be guessed, and is for members alone. */
function shownAt(record: ServedSite, label: string, secrets: Pick<Secrets, 'sign'>): ShownVersion | undefined {
  if (record.previews === 'off') return undefined
  const read = readPreviewLabel(label)
  const isForMembers = record.previews === 'members'
  switch (read?.kind) {
    case undefined:
      return undefined
    case 'number':
      // Viewers were let in by name: the gate has asked who they are.
      return { versionNumber: read.versionNumber, isForMembers: record.viewers === undefined }
    case 'signed':
      return isPreviewLabelOf(secrets, record.site_id, read.versionNumber, label)
        ? { versionNumber: read.versionNumber, isForMembers }
        : undefined
    case 'name': {
      const versionNumber = record.names?.find(([name]) => name === read.name)?.[1]
      return versionNumber === undefined ? undefined : { versionNumber, isForMembers, previewName: read.name }
    }
    default:
      return read satisfies never
  }
}

/** A drop without a live version has previews all the same. Its card is for its address alone. */
function previewOf(record: ServedSite, shown: ShownVersion, manifest: string): Destination {
  const { versionNumber, isForMembers, previewName } = shown
  const state = record.state === 'reserved' ? 'live' : record.state
  const { card: _card, ...rest } = record
  const route = { ...rest, state, manifest, version_number: versionNumber } as const
  const about = { isPreview: true, isForMembers, ...(previewName === undefined ? {} : { previewName }) }
  return { kind: 'site', drop: dropOf(route, about) }
}
