/**
 * The kinds of dashboard routes, so that each page says only what is its own: a page for everyone, a page for
 * signed-in people, and the forms of both.
 *
 * What becomes of a form, in this order:
 * 1. It came from elsewhere: refused.
 * 2. Nobody is signed in (any more) and it needs an account: the page asks to sign in and goes on with what was typed.
 * 3. It was made for another session: the page where it stands comes back with what was typed, to be sent again.
 * 4. The deed is refused: the same page comes back with what was typed, and says what is wrong where.
 * 5. It is done.
 */
import { ApiError, errors } from '../../../../shared/errors.ts'
import { MAX_TEXT_FORM_BYTES } from '../../../../shared/limits.ts'
import type { Actor } from '../../../ground/actor.ts'
import { json, seeOther } from '../../../ground/http/reply.ts'
import { paramsOf, type PathParams, type Reply, type Request, type Route } from '../../../ground/http/route.ts'
import { asPageRequest, fillPath, matchPath, withCookie } from './asked.ts'
import { ACTING_FOR_FIELD, draftAgain, draftOf, type Draft, type FieldNames } from './draft.ts'
import type { AccountViewer, Page, RenderPage, Viewer } from './layout.ts'
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

export interface FormRequest extends PageRequest {
  readonly form: URLSearchParams
}

export interface AccountFormRequest extends AccountRequest {
  readonly form: URLSearchParams
}

/** A request, and what stands at the `:name` parts of its path. */
export type At<Path extends string, Kind> = Kind & { readonly params: PathParams<Path> }

/** A page to render in the frame, or a reply of its own (a redirect, a fragment). */
export type Answer = Page | Reply

export interface FormOptions {
  /** Path of the page where the form stands. It is shown again when the form is refused. */
  readonly on: string
  /** Fields of the form that the page takes from its query. */
  readonly keeps?: readonly string[]
  readonly names?: FieldNames
  /** A page or a filled-in template comes with it, so it may be longer than other forms. */
  readonly carriesText?: boolean
}

export interface AccountFormOptions extends FormOptions {
  readonly verified: boolean
}

export interface Handlers {
  /** Who comes, by their session. */
  read(request: Request): Promise<PageRequest>
  /** As `read`, for a form that streams: they act for the organisation that its page showed, as its address says. */
  readUploader(request: Request): Promise<PageRequest>
  reply(viewer: Viewer, answer: Answer): Promise<Reply>
  page<Path extends string>(path: Path, show: (asked: At<Path, PageRequest>) => Promise<Answer> | Answer): Route
  /** Sends strangers to sign in, and back here afterwards. */
  accountPage<Path extends string>(
    path: Path,
    show: (asked: At<Path, AccountRequest>) => Promise<Answer> | Answer,
  ): Route
  form<Path extends string>(
    path: Path,
    options: FormOptions,
    act: (asked: At<Path, FormRequest>) => Promise<Answer> | Answer,
  ): Route
  accountForm<Path extends string>(
    path: Path,
    options: AccountFormOptions,
    act: (asked: At<Path, AccountFormRequest>) => Promise<Answer> | Answer,
  ): Route
  /**
   * A form with files: its deed reads the body as it streams in, collects the fields in `sent`, and calls
   * `requireOwnForm` with those that came before the first file.
   */
  uploadForm<Path extends string>(
    path: Path,
    options: FormOptions,
    act: (asked: At<Path, AccountRequest>, sent: URLSearchParams) => Promise<Answer>,
  ): Route
  /** Throws unless the form came from one of our pages, made for this session and organisation. */
  requireOwnForm(asked: PageRequest, fields: URLSearchParams): void
  /** What a form says that was not accepted; for forms that read their body themselves. */
  comeBack(asked: PageRequest, form: FormOptions, sent: URLSearchParams, problem: ApiError): Promise<Reply>
  /** After signing in: the page where a form stands, with what was typed before. Undefined when there is no such form. */
  resume(
    request: Request,
    setCookie: string,
    sent: { action: string; values: URLSearchParams },
  ): Promise<Reply | undefined>
  /** For each form whose address is no page: opened by itself, it leads to the page where the form stands. */
  doors(routes: readonly Route[]): Route[]
}
type Show = (asked: PageRequest & { readonly params: Readonly<Record<string, string>> }) => Promise<Answer> | Answer

const SIGN_IN_PAGE = '/signin'
const STALE = 'This page was made before you signed in here. Nothing is lost: look it over and send it again.'
const OTHER_ORGANISATION =
  'You act for another organisation since this page was opened. Look it over and send it again, or switch back first.'
const SESSION_OVER = 'Your session has ended. Sign in: what you have entered is kept and comes back afterwards.'
const SESSION_OVER_UNREAD =
  'Your session has ended, and what came after the files was too much to be read. Go back in your browser to what you entered, keep a copy of it, and sign in.'
const WELCOME_BACK = 'You are signed in again. This is what you had entered: look it over and send it.'

