/** Who comes to a page or a form: by their session, and for which organisation they act. */
import { ApiError, errors } from '../../../../shared/contracts/errors.ts'
import type { Actor } from '../../../ground/actor.ts'
import type { Request } from '../../../ground/http/route.ts'
import { encodingOf } from './compressed.ts'
import { ACTING_FOR_FIELD } from './draft.ts'
import type { AccountViewer, Viewer } from './layout.ts'
import type { DashboardServices } from './services.ts'
import { readTyped } from './typed-fields.ts'

export interface PageRequest {
  readonly request: Request
  readonly viewer: Viewer
  readonly actor: Actor | undefined
}

export interface AccountRequest extends PageRequest {
  readonly actor: Actor
  readonly viewer: AccountViewer
}

export interface Callers {
  /** Who comes, by their session. */
  read(request: Request): Promise<PageRequest>
  /** As `read`, for a form that streams: they act for the organisation that its page showed, as its address says. */
  readUploader(request: Request): Promise<PageRequest>
  /** Acts for another organisation of the same person. False where they act for it already, or it is not theirs. */
  switchIfMember(actor: Actor | undefined, orgId: string | null | undefined): Promise<boolean>
  /** The organisation that a link leads into, when the same person belongs to it too and acts for another. */
  otherHomeOf(asked: PageRequest): Promise<{ id: string; name: string } | undefined>
  /** What a person reads whose form of ours was made for another session, or came without cookies. */
  staleForm(request: Request): ApiError
  /** Throws unless the form came from one of our pages, made for this session and organisation. */
  requireOwnForm(asked: PageRequest, fields: URLSearchParams): void
  /** When the session has ended, the fields are still read: what was typed goes on to the sign-in page. */
  requireUploader(asked: PageRequest, sent: URLSearchParams): Promise<Actor>
}

const STALE = 'This page was made before you signed in here. Nothing is lost: look it over and send it again.'
const COOKIES_BLOCKED =
  'Your browser sent no cookie with this form: it blocks cookies, or they were cleared since the page was opened. ' +
  'Allow cookies for this site, then send it again.'
const OTHER_ORGANISATION =
  'You act for another organisation since this page was opened. Look it over and send it again, or switch back first.'
const SESSION_OVER = 'Your session has ended. Sign in: what you have entered is kept and comes back afterwards.'
const SESSION_OVER_UNREAD =
  'Your session has ended, and what came after the files was too much to be read. Go back in your browser to what you entered, keep a copy of it, and sign in.'

export function createCallers({
  access,
  csrf,
  organisations,
  sites,
}: Pick<DashboardServices, 'access' | 'csrf' | 'organisations' | 'sites'>): Callers {
  async function read(request: Request): Promise<PageRequest> {
    const actor = await access.sessionActor(request)
    const { token, setCookie } = csrf.csrfToken(request)
    const cookies = setCookie === undefined ? [] : [setCookie]
    const signedIn = actor && { ...actor, organisations: () => organisations.list(actor) }
    return {
      request,
      actor,
      viewer: { signedIn, csrf: token, cookies, encoding: encodingOf(request.header('accept-encoding')) },
    }
  }

  async function readUploader(request: Request): Promise<PageRequest> {
    const asked = await read(request)
    // What is in the form comes later. Until then the browser says that its page is ours.
    const isOurs = csrf.standing(request, new URLSearchParams()) !== 'foreign'
    const shown = isOurs ? request.query.get(ACTING_FOR_FIELD) : null
    return (await switchIfMember(asked.actor, shown)) ? read(request) : asked
  }

  async function switchIfMember(actor: Actor | undefined, orgId: string | null | undefined): Promise<boolean> {
    if (!actor || !orgId || orgId === actor.orgId) return false
    try {
      await organisations.switchTo(actor, orgId)
      return true
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return false
      throw error
    }
  }

  async function otherHomeOf({ actor, request }: PageRequest): Promise<{ id: string; name: string } | undefined> {
    const { id } = request.params
    if (!actor || id === undefined) return undefined
    const home = await sites.organisationOf(id)
    return (await organisations.list(actor)).find((candidate) => candidate.id === home && home !== actor.orgId)
  }

  function requireOwnForm(asked: PageRequest, fields: URLSearchParams): void {
    if (csrf.standing(asked.request, fields) === 'stale') throw staleForm(asked.request)
    csrf.requireCsrf(asked.request, fields)
    requireShownOrganisation(asked, fields)
  }

  /** Why a form of ours cannot be taken from this browser. */
  function staleForm(request: Request): ApiError {
    return errors.forbidden(csrf.isWithoutCookies(request) ? COOKIES_BLOCKED : STALE)
  }

  async function requireUploader({ request, actor }: PageRequest, sent: URLSearchParams): Promise<Actor> {
    if (!actor && !isFragment(request)) {
      const isWhole = await readTyped(request, sent)
      if (csrf.standing(request, sent) === 'foreign') csrf.requireCsrf(request, sent)
      if (!isWhole) throw errors.unauthorized(SESSION_OVER_UNREAD)
    }
    return requireActor(actor, { verified: false })
  }

  return { read, readUploader, switchIfMember, otherHomeOf, staleForm, requireOwnForm, requireUploader }
}

/** A form acts for the organisation that its page showed, whichever was chosen in another tab since. */
export function requireShownOrganisation({ actor }: PageRequest, fields: URLSearchParams): void {
  const shown = fields.get(ACTING_FOR_FIELD)
  if (actor && shown !== null && shown !== actor.orgId) throw errors.forbidden(OTHER_ORGANISATION)
}

export function requireActor(actor: Actor | undefined, options: { verified: boolean }): Actor {
  if (!actor) throw errors.unauthorized(SESSION_OVER)
  if (options.verified && !actor.emailVerified) throw errors.emailNotVerified()
  return actor
}

/** The same request, from an actor who is signed in. */
export function requestOf(asked: PageRequest, actor: Actor): AccountRequest {
  const signedIn = asked.viewer.signedIn ?? { ...actor, organisations: async () => [] }
  return { ...asked, actor, viewer: { ...asked.viewer, signedIn } }
}

/** A script asks for what it puts into the page itself. */
export function isFragment(request: Request): boolean {
  return request.header('dropway-fragment') !== undefined
}
