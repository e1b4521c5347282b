/**
 * What the REST API must answer: a small model of people, organisations, drops, versions, slugs, caps and states.
 * `predict` says status, error code and visible fields of a call before it is made, and what the world is afterwards.
 *
 * What the specification leaves open is decided here, in words:
 *   - Credentials come first (401), then the verified address (403), then the body (400), then whose it is (404), then
 *     what the drop's state allows (403, 409), then the content (400, 413), then preconditions (412) and caps (403).
 *   - Every member of an organisation may publish to its drops, change and delete them; roles matter for people only.
 *   - A slug that a rename gave up stays its drop's for the cool-down, also where nothing was ever published. The slug of
 *     a deleted drop is free at once where nothing was.
 *   - A caller who asks about an organisation that they do not belong to learns that there is none (404).
 */
import { plans, type PlanName } from '../../shared/plans.ts'
import { bundleFiles, MARKDOWN, singleFile, uploadFiles, type SentFile } from './api-content.ts'

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
  open: boolean
}

interface HeldSlug {
  readonly site: string
  kind: 'current' | 'former' | 'tombstone'
  /** Whether someone else may have it: nothing was ever published there. */
  isFree: boolean
}

export type Caller =
  | { readonly kind: 'session'; readonly person: number }
  /** A session cookie that someone else's page made the browser send. */
  | { readonly kind: 'foreign page'; readonly person: number }
  | { readonly kind: 'token'; readonly token: number }
  | { readonly kind: 'nobody' }
  | { readonly kind: 'wrong token' }

/** Who a call is made as, once its credentials were found good. */
interface Acting {
  readonly person: Person
  readonly org: Org
  readonly via: 'session' | 'token'
}

export interface Expected {
  readonly status: number
  readonly error?: string
  /** Fields that the answer's body must have; lists must have the same length. */
  readonly body?: object
  /** Notes what only the service can choose (ids, random slugs), and what has changed. */
  learn?(body: never): void
}

/** Thrown by predictions: the call is refused. */
class Refusal extends Error {
  readonly expected: Expected
  constructor(status: number, error: string) {
    super(error)
    this.expected = { status, error }
  }
}

const MAX_FREE_ORGANISATIONS = 3
const MAX_STAYING_LIVE = 3
const OPEN_UPLOADS_PER_DROP = 3

const refuse = {
  unauthorized: () => new Refusal(401, 'unauthorized'),
  unverified: () => new Refusal(403, 'email_not_verified'),
  invalid: () => new Refusal(400, 'invalid_request'),
  notFound: () => new Refusal(404, 'not_found'),
  forbidden: () => new Refusal(403, 'forbidden'),
  planLimit: () => new Refusal(403, 'plan_limit'),
  planFeature: () => new Refusal(403, 'plan_feature'),
  limit: () => new Refusal(403, 'limit_reached'),
  conflict: (code: string) => new Refusal(409, code),
}

export type FileKind = 'html' | 'markdown' | 'program' | 'none' | 'unnamed' | 'two' | 'not a form' | 'too large'
export type BundleKind = 'good' | 'no index' | 'missing path' | 'no files' | 'not a zip'

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

export type IfVersion = 'none' | 'right' | 'wrong' | 'malformed'

export interface SlugFacts {
  /** Why no one may have this slug; undefined: anyone who comes first. */
  readonly problem?: 'invalid' | 'reserved'
}

export class Model {
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
  /** Content that an organisation has published at any time, or sent: it may know these bytes already. */
  readonly #known = new Set<string>()
  /** What the service makes of the one Markdown file that is sent. */
  readonly #markdownBytes: number

  constructor(slugFacts: ReadonlyMap<string, SlugFacts>, markdownBytes: number) {
    this.slugFacts = slugFacts
    this.#markdownBytes = markdownBytes
  }

  /** Undefined stands for an id that no one has. */
  site = (index: number): Site | undefined => this.sites[index]
  org = (index: number): Org | undefined => this.orgs[index]
  person = (index: number): Person | undefined => this.people[index]
  invitation = (index: number): Invitation | undefined => this.invitations[index]
  upload = (index: number): Upload | undefined => this.uploads[index]
  token = (index: number): Token | undefined => this.tokens[index]
  version = (site: number, version: number): string | undefined => this.site(site)?.versions[version]?.id

