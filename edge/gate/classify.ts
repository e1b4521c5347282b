/** Authority → what it stands for. Everything is read from memory or the local replica. */
import { isIP } from 'node:net'
import { LRUCache } from 'lru-cache'
import { parseAuthority, parsePreviewHost } from '../../shared/http/hosts.ts'
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
}

export type Classify = (exchange: Exchange) => Destination

const UNKNOWN: Destination = { kind: 'unknown' }
const UNREADY: Destination = { kind: 'unready' }
const SERVICE: Destination = { kind: 'service' }
const refused = (status: 400 | 414 | 421 | 429): Destination => ({ kind: 'refused', status })
const BAD_REQUEST = refused(400)

export function createClassify({ routes, serviceHost, sitesDomain }: ClassifyDependencies): Classify {
  const service = bareHost(serviceHost)
  const previews = createPreviews(routes)
  const hosts = new LRUCache<string, string>({ max: 10_000 })
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
    const record = routes.get(host)
    if (record === undefined) return previewDestination(host) ?? (routes.isComplete() ? UNKNOWN : UNREADY)
    // One hop only: an alias of an alias is never intended.
    if (record.kind === 'alias') return aliasDestination(routes.get(record.to))
    return ownDestination(record)
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
    if (preview === undefined) return undefined
    const record = routes.get(preview.siteHost)
    if (record?.kind === 'unsure') return UNREADY
    return record?.kind === 'site' ? previews(record, preview.versionNumber) : undefined
  }

  return (exchange) => {
    const host = hostOf(exchange.authority)
    if (host === undefined) return BAD_REQUEST
    exchange.named(host)
    if (!exchange.countRequest()) return refused(429)
    if (exchange.target.length > MAX_TARGET_CHARS) return refused(414)
    if (exchange.target.charCodeAt(0) !== 47 && exchange.target !== '*') return BAD_REQUEST
    if (!exchange.certificateCovers(host) && isIP(host) === 0) return refused(421)
    return host === service ? SERVICE : destinationOf(host)
  }
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
      return { kind: 'site', drop: dropOf(record, false) }
    case 'redirect':
      return { kind: 'moved', to: record.to }
    case 'unsure':
      return UNREADY
    case 'alias':
    case 'none':
      return UNKNOWN
    default:
      return record satisfies never
  }
}

function dropOf(route: ServedSite, isPreview: boolean): Drop {
  return { route, versionNumber: route.version_number, isProtected: route.password !== null, isPreview }
}

/** A retained version at `<number>--<slug>`: the site's route, with that version's manifest. */
function createPreviews(routes: Routes): (route: ServedSite, versionNumber: number) => Destination | undefined {
  const made = new WeakMap<ServedSite, Map<number, Destination>>()
  return (record, versionNumber) => {
    let ofSite = made.get(record)
    if (ofSite === undefined) made.set(record, (ofSite = new Map()))
    const known = ofSite.get(versionNumber)
    if (known !== undefined) return known
    const manifest = routes.manifestOf(record.host, versionNumber)
    if (manifest === undefined) return undefined
    const destination: Destination = {
      kind: 'site',
      drop: dropOf({ ...record, manifest, version_number: versionNumber }, true),
    }
    ofSite.set(versionNumber, destination)
    return destination
  }
}
