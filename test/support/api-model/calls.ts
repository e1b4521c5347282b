/** What can be asked of the API, and how a call is aimed at something that is there. */
import { credentials, isOwnToken, type Caller } from './access.ts'
import type { Site, World } from './world.ts'

export type FileKind = 'html' | 'markdown' | 'program' | 'none' | 'unnamed' | 'two' | 'not a form' | 'too large'
export type BundleKind = 'good' | 'no index' | 'missing path' | 'no files' | 'not a zip'
export type IfVersion = 'none' | 'right' | 'wrong' | 'malformed'

export interface Patch {
  readonly name?: string
  readonly slug?: string
  readonly password?: string | null
  readonly analytics?: object | null
  readonly spa_fallback?: boolean
  readonly gallery?: boolean
}

/** What is sent. Numbers choose among what there is: drops, organisations, versions, and one that is not there. */
export type Call =
  | { readonly do: 'create site'; readonly slug: string | undefined; readonly name: string | undefined }
  | { readonly do: 'list sites' }
  | { readonly do: 'read site'; readonly site: number }
  | { readonly do: 'change site'; readonly site: number; readonly patch: Patch }
  | { readonly do: 'change site wrongly'; readonly site: number; readonly patch: object }
  | { readonly do: 'delete site'; readonly site: number }
  | {
      readonly do: 'upload'
      readonly site: number
      readonly file: FileKind
      readonly text: string
      readonly ifVersion: IfVersion
      readonly message: string
    }
  | { readonly do: 'bundle'; readonly site: number; readonly kind: BundleKind; readonly text: string }
  | { readonly do: 'list versions'; readonly site: number }
  | { readonly do: 'promote' | 'compare'; readonly site: number; readonly version: number; readonly of: number }
  | {
      readonly do: 'start upload'
      readonly site: number
      readonly texts: readonly string[]
      readonly hasIndex: boolean
      readonly ifVersion: IfVersion
    }
  | { readonly do: 'send blob'; readonly upload: number; readonly good: boolean }
  | { readonly do: 'finish upload'; readonly upload: number }
  | { readonly do: 'read upload'; readonly upload: number }
  | { readonly do: 'choose'; readonly sites: readonly number[] }
  | { readonly do: 'read me' }
  | { readonly do: 'read usage' }
  | { readonly do: 'list organisations' }
  | { readonly do: 'create organisation'; readonly name: string }
  | { readonly do: 'rename organisation'; readonly org: number; readonly name: string }
  | { readonly do: 'delete organisation' | 'switch' | 'list members' | 'list invitations'; readonly org: number }
  | { readonly do: 'transfer'; readonly org: number; readonly person: number }
  | { readonly do: 'change role'; readonly org: number; readonly person: number; readonly role: string }
  | { readonly do: 'remove member'; readonly org: number; readonly person: number }
  | { readonly do: 'invite'; readonly org: number; readonly person: number; readonly role: string }
  | { readonly do: 'withdraw invitation'; readonly org: number; readonly invitation: number }
  | { readonly do: 'accept invitation'; readonly invitation: number }
  | { readonly do: 'list tokens' }
  | { readonly do: 'create token'; readonly name: string }
  | { readonly do: 'revoke token'; readonly token: number }
  | { readonly do: 'publish anonymously'; readonly browser: number; readonly file: FileKind; readonly text: string }
  | { readonly do: 'publish markdown'; readonly browser: number; readonly text: string }
  | { readonly do: 'list drops of browser'; readonly browser: number }

/**
 * Calls are made up of any numbers. Most of them are aimed at something that the caller can reach, so that sequences
 * lead somewhere; the others at anything that there is, or at nothing.
 */
export function aim(world: World, caller: Caller, call: Call): Call {
  const acting = credentials(world, caller)
  const isOwn = (site: Site): boolean => site.org === acting?.org.id && !site.deleted
  const aims: Record<string, (index: number) => number> = {
    site: (index) => pick(index, world.sites, isOwn),
    of: (index) => pick(index, world.sites, isOwn),
    org: (index) =>
      pick(index, world.orgs, (org) => !org.deleted && acting !== undefined && org.members.has(acting.person.id)),
    person: (index) => index % (world.people.length + 1),
    invitation: (index) => pick(index, world.invitations, ({ open, email }) => open && email === acting?.person.email),
    upload: (index) => pick(index, world.uploads, ({ open, org }) => open && org === acting?.org.id),
    token: (index) => pick(index, world.tokens, (token) => acting !== undefined && isOwnToken(acting, token)),
  }
  const aimed = Object.entries(call).map(([name, value]) => [name, aims[name]?.(value as number) ?? value])
  const result = Object.fromEntries(aimed) as Call
  if (result.do === 'choose') return { ...result, sites: result.sites.map(aims['site']!) }
  if (result.do === 'promote' || result.do === 'compare') {
    const of = (call as typeof result).of === (call as typeof result).site ? result.site : result.of
    return { ...result, of, version: result.version % ((world.site(of)?.versions.length ?? 0) + 1) }
  }
  return result
}

/** Four times out of five one that is meant. */
function pick<Thing>(index: number, all: readonly Thing[], isMeant: (thing: Thing) => boolean): number {
  const meant = all.filter(isMeant)
  if (index % 5 === 4 || meant.length === 0) return Math.floor(index / 5) % (all.length + 1)
  return all.indexOf(meant[Math.floor(index / 5) % meant.length]!)
}