  /**
   * Calls are made up of any numbers. Most of them are aimed at something that the caller can reach, so that sequences
   * lead somewhere; the others at anything that there is, or at nothing.
   */
  aim(caller: Caller, call: Call): Call {
    const acting = this.#credentials(caller)
    const isOwn = (site: Site): boolean => site.org === acting?.org.id && !site.deleted
    const aims: Record<string, (index: number) => number> = {
      site: (index) => pick(index, this.sites, isOwn),
      of: (index) => pick(index, this.sites, isOwn),
      org: (index) =>
        pick(index, this.orgs, (org) => !org.deleted && acting !== undefined && org.members.has(acting.person.id)),
      person: (index) => index % (this.people.length + 1),
      invitation: (index) => pick(index, this.invitations, ({ open, email }) => open && email === acting?.person.email),
      upload: (index) => pick(index, this.uploads, ({ open, org }) => open && org === acting?.org.id),
      token: (index) =>
        pick(index, this.tokens, (token) => acting !== undefined && isOwnToken(token, acting.person, acting.org)),
    }
    const aimed = Object.entries(call).map(([name, value]) => [name, aims[name]?.(value as number) ?? value])
    const result = Object.fromEntries(aimed) as Call
    if (result.do === 'choose') return { ...result, sites: result.sites.map(aims['site']!) }
    if (result.do === 'promote' || result.do === 'compare') {
      const of = (call as typeof result).of === (call as typeof result).site ? result.site : result.of
      return { ...result, of, version: result.version % ((this.site(of)?.versions.length ?? 0) + 1) }
    }
    return result
  }

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

  liveNumber(site: Site): number {
    return site.versions.find(({ id }) => id === site.live)?.number ?? 0
  }

  predict(caller: Caller, call: Call): Expected {
    this.time += 1
    try {
      return this.#expected(caller, call)
    } catch (error) {
      if (error instanceof Refusal) return error.expected
      throw error
    }
  }

  /** What an operator does, beside the API. */
  takeDown(site: Site, isDown: boolean): void {
    this.time += 1
    site.takenDown = isDown
  }

  /** A paid plan that ends pauses what is beyond the free cap; a paid one that begins resumes what fits. */
  changePlan(org: Org, plan: PlanName): void {
    this.time += 1
    const before = org.plan
    org.plan = plan
    if (isPaid(before) && !isPaid(plan))
      for (const site of worthiestFirst(this.#counted(org).filter((each) => !each.paused)).slice(
        plans[plan].activeDrops,
      ))
        site.paused = true
    else if (isPaid(plan)) this.#resumeFitting(org)
  }

