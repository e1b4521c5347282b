/** Forms that are not accepted: the page where they stand comes back with what was typed. */
import { ApiError } from '../../../../shared/contracts/errors.ts'
import { json, seeOther } from '../../../ground/http/reply.ts'
import type { Reply, Request, Route } from '../../../ground/http/route.ts'
import { asPageRequest, fillPath, matchPath, withCookie } from './asked.ts'
import { isFragment, type Callers, type PageRequest } from './callers.ts'
import { draftAgain, draftOf, type Draft, type FieldNames } from './draft.ts'
import type { Page, RenderPage, Viewer } from './layout.ts'
import type { FilesOfForm } from './typed-fields.ts'

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
  /** Its answer stands in a frame of the page, where the page itself cannot: so does a refusal. */
  readonly refuse?: Route['refuse']
  /** Small files come with it where no script sends them. */
  readonly files?: FilesOfForm
}

export interface ReturnedForms {
  reply(viewer: Viewer, answer: Answer): Promise<Reply>
  /** What a form says that was not accepted; for forms that read their body themselves. */
  comeBack(asked: PageRequest, form: FormOptions, sent: URLSearchParams, problem: ApiError): Promise<Reply>
  /** Runs a form's deed; a refusal goes back the way the form came. */
  orGiveBack(
    asked: PageRequest,
    form: FormOptions,
    sent: URLSearchParams,
    act: () => Promise<Answer> | Answer,
  ): Promise<Reply>
  /** After signing in: the page where a form stands, with what was typed before. Undefined when there is no such form. */
  resume(
    request: Request,
    setCookie: string,
    sent: { action: string; values: URLSearchParams },
  ): Promise<Reply | undefined>
  /** For each form whose address is no page: opened by itself, it leads to the page where the form stands. */
  doors(routes: readonly Route[]): Route[]
}

export type Show = (
  asked: PageRequest & { readonly params: Readonly<Record<string, string>> },
) => Promise<Answer> | Answer

export const SIGN_IN_PAGE = '/signin'
const WELCOME_BACK = 'You are signed in again. This is what you had entered: look it over and send it.'

/** The person proves who they are and comes back to `page`. */
export function proveFirst(page: string): Reply {
  return seeOther(`/account/prove?next=${encodeURIComponent(page)}`)
}

/** The page where the form stands, with what it takes from its query. */
function pageOf({ request }: PageRequest, form: FormOptions, sent: URLSearchParams): string {
  const kept = new URLSearchParams([...sent].filter(([name]) => form.keeps?.includes(name)))
  return `${fillPath(form.on, request.params)}${kept.size > 0 ? `?${kept}` : ''}`
}

/** `pages` and `forms` by their path: routes add themselves while they are made, before the first request. */
export function createReturnedForms(
  { read }: Pick<Callers, 'read'>,
  render: RenderPage,
  { pages, forms }: { pages: ReadonlyMap<string, Show>; forms: ReadonlyMap<string, FormOptions> },
): ReturnedForms {
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

  async function orGiveBack(
    asked: PageRequest,
    form: FormOptions,
    sent: URLSearchParams,
    act: () => Promise<Answer> | Answer,
  ): Promise<Reply> {
    try {
      return await reply(asked.viewer, await act())
    } catch (error) {
      if (!(error instanceof ApiError) || error.status >= 500 || form.refuse) throw error
      if (error.code === 'step_up_required' && !isFragment(asked.request)) return proveFirst(pageOf(asked, form, sent))
      if (isFragment(asked.request)) return json(error.status, error.toBody(), error.headers)
      return comeBack(asked, form, sent, error)
    }
  }

  return {
    reply,
    comeBack,
    orGiveBack,

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