export function createHandlers(
  { access, csrf, organisations, sites }: Pick<DashboardServices, 'access' | 'csrf' | 'organisations' | 'sites'>,
  render: RenderPage,
): Handlers {
  const pages = new Map<string, Show>()
  const forms = new Map<string, FormOptions>()

  async function read(request: Request): Promise<PageRequest> {
    const actor = await access.sessionActor(request)
    const { token, setCookie } = csrf.csrfToken(request)
    const cookies = setCookie === undefined ? [] : [setCookie]
    const signedIn = actor && { ...actor, organisations: () => organisations.list(actor) }
    return { request, actor, viewer: { signedIn, csrf: token, cookies } }
  }

  async function readUploader(request: Request): Promise<PageRequest> {
    const asked = await read(request)
    // What is in the form comes later. Until then the browser says that its page is ours.
    const isOurs = csrf.standing(request, new URLSearchParams()) !== 'foreign'
    const shown = isOurs ? request.query.get(ACTING_FOR_FIELD) : null
    return (await switchIfMember(asked.actor, shown)) ? read(request) : asked
  }

  async function reply(viewer: Viewer, answer: Answer): Promise<Reply> {
    return 'title' in answer ? render(viewer, answer) : answer
  }

  /** What no form of the page has said is said above it. */
  async function replyWith(viewer: Viewer, draft: Draft, answer: Answer, status: number, headers = {}): Promise<Reply> {
    if (!('title' in answer)) return answer
    const flash = draft.isShown ? undefined : { tone: 'bad' as const, text: [...draft.problems.values()].join(' ') }
    return render(viewer, { ...answer, ...(flash && { flash }), status, headers: { ...answer.headers, ...headers } })
  }

  async function showPage(
    asked: PageRequest,
    form: FormOptions,
    draft: Draft,
  ): Promise<{ viewer: Viewer; answer: Answer }> {
    const show = pages.get(form.on)
    if (!show) throw new Error(`A form stands on ${form.on}, which is no page`)
    const { params } = asked.request
    const query = new URLSearchParams([...draft.values].filter(([name]) => form.keeps?.includes(name)))
    const request = asPageRequest(asked.request, { path: fillPath(form.on, params), params, query })
    const viewer = { ...asked.viewer, draft }
    return { viewer, answer: await show({ ...asked, request, viewer, params }) }
  }

  async function comeBack(
    asked: PageRequest,
    form: FormOptions,
    sent: URLSearchParams,
    problem: ApiError,
  ): Promise<Reply> {
    const isSignedOut = problem.code === 'unauthorized' && !asked.actor
    const draft = draftOf(asked.request.path, sent, problem, form.names)
    const { viewer, answer } = await showPage(asked, isSignedOut ? { on: SIGN_IN_PAGE } : form, draft)
    return replyWith(viewer, draft, answer, problem.status, problem.headers)
  }

  /** False where they act for it already, or it is not theirs. */
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

  /** A link into another organisation of the same person leads there, instead of nowhere. */
  async function followDrop({ actor, request }: PageRequest): Promise<boolean> {
    const { id } = request.params
    return actor !== undefined && id !== undefined && switchIfMember(actor, await sites.organisationOf(id))
  }

  /** A form acts for the organisation that its page showed, whichever was chosen in another tab since. */
  function requireShownOrganisation({ actor }: PageRequest, fields: URLSearchParams): void {
    const shown = fields.get(ACTING_FOR_FIELD)
    if (actor && shown !== null && shown !== actor.orgId) throw errors.forbidden(OTHER_ORGANISATION)
  }

  function requireOwnForm(asked: PageRequest, fields: URLSearchParams): void {
    if (csrf.standing(asked.request, fields) === 'stale') throw errors.forbidden(STALE)
    csrf.requireCsrf(asked.request, fields)
    requireShownOrganisation(asked, fields)
  }

  /** When the session has ended, the fields are still read: what was typed goes on to the sign-in page. */
  async function requireUploader({ request, actor }: PageRequest, sent: URLSearchParams): Promise<Actor> {
    if (!actor && !isFragment(request)) {
      const isWhole = await readTyped(request, sent)
      if (csrf.standing(request, sent) === 'foreign') csrf.requireCsrf(request, sent)
      if (!isWhole) throw errors.unauthorized(SESSION_OVER_UNREAD)
    }
    return requireActor(actor, { verified: false })
  }

  /** Runs a form's deed; a refusal goes back the way the form came. */
  async function orGiveBack(
    asked: PageRequest,
    form: FormOptions,
    sent: URLSearchParams,
    act: () => Promise<Answer> | Answer,
  ): Promise<Reply> {
    try {
      return await reply(asked.viewer, await act())
    } catch (error) {
      if (!(error instanceof ApiError) || error.status >= 500) throw error
      if (isFragment(asked.request)) return json(error.status, error.toBody(), error.headers)
      return comeBack(asked, form, sent, error)
    }
  }

  async function submit(
    request: Request,
    form: FormOptions,
    act: (asked: FormRequest) => Promise<Answer> | Answer,
  ): Promise<Reply> {
    const sent = await request.form(form.carriesText ? MAX_TEXT_FORM_BYTES : undefined)
    const standing = csrf.standing(request, sent)
    if (standing === 'foreign') csrf.requireCsrf(request, sent)
    const first = await read(request)
    // Without an account there is nothing to be out of date: the deed itself asks to sign in.
    const isStale = standing === 'stale' && (first.actor !== undefined || !('verified' in form))
    const isFollowed = !isStale && (await switchIfMember(first.actor, sent.get(ACTING_FOR_FIELD)))
    const asked = isFollowed ? await read(request) : first
    return orGiveBack(asked, form, sent, () => {
      if (isStale) throw errors.forbidden(STALE)
      requireShownOrganisation(asked, sent)
      return act({ ...asked, form: sent })
    })
  }

  return {
    read,
    readUploader,
    reply,
    comeBack,
    requireOwnForm,

    page(path, show) {
      pages.set(path, show as Show)
      return {
        method: 'GET',
        path,
        async handle(request) {
          const asked = await read(request)
          return reply(asked.viewer, await show({ ...asked, params: paramsOf(path, request) }))
        },
      }
    },

    accountPage(path, show) {
      const showTo = (asked: At<typeof path, PageRequest>): Promise<Answer> | Answer => {
        const { actor, request } = asked
        if (!actor) return seeOther(`${SIGN_IN_PAGE}?next=${encodeURIComponent(pathAndQueryOf(request))}`)
        return show({ ...requestOf(asked, actor), params: asked.params })
      }
      pages.set(path, showTo as Show)
      return {
        method: 'GET',
        path,
        async handle(request) {
          const asked = await read(request)
          try {
            return reply(asked.viewer, await showTo({ ...asked, params: paramsOf(path, request) }))
          } catch (error) {
            if (!(error instanceof ApiError && error.status === 404 && (await followDrop(asked)))) throw error
            const query = new URLSearchParams([...request.query, ['done', 'switched']])
            return seeOther(`${request.path}?${query.toString()}`)
          }
        },
      }
    },

    form(path, options, act) {
      forms.set(path, options)
      return {
        method: 'POST',
        path,
        handle: (request) => submit(request, options, (asked) => act({ ...asked, params: paramsOf(path, request) })),
      }
    },

    accountForm(path, options, act) {
      forms.set(path, options)
      return {
        method: 'POST',
        path,
        handle: (request) =>
          submit(request, options, (asked) => {
            const account = requestOf(asked, requireActor(asked.actor, options))
            return act({ ...account, form: asked.form, params: paramsOf(path, request) })
          }),
      }
    },

    uploadForm(path, options, act) {
      forms.set(path, options)
      return {
        method: 'POST',
        path,
        async handle(request) {
          const asked = await readUploader(request)
          const sent = new URLSearchParams()
          return orGiveBack(asked, options, sent, async () => {
            const account = requestOf(asked, await requireUploader(asked, sent))
            return act({ ...account, params: paramsOf(path, request) }, sent)
          })
        },
      }
    },

    async resume(request, setCookie, { action, values }) {
      const [path, params] =
        [...forms.keys()].flatMap((pattern) => {
          const found = matchPath(pattern, action)
          return found ? [[pattern, found] as const] : []
        })[0] ?? []
      const form = path === undefined ? undefined : forms.get(path)
      if (!form || !params) return undefined
      const later = asPageRequest(withCookie(request, setCookie), {
        path: action,
        params,
        query: new URLSearchParams(),
      })
      const draft = draftAgain(action, values, WELCOME_BACK)
      const { viewer, answer } = await showPage(await read(later), form, draft)
      return replyWith({ ...viewer, cookies: [...viewer.cookies, setCookie] }, draft, answer, 200)
    },

    doors(routes) {
      const answered = new Set(routes.filter(({ method }) => method === 'GET').map(({ path }) => path))
      return [...forms]
        .filter(([path]) => !answered.has(path))
        .map(([path, { on }]) => ({
          method: 'GET',
          path,
          handle: (request) => seeOther(fillPath(on, request.params)),
        }))
    },
  }
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

/** Runs a form's deed; a refusal is shown on the page it came from instead of on one of its own. */
export async function orShow(
  act: () => Promise<Answer>,
  show: (problem: ApiError) => Promise<Answer> | Answer,
): Promise<Answer> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof ApiError && error.status < 500) return show(error)
    throw error
  }
}

/** A script asks for what it puts into the page itself. */
export function isFragment(request: Request): boolean {
  return request.header('dropway-fragment') !== undefined
}

export function pathAndQueryOf(request: Request): string {
  const query = request.query.toString()
  return query === '' ? request.path : `${request.path}?${query}`
}

/** Where to go after signing in: a path of ours, never another site (`//evil`, `/\evil`). */
export function safeNext(next: string | null | undefined, fallback: string): string {
  return next && /^\/(?![/\\])[\x21-\x7e]*$/.test(next) && !next.includes('\\') ? next : fallback
}

/** zod and services speak of `slug: …`; people need the sentence only. */
export function problemText(problem: ApiError): string {
  const text = problem.message.replace(/^[a-z_.]+: /, '')
  return text.charAt(0).toUpperCase() + text.slice(1)
}
