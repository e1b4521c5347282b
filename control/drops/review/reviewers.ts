/**
 * Who is at the threads of a drop. In this order, and the first that is present decides:
 *   1. `Dropway-Guest`: the token of a guest link
 *   2. a member of the drop's organisation, by API token, connected app or session
 *   3. a person with an account whose address is on the drop's list of viewers
 *   4. the cookie that the review page gave to who came by a link or a mailed code
 * Nothing is cached: a link that was ended, or a viewer who was taken off the list, is refused from the next call on.
 */
import { errors } from '../../../shared/contracts/errors.ts'
import { DAY_MS, SECOND_MS, type Clock } from '../../../shared/running/clock.ts'
import { hashSecret, randomSecret, type Secrets } from '../../../shared/secrets/secrets.ts'
import { suffices, type Actor, type Scope } from '../../ground/actor.ts'
import type { Sql } from '../../ground/database/sql.ts'
import type { Authenticate } from '../../ground/http/api.ts'
import { cookie } from '../../ground/http/reply.ts'
import type { Request } from '../../ground/http/route.ts'
import { isCrossOrigin } from '../../people/access/same-origin.ts'
import { stateOf, type SiteFacts } from '../sites/rules.ts'
import type { Sites } from '../sites/sites.ts'
import { memberOf } from '../threads/review.ts'
import type { Reviewer } from '../threads/reviewer.ts'
import { MAX_AUTHOR_CHARS, nameOfEmail } from '../threads/rules.ts'
import { storable } from '../publishing/html/text.ts'
import {
  findGuestLinkBy,
  findInvitedBy,
  findViewerOf,
  useGuestLink,
  type CommentingViewer,
  type GuestLinkRow,
} from '../viewers/lists.ts'
import { admissionEnd } from '../visiting/rules.ts'

/** What the review page remembers of a person, sealed in a cookie of its own for each drop. */
export interface ReviewVisit {
  readonly siteId: string
  readonly kind: 'viewer' | 'guest'
  readonly id: string
  /** Tells those apart who came by one link. */
  readonly key: string
  readonly name: string
  readonly email: string
  readonly endsAt: number
}

export const GUEST_HEADER = 'dropway-guest'
const CONTEXT = 'review-visit'
const VISIT_MS = 30 * DAY_MS
const MAX_SEALED_CHARS = 2000

export interface Reviewers {
  /** Throws 401 without a credential, 404 for what is not theirs, 403 where the credential is too narrow. */
  require(request: Request, siteId: string, needs: Scope): Promise<Reviewer>
  /** For pages: who comes with this session, or with the cookie of the review page; undefined for strangers. */
  find(request: Request, site: SiteFacts, actor: Actor | undefined): Promise<Reviewer | undefined>
  /** A member of the drop's organisation, for callers that have no request; throws 404 for others. */
  member(actor: Actor, siteId: string): Promise<Reviewer>
  /** The link of a token, where it may be used now. */
  link(siteId: string, token: string): Promise<GuestLinkRow | undefined>
  /** The viewer whom a mailed invitation names, where it may be used now. */
  invited(siteId: string, token: string): ReturnType<typeof findInvitedBy>
  /** Takes one use of the link and gives the cookie; undefined when it is over, or lets its holder look and not comment. */
  enterByLink(tx: Sql, site: EnteredDrop, token: string, name: string): Promise<string | undefined>
  /** The cookie of a viewer who has proved their address; undefined for who is no viewer. */
  enterByMail(site: EnteredDrop, email: string, name: string): Promise<string | undefined>
}

/** The drop that someone enters, and how long it lets a browser in. */
type EnteredDrop = Pick<SiteFacts, 'id' | 'admission_ms'>

interface ReviewersDependencies {
  readonly sql: Sql
  readonly clock: Clock
  readonly secrets: Secrets
  readonly baseUrl: string
  readonly authenticate: Authenticate
  readonly sites: Pick<Sites, 'find' | 'requireOwn'>
}

