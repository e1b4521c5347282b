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
import { ApiError } from '../../../../shared/contracts/errors.ts'
import { MAX_TEXT_FORM_BYTES } from '../../../../shared/contracts/limits.ts'
import { html, type Html } from '../../../../shared/pages/html.ts'
import { seeOther } from '../../../ground/http/reply.ts'
import { paramsOf, type PathParams, type Reply, type Request, type Route } from '../../../ground/http/route.ts'
import {
  createCallers,
  requestOf,
  requireActor,
  requireShownOrganisation,
  type AccountRequest,
  type Callers,
  type PageRequest,
} from './callers.ts'
import { ACTING_FOR_FIELD } from './draft.ts'
import { csrfField, type Page, type RenderPage, type Viewer } from './layout.ts'
import {
  createReturnedForms,
  SIGN_IN_PAGE,
  type Answer,
  type FormOptions,
  type ReturnedForms,
  type Show,
} from './returned-forms.ts'
import type { DashboardServices } from './services.ts'
import { readWithFiles } from './typed-fields.ts'

export interface FormRequest extends PageRequest {
  readonly form: URLSearchParams
  /** What was chosen, where the form takes files. */
  readonly files: readonly Buffer[]
}

export interface AccountFormRequest extends AccountRequest {
  readonly form: URLSearchParams
}

/** A request, and what stands at the `:name` parts of its path. */
export type At<Path extends string, Kind> = Kind & { readonly params: PathParams<Path> }

export interface AccountFormOptions extends FormOptions {
  readonly verified: boolean
}

export interface Handlers
  extends
    Pick<Callers, 'read' | 'readUploader' | 'requireOwnForm'>,
    Pick<ReturnedForms, 'reply' | 'comeBack' | 'resume' | 'doors'> {
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
}
export function createHandlers(
  services: Pick<DashboardServices, 'access' | 'csrf' | 'organisations' | 'sites'>,
  render: RenderPage,
): Handlers {
  const { csrf } = services
  const pages = new Map<string, Show>()
  const forms = new Map<string, FormOptions>()
  const { read, readUploader, switchIfMember, otherHomeOf, staleForm, requireOwnForm, requireUploader } =
    createCallers(services)
  const { reply, comeBack, orGiveBack, resume, doors } = createReturnedForms({ read }, render, { pages, forms })

  async function submit(
    request: Request,
    form: FormOptions,
    act: (asked: FormRequest) => Promise<Answer> | Answer,
  ): Promise<Reply> {
    const { sent, files } = await readForm(request, form)
    const standing = csrf.standing(request, sent)
    if (standing === 'foreign') csrf.requireCsrf(request, sent)
    const first = await read(request)
    // Without an account there is nothing to be out of date: the deed itself asks to sign in.
    const isStale = standing === 'stale' && (first.actor !== undefined || !('verified' in form))
    const isFollowed = !isStale && (await switchIfMember(first.actor, sent.get(ACTING_FOR_FIELD)))
    const asked = isFollowed ? await read(request) : first
    return orGiveBack(asked, form, sent, () => {
      if (isStale) throw staleForm(request)
      requireShownOrganisation(asked, sent)
      return act({ ...asked, form: sent, files })
    })
  }

  return {
    read,
    readUploader,
    reply,
    comeBack,
    resume,
    doors,
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
            const home = error instanceof ApiError && error.status === 404 ? await otherHomeOf(asked) : undefined
            if (!home) throw error
            return reply(asked.viewer, switchFirstPage(asked.viewer, home, pathAndQueryOf(request)))
          }
        },
      }
    },

    form(path, options, act) {
      forms.set(path, options)
      return {
        method: 'POST',
        path,
        refuse: options.refuse,
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
  }
}

/** A form that takes files is read as such where a browser sent it by itself. */
async function readForm(request: Request, form: FormOptions): Promise<{ sent: URLSearchParams; files: Buffer[] }> {
  const isMultipart = /^multipart\//i.test(request.header('content-type') ?? '')
  if (form.files && isMultipart) return readWithFiles(request, form.files)
  return { sent: await request.form(form.carriesText ? MAX_TEXT_FORM_BYTES : undefined), files: [] }
}

/** A link may stand in anyone's page, so it never switches by itself: the person does, by a form. */
function switchFirstPage(viewer: Viewer, home: { id: string; name: string }, next: string): Page {
  return {
    title: `Switch to ${home.name}`,
    status: 409,
    section: 'sites',
    body: html`
      <div class="narrow section">
        <div class="stack">
          <h1>This drop belongs to ${home.name}</h1>
          <p class="lead">You act for another organisation at the moment. Switch, and go on to where the link leads.</p>
        </div>
        <form class="cluster" method="post" action="/account/organisation/switch">
          ${csrfField(viewer)}
          <input type="hidden" name="org" value="${home.id}">
          <input type="hidden" name="next" value="${next}">
          <button class="button primary">Switch to ${home.name}</button>
          <a class="button" href="/sites">Stay here</a>
        </form>
      </div>
    `,
  }
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

export function pathAndQueryOf(request: Request): string {
  const query = request.query.toString()
  return query === '' ? request.path : `${request.path}?${query}`
}

/** zod and services speak of `slug: …`; people need the sentence only. */
export function problemText(problem: ApiError): string {
  const text = problem.message.replace(/^[a-z_.]+: /, '')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** What a page about a refusal says; of a fault of ours also the id that the log shows. */
export function problemLead(problem: ApiError): Html {
  const { id } = problem.fields
  return html`${problemText(problem)}${typeof id === 'string' && html` <code>${id}</code>`}`
}
