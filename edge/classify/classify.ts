/** Authority → what it stands for. Everything is read from memory or the local replica. */
import { isIP } from 'node:net'
import { LRUCache } from 'lru-cache'
import { parseAuthority, parsePreviewHost } from '../../shared/hosts.ts'
import type { Drop, Exchange, ServedRoute, ServedSite } from '../context.ts'
import type { Routes } from '../store/routes.ts'

/** Longer targets are refused with 414; no browser or link is that long. */
const MAX_TARGET_CHARS = 8192

export type Target =
  | { readonly kind: 'refused'; readonly status: 400 | 414 | 421 | 429 }
  /** The service's own host: control answers. */
  | { readonly kind: 'service' }
  | { readonly kind: 'site'; readonly drop: Drop }
  | { readonly kind: 'moved'; readonly to: string }
  /** Known to be nothing. */
  | { readonly kind: 'unknown' }
  /** This machine has never had the whole routing table: it must not say that something does not exist. */
  | { readonly kind: 'unready' }

export interface ClassifyDependencies {
  readonly routes: Routes
  readonly serviceHost: string
  readonly sitesDomain: string
}

export type Classify = (exchange: Exchange) => Target

const UNKNOWN: Target = { kind: 'unknown' }
const UNREADY: Target = { kind: 'unready' }
const SERVICE: Target = { kind: 'service' }
const refused = (status: 400 | 414 | 421 | 429): Target => ({ kind: 'refused', status })
const BAD_REQUEST = refused(400)

export function createClassify({ routes, serviceHost, sitesDomain }: ClassifyDependencies): Classify {
  const service = serviceHost.replace(/^\[|\]$/g, '')
  const previews = createPreviews(routes)
  const hosts = new LRUCache<string, string>({ max: 10_000 })
  const targets = new WeakMap<ServedRoute, Target>()

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

  function targetOf(host: string): Target {
    const record = routes.get(host)
    if (record === undefined) return previewTarget(host) ?? (routes.isComplete() ? UNKNOWN : UNREADY)
    // One hop only: an alias of an alias is nobody's intention.
    if (record.kind === 'alias') return aliasTarget(routes.get(record.to))
    return ownTarget(record)
  }

  function ownTarget(record: ServedRoute): Target {
    let target = targets.get(record)
    if (target === undefined) targets.set(record, (target = toTarget(record)))
    return target
  }

  function aliasTarget(record: ServedRoute | undefined): Target {
    if (record === undefined) return routes.isComplete() ? UNKNOWN : UNREADY
    return record.kind === 'alias' ? UNKNOWN : ownTarget(record)
  }

  function previewTarget(host: string): Target | undefined {
    const preview = host.endsWith(`.${sitesDomain}`) ? parsePreviewHost(host) : undefined
    const record = preview && routes.get(preview.siteHost)
    return record?.kind === 'site' ? previews(record, preview!.versionNumber) : undefined
  }

  return (exchange) => {
    const host = hostOf(exchange.authority)
    if (host === undefined) return BAD_REQUEST
    exchange.settle(host)
    if (!exchange.countRequest()) return refused(429)
    if (exchange.target.length > MAX_TARGET_CHARS) return refused(414)
    if (exchange.target.charCodeAt(0) !== 47 && exchange.target !== '*') return BAD_REQUEST
    if (!exchange.certificateCovers(host) && isIP(host) === 0) return refused(421)
    return host === service ? SERVICE : targetOf(host)
  }
}

function toTarget(record: ServedRoute): Target {
  switch (record.kind) {
    case 'site':
      return { kind: 'site', drop: dropOf(record, false) }
    case 'redirect':
      return { kind: 'moved', to: record.to }
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
function createPreviews(routes: Routes): (route: ServedSite, versionNumber: number) => Target | undefined {
  const made = new WeakMap<ServedSite, Map<number, Target>>()
  return (record, versionNumber) => {
    let ofSite = made.get(record)
    if (ofSite === undefined) made.set(record, (ofSite = new Map()))
    const known = ofSite.get(versionNumber)
    if (known !== undefined) return known
    const manifest = routes.manifestOf(record.host, versionNumber)
    if (manifest === undefined) return undefined
    const target: Target = { kind: 'site', drop: dropOf({ ...record, manifest, version_number: versionNumber }, true) }
    ofSite.set(versionNumber, target)
    return target
  }
}