  #expected(caller: Caller, call: Call): Expected {
    switch (call.do) {
      case 'create site':
        return this.#createSite(this.#acting(caller, 'account'), call)
      case 'list sites': {
        const { org } = this.#acting(caller, 'account')
        return {
          status: 200,
          body: this.sitesOf(org)
            .toReversed()
            .map((site) => this.#view(site)),
        }
      }
      case 'read site':
        return { status: 200, body: this.#view(this.#own(this.#acting(caller, 'account'), this.site(call.site))) }
      case 'change site':
        return this.#changeSite(this.#acting(caller, 'verified'), this.site(call.site), call.patch)
      case 'change site wrongly':
        this.#acting(caller, 'verified')
        throw refuse.invalid()
      case 'delete site':
        return this.#deleteSite(this.#acting(caller, 'account'), this.site(call.site))
      case 'upload':
        return this.#upload(this.#acting(caller, 'account'), call)
      case 'bundle':
        return this.#bundle(this.#acting(caller, 'account'), call)
      case 'list versions': {
        const site = this.#own(this.#acting(caller, 'verified'), this.site(call.site))
        return { status: 200, body: site.versions.toReversed().map((version) => this.#versionEntry(site, version)) }
      }
      case 'promote':
        return this.#promote(this.#acting(caller, 'verified'), call)
      case 'compare': {
        const site = this.#own(this.#acting(caller, 'verified'), this.site(call.site))
        this.#retained(site, this.version(call.of, call.version))
        return { status: 200 }
      }
      case 'start upload':
        return this.#startUpload(this.#acting(caller, 'verified'), call)
      case 'send blob':
        return this.#sendBlob(this.#acting(caller, 'verified'), this.upload(call.upload), call.good)
      case 'finish upload':
        return this.#finishUpload(this.#acting(caller, 'verified'), this.upload(call.upload))
      case 'read upload': {
        const upload = this.#openUpload(this.#acting(caller, 'verified'), this.upload(call.upload))
        return { status: 200, body: { upload_id: upload.id, missing: new Set(upload.missing) } }
      }
      case 'choose':
        return this.#choose(this.#acting(caller, 'verified'), call.sites)
      case 'read me':
        return this.#me(this.#acting(caller, 'verified'))
      case 'read usage':
        return this.#usage(this.#acting(caller, 'verified'))
      case 'list organisations': {
        const { person } = this.#acting(caller, 'verified')
        return { status: 200, body: this.#organisationsOf(person) }
      }
      case 'create organisation':
        return this.#createOrganisation(this.#acting(caller, 'verified'), call.name)
      case 'rename organisation': {
        const { person } = this.#acting(caller, 'verified')
        const org = this.#memberOf(person, this.org(call.org), ['owner', 'admin'])
        requireName(call.name)
        return { status: 200, body: { id: org.id, name: call.name }, learn: () => void (org.name = call.name) }
      }
      case 'delete organisation':
        return this.#deleteOrganisation(this.#acting(caller, 'verified'), this.org(call.org))
      case 'switch': {
        const { person, via } = this.#acting(caller, 'verified')
        if (via === 'token') throw refuse.forbidden()
        const org = this.#memberOf(person, this.org(call.org))
        return { status: 200, body: { id: org.id }, learn: () => void (person.sessionOrg = org.id) }
      }
      case 'list members': {
        const org = this.#memberOf(this.#acting(caller, 'verified').person, this.org(call.org))
        return { status: 200, body: [...org.members].map(([user_id, role]) => ({ user_id, role })) }
      }
      case 'list invitations': {
        const org = this.#memberOf(this.#acting(caller, 'verified').person, this.org(call.org), ['owner', 'admin'])
        const open = this.invitations.filter((each) => each.org === org.id && each.open).toReversed()
        return { status: 200, body: open.map(({ id, email, role }) => ({ id, email, role })) }
      }
      case 'transfer':
        return this.#transfer(this.#acting(caller, 'verified'), this.org(call.org), this.person(call.person))
      case 'change role':
        return this.#changeRole(this.#acting(caller, 'verified'), call)
      case 'remove member':
        return this.#removeMember(this.#acting(caller, 'verified'), this.org(call.org), this.person(call.person))
      case 'invite':
        return this.#invite(this.#acting(caller, 'verified'), call)
      case 'withdraw invitation': {
        const org = this.#memberOf(this.#acting(caller, 'verified').person, this.org(call.org), ['owner', 'admin'])
        const invitation = this.invitation(call.invitation)
        if (!invitation?.open || invitation.org !== org.id) throw refuse.notFound()
        return { status: 204, learn: () => void (invitation.open = false) }
      }
      case 'accept invitation':
        return this.#accept(this.#acting(caller, 'verified'), this.invitation(call.invitation))
      case 'list tokens': {
        const { person, org } = this.#acting(caller, 'verified')
        const own = this.tokens.filter((token) => isOwnToken(token, person, org)).toReversed()
        return { status: 200, body: own.map(({ id, name }) => ({ id, name })) }
      }
      case 'create token': {
        const { person, org, via } = this.#acting(caller, 'verified')
        if (call.name.trim() === '') throw refuse.invalid()
        if (via === 'token') throw refuse.forbidden()
        return {
          status: 201,
          body: { name: call.name },
          learn: ({ id, token }: { id: string; token: string }) =>
            void this.tokens.push({
              id,
              secret: token,
              person: person.id,
              org: org.id,
              name: call.name,
              revoked: false,
            }),
        }
      }
      case 'revoke token': {
        const { person, org } = this.#acting(caller, 'verified')
        const token = this.token(call.token)
        if (!token || !isOwnToken(token, person, org)) throw refuse.notFound()
        return { status: 204, learn: () => void (token.revoked = true) }
      }
      case 'publish anonymously':
        requireSingle(call.file, plans.anonymous.uploadBytes)
        return this.#publishAnonymously(call.browser)
      case 'publish markdown':
        if (call.text === '') throw refuse.invalid()
        return this.#publishAnonymously(call.browser)
      case 'list drops of browser': {
        const own = this.sites.filter((site) => site.browser === call.browser).toReversed()
        const body = own.map((site) => ({ id: site.id, slug: site.slug, state: this.stateOf(site) }))
        return { status: 200, body }
      }
      default:
        return call satisfies never
    }
  }

  #acting(caller: Caller, access: 'account' | 'verified'): Acting {
    const acting = this.#credentials(caller)
    if (!acting) throw refuse.unauthorized()
    if (access === 'verified' && !acting.person.verified) throw refuse.unverified()
    return acting
  }

  #credentials(caller: Caller): Acting | undefined {
    switch (caller.kind) {
      case 'session': {
        const person = this.people[caller.person % this.people.length]!
        const switched = this.orgs.find(({ id }) => id === person.sessionOrg)!
        // A session whose organisation was left or deleted acts for the person's own again.
        const isThere = !switched.deleted && switched.members.has(person.id)
        return { person, org: isThere ? switched : this.#personalOf(person), via: 'session' }
      }
      case 'token': {
        const token = this.tokens[caller.token % this.tokens.length]!
        if (token.revoked) return undefined
        const org = this.orgs.find(({ id }) => id === token.org)!
        return { person: this.people.find(({ id }) => id === token.person)!, org, via: 'token' }
      }
      case 'foreign page':
      case 'nobody':
      case 'wrong token':
        return undefined
      default:
        return caller satisfies never
    }
  }

  #personalOf(person: Person): Org {
    return this.orgs.find((org) => org.personal && org.owner === person.id)!
  }

  #ownerOf(orgId: string): Person {
    const { owner } = this.orgs.find(({ id }) => id === orgId)!
    return this.people.find(({ id }) => id === owner)!
  }

  #own({ org }: Acting, site: Site | undefined): Site {
    if (!site || site.deleted || site.org !== org.id) throw refuse.notFound()
    return site
  }

