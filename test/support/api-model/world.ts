/** The things of the model's world, and the look-ups among them. */
import { plans, type PlanName } from '../../../control/ground/terms/plans.ts'
import type { SentFile } from '../api-content.ts'

export type Role = 'owner' | 'admin' | 'member'

export interface Person {
  readonly id: string
  readonly email: string
  readonly verified: boolean
  readonly session: string
  /** The organisation that the session was switched to. */
  sessionOrg: string
}

export interface Org {
  readonly id: string
  readonly personal: boolean
  name: string
  plan: PlanName
  owner: string
  /** In order of joining. */
  readonly members: Map<string, Role>
  deleted: boolean
}

export interface Token {
  readonly id: string
  readonly secret: string
  readonly person: string
  readonly org: string
  readonly name: string
  revoked: boolean
}

export interface Invitation {
  readonly id: string
  readonly org: string
  readonly email: string
  readonly role: 'admin' | 'member'
  readonly token: string
  open: boolean
}

export interface Version {
  readonly id: string
  readonly number: number
  readonly message: string
  readonly title: string
  readonly fileCount: number
  bytes: number
  /** Of its files as they were sent: path → sha256. */
  readonly files: ReadonlyMap<string, string>
}

export interface Site {
  readonly id: string
  /** Null: of a browser without an account. */
  readonly org: string | null
  readonly browser?: number
  slug: string
  name: string
  title: string
  /** Retained, oldest first. */
  readonly versions: Version[]
  live: string | null
  nextNumber: number
  hasPassword: boolean
  spaFallback: boolean
  gallery: boolean
  analytics: object | null
  chosen: boolean
  paused: boolean
  takenDown: boolean
  deleted: boolean
  /** When it was published or, before that, made: in calls. */
  since: number
}

export interface Upload {
  readonly id: string
  readonly site: string
  readonly org: string
  readonly files: readonly SentFile[]
  readonly title: string
  readonly ifVersion: number | undefined
  readonly missing: Set<string>
  /** What no version of the organisation had when it was started, by sha256: its size. */
  readonly pieces: ReadonlyMap<string, number>
  open: boolean
}

/** A publish that is about to happen: what its drop has afterwards. */
export interface Replacing {
  readonly site: Site
  readonly versions: readonly Pick<Version, 'files'>[]
}

interface HeldSlug {
  readonly site: string
  kind: 'current' | 'former' | 'tombstone'
  /** Whether someone else may have it: nothing was ever published there. */
  isFree: boolean
}

export interface SlugFacts {
  /** Why no one may have this slug; undefined: anyone who comes first. */
  readonly problem?: 'invalid' | 'reserved'
}

export class World {
  readonly people: Person[] = []
  readonly orgs: Org[] = []
  readonly tokens: Token[] = []
  readonly invitations: Invitation[] = []
  readonly sites: Site[] = []
  readonly uploads: Upload[] = []
  readonly slugs = new Map<string, HeldSlug>()
  /** Slugs that the calls ask for, and what is wrong with them. */
  readonly slugFacts: ReadonlyMap<string, SlugFacts>
  /** Calls so far: the model's clock. */
  time = 0
  /** What the service makes of the one Markdown file that is sent. */
  readonly markdownBytes: number

  constructor(slugFacts: ReadonlyMap<string, SlugFacts>, markdownBytes: number) {
    this.slugFacts = slugFacts
    this.markdownBytes = markdownBytes
  }

  /** Undefined stands for an id that no one has. */
  site = (index: number): Site | undefined => this.sites[index]
  org = (index: number): Org | undefined => this.orgs[index]
  person = (index: number): Person | undefined => this.people[index]
  invitation = (index: number): Invitation | undefined => this.invitations[index]
  upload = (index: number): Upload | undefined => this.uploads[index]
  token = (index: number): Token | undefined => this.tokens[index]
  version = (site: number, version: number): string | undefined => this.site(site)?.versions[version]?.id

  stateOf(site: Site): string {
    if (site.deleted) return 'gone'
    if (site.takenDown) return 'removed'
    if (site.paused) return 'paused'
    if (site.live === null) return 'reserved'
    return site.org === null || this.#ownerOf(site.org).verified ? 'live' : 'unverified'
  }

  sitesOf(org: Org): Site[] {
    return this.sites.filter((site) => site.org === org.id && !site.deleted)
  }

  /** Those that take a place, or would if they were not paused. */
  countedOf(org: Org): Site[] {
    return this.sitesOf(org).filter((site) => !site.takenDown)
  }

  /** The free plan is one per person: their free organisations share its room. */
  sharingPlan(org: Org): Org[] {
    if (org.plan !== 'free') return [org]
    return this.orgs.filter(({ plan, owner, deleted }) => plan === 'free' && owner === org.owner && !deleted)
  }

  activeCount(org: Org): number {
    return this.sharingPlan(org)
      .flatMap((each) => this.countedOf(each))
      .filter((site) => !site.paused).length
  }

  storedBytes(org: Org): number {
    const versions = this.sharingPlan(org).flatMap((each) => this.sitesOf(each).flatMap((site) => site.versions))
    return versions.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Whether a version that is kept has these bytes. */
  isPublished(orgs: readonly Org[], sha256: string, replacing?: Replacing): boolean {
    return orgs
      .flatMap((org) => this.sitesOf(org))
      .flatMap((site): readonly Pick<Version, 'files'>[] =>
        site === replacing?.site ? replacing.versions : site.versions,
      )
      .some(({ files }) => files.values().some((hash) => hash === sha256))
  }

  /** What is being sent and in no version yet, each content once; of uploads without such nothing counts. */
  underWay(
    org: Org,
    { except, replacing }: { except?: ReadonlyMap<string, number>; replacing?: Replacing } = {},
  ): { uploads: number; bytes: number } {
    const sharing = this.sharingPlan(org)
    const ids = new Set(sharing.map(({ id }) => id))
    const left = this.uploads
      .filter((upload) => upload.open && ids.has(upload.org))
      .map(({ pieces }) => [...pieces].filter(([hash]) => !this.isPublished(sharing, hash, replacing)))
      .filter((pieces) => pieces.length > 0)
    const counted = new Map(left.flat().filter(([hash]) => !except?.has(hash)))
    return { uploads: left.length, bytes: counted.values().reduce((sum, size) => sum + size, 0) }
  }

  planOf(site: Site): (typeof plans)[PlanName] {
    return plans[this.orgs.find(({ id }) => id === site.org)!.plan]
  }

  #ownerOf(orgId: string): Person {
    const { owner } = this.orgs.find(({ id }) => id === orgId)!
    return this.people.find(({ id }) => id === owner)!
  }
}

export function newSite(known: Pick<Site, 'id' | 'slug' | 'org' | 'name' | 'since' | 'browser'>): Site {
  return {
    ...known,
    title: '',
    versions: [],
    live: null,
    nextNumber: 1,
    hasPassword: false,
    spaFallback: false,
    gallery: false,
    analytics: null,
    chosen: false,
    paused: false,
    takenDown: false,
    deleted: false,
  }
}

export function liveNumber(site: Site): number {
  return site.versions.find(({ id }) => id === site.live)?.number ?? 0
}
