/**
 * The four kinds of dashboard routes, so that each page says only what is its own:
 * a page for everyone, a page for signed-in people, and the forms of both. Forms are refused without a CSRF token.
 */
import { ApiError, errors } from '../../../../shared/errors.ts'
import type { Actor } from '../../../ground/actor.ts'
import { seeOther } from '../../../ground/http/reply.ts'
import { paramsOf, type PathParams, type Reply, type Request, type Route } from '../../../ground/http/route.ts'
import type { AccountViewer, Page, RenderPage, Viewer } from './layout.ts'
import type { DashboardServices } from './services.ts'

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
type At<Path extends string, Kind> = Kind & { readonly params: PathParams<Path> }

/** A page to render in the frame, or a reply of its own (a redirect, a fragment). */
export type Answer = Page | Reply

export interface Handlers {
  /** Who comes, by their session. */
  read(request: Request): Promise<PageRequest>
  reply(viewer: Viewer, answer: Answer): Reply
  page<Path extends string>(path: Path, show: (asked: At<Path, PageRequest>) => Promise<Answer> | Answer): Route
  /** Sends strangers to sign in, and back here afterwards. */
  accountPage<Path extends string>(
    path: Path,
    show: (asked: At<Path, AccountRequest>) => Promise<Answer> | Answer,
  ): Route
  form<Path extends string>(path: Path, act: (asked: At<Path, FormRequest>) => Promise<Answer>): Route
  accountForm<Path extends string>(
    path: Path,
    options: { verified: boolean },
    act: (asked: At<Path, AccountFormRequest>) => Promise<Answer>,
  ): Route
}

export function createHandlers(
  { access, csrf }: Pick<DashboardServices, 'access' | 'csrf'>,
  render: RenderPage,
): Handlers {
  async function read(request: Request): Promise<PageRequest> {
    const actor = await access.sessionActor(request)
    const { token, setCookie } = csrf.csrfToken(request)
    return {
      request,
      actor,
      viewer: { signedIn: actor, csrf: token, cookies: setCookie === undefined ? [] : [setCookie] },
    }
  }

  async function formOf(request: Request): Promise<URLSearchParams> {
    const form = await request.form()
    csrf.requireCsrf(request, form)
    return form
  }

  function reply(viewer: Viewer, answer: Answer): Reply {
    return 'title' in answer ? render(viewer, answer) : answer
  }

  return {
    read,
    reply,

    page: (path, show) => ({
      method: 'GET',
      path,
      async handle(request) {
        const asked = await read(request)
        return reply(asked.viewer, await show({ ...asked, params: paramsOf(path, request) }))
      },
    }),

    accountPage: (path, show) => ({
      method: 'GET',
      path,
      async handle(request) {
        const asked = await read(request)
        const { actor } = asked
        if (!actor) return seeOther(`/signin?next=${encodeURIComponent(pathAndQueryOf(request))}`)
        const account = requestOf(asked, actor)
        return reply(account.viewer, await show({ ...account, params: paramsOf(path, request) }))
      },
    }),

    form: (path, act) => ({
      method: 'POST',
      path,
      async handle(request) {
        const form = await formOf(request)
        const asked = await read(request)
        return reply(asked.viewer, await act({ ...asked, form, params: paramsOf(path, request) }))
      },
    }),

    accountForm: (path, options, act) => ({
      method: 'POST',
      path,
      async handle(request) {
        const form = await formOf(request)
        const asked = await read(request)
        const account = requestOf(asked, requireActor(asked.actor, options))
        return reply(account.viewer, await act({ ...account, form, params: paramsOf(path, request) }))
      },
    }),
  }
}

export function requireActor(actor: Actor | undefined, options: { verified: boolean }): Actor {
  if (!actor) throw errors.unauthorized('Your session has ended. Sign in and try again.')
  if (options.verified && !actor.emailVerified) throw errors.emailNotVerified()
  return actor
}

/** The same request, from an actor who is signed in. */
export function requestOf(asked: PageRequest, actor: Actor): AccountRequest {
  return { ...asked, actor, viewer: { ...asked.viewer, signedIn: actor } }
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