/** Who a credential is at the threads of a drop; undefined for who is no one there. */
interface Recognition extends Pick<Reviewers, 'link'> {
  guestOf(site: SiteFacts, token: string, ip: string): Promise<Reviewer | undefined>
  ofCookie(site: SiteFacts, request: Request): Promise<Reviewer | undefined>
  ofActor(site: SiteFacts, actor: Actor): Promise<Reviewer | undefined>
}

function createReviewerRecognition({ sql, clock, secrets, baseUrl }: ReviewersDependencies): Recognition {
  async function link(siteId: string, token: string): Promise<GuestLinkRow | undefined> {
    const found = await findGuestLinkBy(sql, siteId, { token })
    return isOver(found, clock.now()) ? undefined : found
  }

  async function guestOf(site: SiteFacts, token: string, ip: string): Promise<Reviewer | undefined> {
    const found = await link(site.id, token)
    if (!found) return undefined
    const name = found.name === '' ? 'Guest' : found.name
    return {
      kind: 'guest',
      id: found.id,
      key: '',
      name,
      role: found.role,
      site,
      actor: undefined,
      email: undefined,
      ip,
      endsAt: found.expires_at?.getTime(),
    }
  }

  async function ofCookie(site: SiteFacts, request: Request): Promise<Reviewer | undefined> {
    const visit = openVisit(secrets, request.cookie(visitCookieName(site.id)))
    if (visit?.siteId !== site.id || visit.endsAt <= clock.now()) return undefined
    // A link from elsewhere leads here; a form or a script from elsewhere does nothing.
    if (request.method !== 'GET' && isCrossOrigin(request, baseUrl)) return undefined
    const { kind, id, key, name, email, endsAt } = visit
    const person = { kind, id, key, name, site, actor: undefined, ip: request.ip, endsAt }
    if (kind === 'guest') {
      const found = await findGuestLinkBy(sql, site.id, { id })
      return found && !isOver(found, clock.now()) ? { ...person, role: found.role, email: undefined } : undefined
    }
    const viewer = await findViewerOf(sql, site.id, email)
    return viewer?.id === id ? { ...person, role: viewer.role, email } : undefined
  }

  async function ofActor(site: SiteFacts, actor: Actor): Promise<Reviewer | undefined> {
    const { email, ip, reach } = actor
    if (actor.orgId === site.org_id) {
      const isReached = reach.sites === undefined || reach.sites.includes(site.id)
      return isReached ? { ...memberOf(actor), site, actor, email, ip } : undefined
    }
    const viewer =
      actor.emailVerified && reach.sites === undefined ? await findViewerOf(sql, site.id, email) : undefined
    if (!viewer || !isOpenToVisitors(site, clock.now())) return undefined
    return { ...viewerAuthor(viewer, email, nameOfEmail(email)), role: viewer.role, site, actor: undefined, email, ip }
  }

  return { link, guestOf, ofCookie, ofActor }
}