  #memberOf(person: Person, org: Org | undefined, roles: readonly Role[] = ['owner', 'admin', 'member']): Org {
    const role = org?.deleted ? undefined : org?.members.get(person.id)
    if (!org || !role) throw refuse.notFound()
    if (!roles.includes(role)) throw refuse.forbidden()
    return org
  }

  #planOf(site: Site): (typeof plans)[PlanName] {
    return plans[this.orgs.find(({ id }) => id === site.org)!.plan]
  }

  /** Those that take a place, or would if they were not paused. */
  #counted(org: Org): Site[] {
    return this.sitesOf(org).filter((site) => !site.takenDown)
  }

  #view(site: Site): object {
    return {
      id: site.id,
      slug: site.slug,
      name: site.name,
      title: site.title,
      state: this.stateOf(site),
      access_mode: site.hasPassword ? 'password' : 'public',
      has_password: site.hasPassword,
      branding_enabled: this.#planOf(site).badge,
      spa_fallback: site.spaFallback,
      gallery: site.gallery,
      stays_live: site.chosen,
      analytics: site.analytics,
      live_version_id: site.live,
    }
  }

  #versionView(version: Version): object {
    return {
      version_id: version.id,
      version_number: version.number,
      byte_size: version.bytes,
      file_count: version.fileCount,
      message: version.message,
    }
  }

  #versionEntry(site: Site, version: Version): object {
    return { ...this.#versionView(version), live: version.id === site.live }
  }

  #requireSlug(slug: string, siteId: string | undefined): void {
    const problem = this.slugFacts.get(slug)?.problem
    if (problem === 'invalid') throw refuse.invalid()
    if (problem === 'reserved') throw refuse.conflict('slug_reserved')
    const held = this.slugs.get(slug)
    const isOwn = held?.site === siteId
    if (held && (held.kind === 'current' || !(held.isFree || isOwn))) throw refuse.conflict('slug_taken')
  }

  #createSite({ org }: Acting, wanted: { slug: string | undefined; name: string | undefined }): Expected {
    const active = this.#counted(org).filter((site) => !site.paused).length
    if (active >= plans[org.plan].activeDrops) throw refuse.planLimit()
    if (wanted.slug !== undefined) this.#requireSlug(wanted.slug, undefined)
    const { time } = this
    return {
      status: 201,
      body: {
        ...(wanted.slug === undefined ? {} : { slug: wanted.slug }),
        name: wanted.name ?? '',
        state: 'reserved',
        access_mode: 'public',
        has_password: false,
        branding_enabled: plans[org.plan].badge,
        live_version_id: null,
      },
      learn: ({ id, slug }: { id: string; slug: string }) => {
        this.sites.push(newSite({ id, slug, org: org.id, name: wanted.name ?? '', since: time }))
        this.slugs.set(slug, { site: id, kind: 'current', isFree: false })
      },
    }
  }

  #changeSite(acting: Acting, found: Site | undefined, patch: Patch): Expected {
    const site = this.#own(acting, found)
    const plan = this.#planOf(site)
    if (patch.password != null && !plan.password) throw refuse.planFeature()
    if (patch.analytics != null && !plan.analytics) throw refuse.planFeature()
    const renamed = patch.slug !== undefined && patch.slug !== site.slug ? patch.slug : undefined
    if (renamed !== undefined) {
      if (site.takenDown) throw refuse.forbidden()
      this.#requireSlug(renamed, site.id)
    }
    const changed: Site = {
      ...site,
      ...(patch.name === undefined ? {} : { name: patch.name }),
      ...(renamed === undefined ? {} : { slug: renamed }),
      ...(patch.password === undefined ? {} : { hasPassword: patch.password !== null }),
      ...(patch.analytics === undefined ? {} : { analytics: patch.analytics }),
      ...(patch.spa_fallback === undefined ? {} : { spaFallback: patch.spa_fallback }),
      ...(patch.gallery === undefined ? {} : { gallery: patch.gallery }),
    }
    return {
      status: 200,
      body: this.#view(changed),
      learn: () => {
        if (renamed !== undefined) {
          this.slugs.set(site.slug, { site: site.id, kind: 'former', isFree: false })
          this.slugs.set(renamed, { site: site.id, kind: 'current', isFree: false })
        }
        Object.assign(site, changed)
      },
    }
  }

  #deleteSite(acting: Acting, found: Site | undefined): Expected {
    const site = this.#own(acting, found)
    return {
      status: 204,
      learn: () => {
        this.#remove(site)
        this.#resumeFitting(acting.org)
      },
    }
  }

  #remove(site: Site): void {
    site.deleted = true
    site.live = null
    for (const [slug, held] of this.slugs)
      if (held.site === site.id) {
        held.kind = 'tombstone'
        if (slug === site.slug) held.isFree = site.nextNumber === 1
      }
  }

  #resumeFitting(org: Org): void {
    const counted = this.#counted(org)
    const paused = worthiestFirst(counted.filter((site) => site.paused))
    const room = plans[org.plan].activeDrops - (counted.length - paused.length)
    for (const site of paused.slice(0, Math.max(0, room))) site.paused = false
  }

  #requirePublishable(site: Site): void {
    if (site.takenDown) throw refuse.forbidden()
    if (site.paused) throw refuse.conflict('paused')
  }

  /** What was stored before, what comes, what goes: an organisation over its cap may still replace. */
  #requireStorage(site: Site, bytes: number): void {
    const org = this.orgs.find(({ id }) => id === site.org)!
    const { versionsKept, storageBytes } = plans[org.plan]
    const dropped = site.versions.length + 1 > versionsKept ? site.versions[0]!.bytes : 0
    const stored = this.sitesOf(org).reduce((sum, each) => sum + bytesOf(each), 0)
    if (bytes - dropped > 0 && stored + bytes - dropped > storageBytes) throw refuse.planLimit()
  }

  #published(
    site: Site,
    content: { files: ReadonlyMap<string, string>; title: string; bytes: number; message: string; fileCount: number },
  ): Expected {
    this.#requireStorage(site, content.bytes)
    const { time } = this
    const number = site.nextNumber
    const { title, files, bytes, message, fileCount } = content
    return {
      status: 201,
      body: { version_number: number, byte_size: bytes, file_count: fileCount, message },
      learn: ({ version_id: id }: { version_id: string }) => {
        site.versions.push({ id, number, message, title, fileCount, bytes, files })
        if (site.versions.length > this.#planOf(site).versionsKept) site.versions.shift()
        Object.assign(site, { live: id, nextNumber: number + 1, title, since: time })
        for (const hash of files.values()) this.#known.add(`${site.org} ${hash}`)
      },
    }
  }

  #upload(acting: Acting, call: Extract<Call, { do: 'upload' }>): Expected {
    const site = this.#own(acting, this.site(call.site))
    this.#requirePublishable(site)
    requireSingle(call.file, this.#planOf(site).uploadBytes)
    if (call.ifVersion === 'malformed') throw refuse.invalid()
    if (call.ifVersion === 'wrong') throw new Refusal(412, 'version_changed')
    const text = call.file === 'markdown' ? MARKDOWN : call.text
    const sent = singleFile(call.file, text)
    return this.#published(site, {
      // Whatever it was called, a single file is the landing page.
      files: new Map([[call.file === 'markdown' ? 'index.md' : 'index.html', sent.sha256]]),
      title: text,
      bytes: call.file === 'markdown' ? this.#markdownBytes : sent.size,
      message: call.message,
      fileCount: 1,
    })
  }

  #bundle(acting: Acting, call: Extract<Call, { do: 'bundle' }>): Expected {
    const site = this.#own(acting, this.site(call.site))
    this.#requirePublishable(site)
    if (call.kind === 'no index') throw new Refusal(400, 'missing_index')
    if (call.kind === 'not a zip') throw new Refusal(400, 'unsupported_file_type')
    if (call.kind !== 'good') throw refuse.invalid()
    const files = bundleFiles(call.text)
    return this.#published(site, {
      files: new Map(files.map(({ path, sha256 }) => [path, sha256])),
      title: call.text,
      bytes: files.reduce((sum, { size }) => sum + size, 0),
      message: '',
      fileCount: files.length,
    })
  }

  #retained(site: Site, versionId: string | undefined): Version {
    const version = site.versions.find(({ id }) => id === versionId)
    if (!version) throw refuse.notFound()
    return version
  }

  #promote(acting: Acting, call: { site: number; of: number; version: number }): Expected {
    const site = this.#own(acting, this.site(call.site))
    this.#requirePublishable(site)
    const version = this.#retained(site, this.version(call.of, call.version))
    const { time } = this
    return {
      status: 200,
      body: this.#versionView(version),
      learn: () => void Object.assign(site, { live: version.id, title: version.title, since: time }),
    }
  }

  #startUpload(acting: Acting, call: Extract<Call, { do: 'start upload' }>): Expected {
    if (call.ifVersion === 'malformed') throw refuse.invalid()
    const site = this.#own(acting, this.site(call.site))
    this.#requirePublishable(site)
    const files = uploadFiles(call)
    const ifVersion =
      call.ifVersion === 'none' ? undefined : this.liveNumber(site) + (call.ifVersion === 'right' ? 0 : 1)
    const live = site.versions.find(({ id }) => id === site.live)
    const inLive = new Set(live?.files.values())
    const known = (hash: string): boolean => this.#known.has(`${acting.org.id} ${hash}`)
    return {
      status: 201,
      body: {
        unchanged:
          live?.files.size === files.length && files.every((file) => live.files.get(file.path) === file.sha256),
      },
      learn: ({ upload_id: id, missing }: { upload_id: string; missing: string[] }) => {
        for (const { sha256 } of files) {
          if (!known(sha256) && !missing.includes(sha256))
            throw new Error(`${sha256} was never sent, and is not asked for`)
          if (inLive.has(sha256) && missing.includes(sha256)) throw new Error(`${sha256} is live, and is asked for`)
        }
        this.#giveUpOldest(acting.org)
        this.uploads.push({
          id,
          site: site.id,
          org: acting.org.id,
          files,
          title: call.texts[0]!,
          ifVersion,
          missing: new Set(missing),
          open: true,
        })
      },
    }
  }

  #giveUpOldest(org: Org): void {
    const open = this.uploads.filter((upload) => upload.org === org.id && upload.open)
    const room = OPEN_UPLOADS_PER_DROP * plans[org.plan].activeDrops - 1
    for (const upload of open.slice(0, Math.max(0, open.length - room))) upload.open = false
  }

  #openUpload(acting: Acting, upload: Upload | undefined): Upload {
    this.#own(
      acting,
      this.sites.find(({ id }) => id === upload?.site),
    )
    if (!upload?.open) throw refuse.notFound()
    return upload
  }

  #sendBlob(acting: Acting, found: Upload | undefined, good: boolean): Expected {
    const upload = this.#openUpload(acting, found)
    const { sha256 } = nextFile(upload)
    // What is there already is not read again, whatever is sent.
    if (!upload.missing.has(sha256)) return { status: 204 }
    if (!good) throw refuse.invalid()
    return {
      status: 204,
      learn: () => {
        upload.missing.delete(sha256)
      },
    }
  }

  #finishUpload(acting: Acting, found: Upload | undefined): Expected {
    const upload = this.#openUpload(acting, found)
    const site = this.sites.find(({ id }) => id === upload.site)!
    if (upload.missing.size > 0) throw refuse.invalid()
    const { files } = upload
    if (!files.some(({ path }) => path === 'index.html')) throw new Refusal(400, 'missing_index')
    this.#requirePublishable(site)
    if (upload.ifVersion !== undefined && upload.ifVersion !== this.liveNumber(site))
      throw new Refusal(412, 'version_changed')
    const expected = this.#published(site, {
      files: new Map(files.map(({ path, sha256 }) => [path, sha256])),
      title: upload.title,
      bytes: files.reduce((sum, { size }) => sum + size, 0),
      message: '',
      fileCount: files.length,
    })
    return {
      ...expected,
      learn: (body: never) => {
        expected.learn!(body)
        upload.open = false
      },
    }
  }

  #choose(acting: Acting, indexes: readonly number[]): Expected {
    const wanted = [...new Set(indexes.map((index) => this.site(index)))]
    if (wanted.length > MAX_STAYING_LIVE) throw refuse.invalid()
    const chosen = new Set(wanted.map((site) => this.#own(acting, site)))
    const { org } = acting
    const counted = this.#counted(org)
    const live = counted.filter((site) => !site.paused)
    // As many as are live now stay live: chosen ones first, then those that are.
    const places = Math.max(plans[org.plan].activeDrops, live.length)
    const order = worthiestFirst(counted, chosen).toSorted(
      (a, b) => Number(chosen.has(b)) - Number(chosen.has(a)) || Number(a.paused) - Number(b.paused),
    )
    const kept = new Set(order.slice(0, places))
    const after = new Map(counted.map((site) => [site, !kept.has(site)]))
    const all = this.sitesOf(org)
    const changed = all.map((site) => ({
      site,
      chosen: chosen.has(site),
      paused: after.get(site) ?? site.paused,
    }))
    return {
      status: 200,
      body: changed.toReversed().map(({ site, ...change }) => this.#view({ ...site, ...change })),
      learn: () => {
        for (const { site, ...change } of changed) Object.assign(site, change)
      },
    }
  }

  #organisationsOf(person: Person): object[] {
    const own = this.orgs.filter((org) => !org.deleted && org.members.has(person.id))
    return own.toSorted((a, b) => Number(b.personal) - Number(a.personal)).map((org) => tenant(org, person))
  }

  #me({ person, org }: Acting): Expected {
    return {
      status: 200,
      body: {
        user: { id: person.id, email: person.email, email_verified: true },
        organisation: { id: org.id, name: org.name, plan: org.plan },
        role: org.members.get(person.id),
        organisations: this.#organisationsOf(person),
      },
    }
  }

  #usage({ org }: Acting): Expected {
    const plan = plans[org.plan]
    const all = this.sitesOf(org)
    return {
      status: 200,
      body: {
        plan: org.plan,
        drops: { used: this.#counted(org).filter((site) => !site.paused).length, limit: plan.activeDrops },
        storage_bytes: { used: all.reduce((sum, site) => sum + bytesOf(site), 0), limit: plan.storageBytes },
        versions_per_drop: { limit: plan.versionsKept },
        paused_drops: all.filter((site) => site.paused).length,
      },
    }
  }

  #hasAllFree(personId: string): boolean {
    const owned = this.orgs.filter((org) => !org.deleted && org.owner === personId && org.plan === 'free')
    return owned.length >= MAX_FREE_ORGANISATIONS
  }

  #createOrganisation({ person }: Acting, name: string): Expected {
    requireName(name)
    if (this.#hasAllFree(person.id)) throw refuse.limit()
    return {
      status: 201,
      body: { name, plan: 'free', role: 'owner', personal: false },
      learn: ({ id }: { id: string }) =>
        void this.orgs.push({
          id,
          name,
          personal: false,
          plan: 'free',
          owner: person.id,
          members: new Map([[person.id, 'owner']]),
          deleted: false,
        }),
    }
  }

  #deleteOrganisation({ person }: Acting, found: Org | undefined): Expected {
    const org = this.#memberOf(person, found, ['owner'])
    if (org.personal) throw refuse.conflict('personal_organisation')
    return {
      status: 204,
      learn: () => {
        for (const site of this.sitesOf(org)) this.#remove(site)
        for (const token of this.tokens) if (token.org === org.id) token.revoked = true
        for (const invitation of this.invitations) if (invitation.org === org.id) invitation.open = false
        org.deleted = true
      },
    }
  }

  #transfer({ person }: Acting, found: Org | undefined, heir: Person | undefined): Expected {
    const org = this.#memberOf(person, found, ['owner'])
    if (org.personal) throw refuse.conflict('personal_organisation')
    if (heir === person) return { status: 204 }
    if (!heir || !org.members.has(heir.id)) throw refuse.notFound()
    if (org.plan === 'free' && this.#hasAllFree(heir.id)) throw refuse.limit()
    return {
      status: 204,
      learn: () => {
        org.members.set(person.id, 'admin')
        org.members.set(heir.id, 'owner')
        org.owner = heir.id
      },
    }
  }

  #changeRole({ person }: Acting, call: { org: number; person: number; role: string }): Expected {
    const { role } = call
    if (role !== 'admin' && role !== 'member') throw refuse.invalid()
    const org = this.#memberOf(person, this.org(call.org), ['owner', 'admin'])
    const member = this.person(call.person)
    const before = member && org.members.get(member.id)
    if (!before) throw refuse.notFound()
    if (before === 'owner') throw refuse.conflict('owner_role')
    if ([before, role].includes('admin') && org.members.get(person.id) !== 'owner') throw refuse.forbidden()
    return {
      status: 200,
      body: { user_id: member.id, role },
      learn: () => void org.members.set(member.id, role),
    }
  }

  #removeMember({ person }: Acting, found: Org | undefined, member: Person | undefined): Expected {
    const org = this.#memberOf(person, found)
    const own = org.members.get(person.id)!
    const role = member && org.members.get(member.id)
    if (!role) throw refuse.notFound()
    const isLeaving = member === person
    if (!isLeaving && own === 'member') throw refuse.forbidden()
    if (role === 'owner') throw refuse.conflict('owner_role')
    if (!isLeaving && role === 'admin' && own !== 'owner') throw refuse.forbidden()
    return {
      status: 204,
      learn: () => {
        org.members.delete(member.id)
        for (const token of this.tokens) if (token.org === org.id && token.person === member.id) token.revoked = true
      },
    }
  }

  #invite({ person }: Acting, call: { org: number; person: number; role: string }): Expected {
    const { role } = call
    if (role !== 'admin' && role !== 'member') throw refuse.invalid()
    const org = this.#memberOf(person, this.org(call.org), ['owner', 'admin'])
    const email = this.person(call.person)?.email
    if (email === undefined) throw refuse.invalid()
    if (role === 'admin' && org.members.get(person.id) !== 'owner') throw refuse.forbidden()
    const isMember = this.people.some((each) => each.email === email && org.members.has(each.id))
    if (isMember) throw refuse.conflict('already_member')
    return {
      status: 201,
      body: { email, role },
      learn: ({ id, token }: { id: string; token: string }) => {
        for (const each of this.invitations) if (each.org === org.id && each.email === email) each.open = false
        this.invitations.push({ id, org: org.id, email, role, token, open: true })
      },
    }
  }

  #accept({ person }: Acting, invitation: Invitation | undefined): Expected {
    if (!invitation?.open) throw new Refusal(400, 'invalid_link')
    if (invitation.email !== person.email) throw refuse.forbidden()
    const org = this.orgs.find(({ id }) => id === invitation.org)!
    return {
      status: 200,
      body: { id: org.id, name: org.name, plan: org.plan, role: invitation.role, personal: org.personal },
      learn: () => {
        invitation.open = false
        org.members.set(person.id, invitation.role)
      },
    }
  }

  #publishAnonymously(browser: number): Expected {
    const { time } = this
    return {
      status: 201,
      learn: ({ id, slug }: { id: string; slug: string }) => {
        const site = newSite({ id, slug, org: null, name: '', since: time, browser })
        this.sites.push({ ...site, live: 'some version', nextNumber: 2 })
        this.slugs.set(slug, { site: id, kind: 'current', isFree: false })
      },
    }
  }
}

/** Four times out of five one that is meant. */
function pick<Thing>(index: number, all: readonly Thing[], isMeant: (thing: Thing) => boolean): number {
  const meant = all.filter(isMeant)
  if (index % 5 === 4 || meant.length === 0) return Math.floor(index / 5) % (all.length + 1)
  return all.indexOf(meant[Math.floor(index / 5) % meant.length]!)
}

function newSite(known: Pick<Site, 'id' | 'slug' | 'org' | 'name' | 'since' | 'browser'>): Site {
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

/** Chosen ones, then those with content, then what was published last. */
function worthiestFirst(sites: readonly Site[], chosen?: ReadonlySet<Site>): Site[] {
  const isChosen = (site: Site): boolean => chosen?.has(site) ?? site.chosen
  return sites.toSorted(
    (a, b) =>
      Number(isChosen(b)) - Number(isChosen(a)) ||
      Number(a.live === null) - Number(b.live === null) ||
      b.since - a.since,
  )
}

function isPaid(plan: PlanName): boolean {
  return plan !== 'free'
}

function isOwnToken(token: Token, person: Person, org: Org): boolean {
  return !token.revoked && token.person === person.id && token.org === org.id
}

function tenant(org: Org, person: Person): object {
  return { id: org.id, name: org.name, plan: org.plan, role: org.members.get(person.id), personal: org.personal }
}

function bytesOf(site: Site): number {
  return site.versions.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** What a caller sends next: the first that is missing, else one that is there. */
export function nextFile({ files, missing }: Upload): SentFile {
  return files.find(({ sha256 }) => missing.has(sha256)) ?? files.at(-1)!
}

function requireName(name: string): void {
  if (name.trim() === '' || name.includes('://')) throw refuse.invalid()
}

/** Plans whose cap is larger get a small page instead: it would only take time. */
export function isTooLarge(file: FileKind, capBytes: number): boolean {
  return file === 'too large' && capBytes <= plans.free.uploadBytes
}

function requireSingle(file: FileKind, capBytes: number): void {
  if (file === 'program') throw new Refusal(400, 'unsupported_file_type')
  if (isTooLarge(file, capBytes)) throw new Refusal(413, 'upload_too_large')
  if (['none', 'unnamed', 'two', 'not a form'].includes(file)) throw refuse.invalid()
}