export function createReviewers(deps: ReviewersDependencies): Reviewers {
  const { sql, clock, secrets, authenticate, sites } = deps
  const { link, guestOf, ofCookie, ofActor } = createReviewerRecognition(deps)

  async function visited(siteId: string): Promise<SiteFacts | undefined> {
    const site = await sites.find(sql, siteId)
    return site && !site.deleted_at && site.org_id !== null ? site : undefined
  }

  async function require(request: Request, siteId: string, needs: Scope): Promise<Reviewer> {
    const site = await visited(siteId)
    const token = request.header(GUEST_HEADER)?.trim()
    if (token !== undefined && token !== '') {
      const guest = site && isOpenToVisitors(site, clock.now()) ? await guestOf(site, token, request.ip) : undefined
      if (!guest) throw errors.unauthorized('This guest link does not open this drop, or it has ended.')
      return guest
    }
    const byCookie =
      site && isOpenToVisitors(site, clock.now()) && request.header('authorization') === undefined
        ? await ofCookie(site, request)
        : undefined
    const actor = await authenticate(request).catch((error: unknown) => {
      if (byCookie) return undefined
      throw error
    })
    const known = actor && site ? await ofActor(site, actor) : undefined
    if (actor && known) {
      if (!actor.emailVerified) throw errors.emailNotVerified()
      if (!suffices(actor, needs)) throw errors.insufficientScope(needs, actor.reach.scope)
      return known
    }
    if (byCookie) return byCookie
    if (!actor) throw errors.unauthorized()
    if (!actor.emailVerified) throw errors.emailNotVerified()
    if (!suffices(actor, needs)) throw errors.insufficientScope(needs, actor.reach.scope)
    throw errors.notFound()
  }

  return {
    require,
    link,
    invited: (siteId, token) => findInvitedBy(sql, siteId, token, new Date(clock.now())),
    async member(actor, siteId) {
      const site = await sites.requireOwn(sql, actor, siteId)
      return { ...memberOf(actor), site, actor, email: actor.email, ip: actor.ip }
    },
    async find(request, site, actor) {
      const known = actor?.emailVerified ? await ofActor(site, actor) : undefined
      if (known !== undefined) return known
      return isOpenToVisitors(site, clock.now()) ? ofCookie(site, request) : undefined
    },
    async enterByLink(tx, { id: siteId, admission_ms: dropMs }, token, name) {
      if ((await findGuestLinkBy(tx, siteId, { token }))?.role !== 'comment') return undefined
      const used = await useGuestLink(tx, siteId, token, { now: new Date(clock.now()), counts: true })
      if (!used) return undefined
      const end = admissionEnd(clock.now(), { serviceMs: VISIT_MS, dropMs, linkEnd: used.expires_at })
      const endsAt = end.getTime()
      return visitCookie(
        secrets,
        { siteId, kind: 'guest', id: used.id, key: randomSecret(9), name: nameIn(name), email: '', endsAt },
        clock.now(),
      )
    },
    async enterByMail({ id: siteId, admission_ms: dropMs }, email, given) {
      const viewer = await findViewerOf(sql, siteId, email)
      if (!viewer) return undefined
      const name = nameIn(given) || nameOfEmail(email)
      const { kind, id, key } = viewerAuthor(viewer, email, name)
      const endsAt = admissionEnd(clock.now(), { serviceMs: VISIT_MS, dropMs }).getTime()
      return visitCookie(secrets, { siteId, kind, id, key, name, email, endsAt }, clock.now())
    },
  }
}

/** Everyone at a domain is one entry of the list: the address tells them apart. */
function viewerAuthor(viewer: CommentingViewer, email: string, name: string) {
  return { kind: 'viewer', id: viewer.id, key: hashSecret(email).slice(0, 24), name } as const
}

function isOver(link: GuestLinkRow | undefined, now: number): boolean {
  return link === undefined || (link.expires_at !== null && link.expires_at.getTime() <= now)
}

/** Who was let in sees nothing of a drop that is closed to everyone. Drops that have only previews can be talked about. */
function isOpenToVisitors(site: SiteFacts, now: number): boolean {
  const state = stateOf(site, now)
  return state === 'live' || state === 'reserved'
}

/** One line, as people sign. */
function nameIn(text: string): string {
  const name = storable(text.replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ').trim())
  return name.slice(0, MAX_AUTHOR_CHARS)
}

export function visitCookieName(siteId: string): `__Host-${string}` {
  return `__Host-dropway-review-${siteId}`
}

function visitCookie(secrets: Pick<Secrets, 'seal'>, visit: ReviewVisit, now: number): string {
  const { siteId, kind, id, key, name, email, endsAt } = visit
  const sealed = secrets.seal(JSON.stringify([siteId, kind, id, key, name, email, endsAt]), CONTEXT)
  return cookie(visitCookieName(siteId), sealed, { maxAgeSeconds: Math.max(0, Math.floor((endsAt - now) / SECOND_MS)) })
}

/** Undefined for what this service did not seal. */
function openVisit(secrets: Pick<Secrets, 'open'>, sealed: string | undefined): ReviewVisit | undefined {
  if (sealed === undefined || sealed.length > MAX_SEALED_CHARS) return undefined
  try {
    const [siteId, kind, id, key, name, email, endsAt] = JSON.parse(String(secrets.open(sealed, CONTEXT))) as [
      string,
      ReviewVisit['kind'],
      string,
      string,
      string,
      string,
      number,
    ]
    return { siteId, kind, id, key, name, email, endsAt }
  } catch {
    return undefined
  }
}
