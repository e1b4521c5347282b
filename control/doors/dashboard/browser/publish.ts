/**
 * Publishing by hand, on every page that can: files, folders and zips that are let go anywhere in the window or chosen,
 * or pasted text. In this order: look at what it is, ask whether it is welcome, send it with progress, go to the result.
 */
import { ApiError, errors } from '../../../../shared/contracts/errors.ts'
import { formatOfText } from '../../../drops/publishing/files/pasted-text.ts'
import { bytesInWords } from '../../../../shared/values/sizes.ts'
import { uploadKindOf, type UploadTerms } from '../../../../shared/content/upload-kind.ts'
import { solveChallenge } from '../../../../shared/pages/browser/proof-of-work.ts'
import { UnreadableFile, watchInput, watchWindow, type ChosenFile } from './modules/chosen-files.ts'
import { enableCopying, find } from './modules/elements.ts'
import { keepInBrowser, takeKept } from './modules/kept-files.ts'
import { lookAt, type Looked } from './modules/look.ts'
import { enablePreview } from './modules/preview.ts'
import { createPanel, type Panel, type WayOn } from './modules/publish-panel.ts'
import { bodyOf, errorText, send, SendError, type Sending, type Sent } from './modules/send.ts'

/** Says in an address that chosen files wait to be published. */
const KEPT = 'kept'

const SESSION_OVER = 'Your session has ended. Sign in: what you chose and typed is kept, and comes back afterwards.'
const KEEPS_NOTHING =
  'This browser does not keep files for you. Sign in in another tab, leave this one open, and publish again from here.'

interface Attempt {
  readonly files: readonly ChosenFile[]
  /** The publisher has read which files look like secrets. */
  readonly allowSecrets: boolean
  readonly proof?: string
}

enableCopying(document)

const form = document.querySelector<HTMLFormElement>('form[data-publish]')
if (form) enablePublishing(form)

function enablePublishing(form: HTMLFormElement): void {
  const panel = createPanel(form)
  const publish = (attempt: Attempt): void => void publishFrom(form, panel, attempt)
  const onFiles = (files: readonly ChosenFile[]): void => publish({ files, allowSecrets: isTicked(form) })
  watchWindow(onFiles, (problem) => panel.refuse(wordsOf(problem), []))
  const input = form.querySelector<HTMLInputElement>('input[type=file]')
  if (input) watchInput(input, onFiles)
  enableFolderChoice(form, input)
  enableText(form)
  form.addEventListener('submit', (event) => {
    const button = (event.submitter as HTMLButtonElement | null) ?? undefined
    if (button?.formTarget) return
    event.preventDefault()
    publish({ files: [], allowSecrets: isTicked(form) })
  })
  if (new URLSearchParams(location.search).has(KEPT))
    void takeKept()
      .then(({ files, fields }) => {
        history.replaceState(null, '', hereWithout(KEPT))
        fillIn(form, fields)
        if (files.length > 0) onFiles(files)
      })
      .catch(() => undefined)
}

function hereWithout(name: string): string {
  const here = new URL(location.href)
  here.searchParams.delete(name)
  return here.href
}

/** What each page makes of its own, and what a person never types. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['csrf', 'acting_for', 'stamp', 'website'])

function typedInto(form: HTMLFormElement): [name: string, value: string][] {
  return [...new FormData(form)].filter(
    (field): field is [string, string] => typeof field[1] === 'string' && !OWN_FIELDS.has(field[0]),
  )
}

function fillIn(form: HTMLFormElement, fields: readonly (readonly [name: string, value: string])[]): void {
  for (const [name, value] of fields) {
    const field = form.elements.namedItem(name)
    if (field instanceof HTMLInputElement && field.type === 'checkbox') field.checked = true
    else if (
      field instanceof HTMLInputElement ||
      field instanceof HTMLTextAreaElement ||
      field instanceof HTMLSelectElement
    )
      field.value = value
  }
}

function isTicked(form: HTMLFormElement): boolean {
  return form.querySelector<HTMLInputElement>('input[name=allow_secrets]')?.checked ?? false
}

/** A file input chooses files or a folder, never both: the button turns it into the latter for one choice. */
function enableFolderChoice(form: HTMLFormElement, input: HTMLInputElement | null): void {
  form.querySelector('[data-choose-folder]')?.addEventListener('click', () => {
    if (!input) return
    input.webkitdirectory = true
    input.click()
    input.webkitdirectory = false
  })
}

/** Says what the text is taken for while it is typed; the choice beside it says otherwise. */
function enableText(form: HTMLFormElement): void {
  const source = form.querySelector<HTMLTextAreaElement>('textarea[name=text]')
  if (!source) return
  const choice = find(form, 'select[name=format]', HTMLSelectElement)
  const guess = find(choice, 'option', HTMLOptionElement)
  const words = guess.text
  const show = (): void => {
    const found = formatOfText(source.value) === 'html' ? 'HTML' : 'Markdown'
    guess.text = source.value.trim() === '' ? words : `Looks like ${found}`
  }
  source.addEventListener('input', show)
  choice.addEventListener('change', () => source.dispatchEvent(new Event('input')))
  show()
  if (source.dataset['previewSource'] === undefined) return
  enablePreview(form, source)
  if (source.value.trim() !== '') source.dispatchEvent(new Event('input'))
}

async function publishFrom(form: HTMLFormElement, panel: Panel, attempt: Attempt): Promise<void> {
  if (panel.isBusy()) return
  panel.begin(attempt.files.length > 0 ? 'Looking at it…' : 'Publishing…')
  try {
    const looked = attempt.files.length > 0 ? await look(form, attempt) : undefined
    await askFirst(form, looked)
    await sendTo(form, panel, attempt, looked)
  } catch (error) {
    panel.refuse(wordsOf(error), waysOn(form, panel, attempt, error))
  } finally {
    panel.end()
  }
}

function look({ dataset }: HTMLFormElement, { files, allowSecrets }: Attempt): Promise<Looked> {
  const takes = dataset['takes'] === 'page' ? 'page' : 'anything'
  const maxFiles = dataset['files'] === undefined ? undefined : Number(dataset['files'])
  return lookAt(files, { capBytes: Number(dataset['cap']), maxFiles, takes, allowSecrets })
}

/** Whether the address is free, and whether the plan has room: known before the first byte is sent. */
async function askFirst(form: HTMLFormElement, looked: Looked | undefined): Promise<void> {
  const { check, site } = form.dataset
  if (check === undefined) return
  const valueOf = (name: string): string => form.querySelector<HTMLInputElement>(`input[name=${name}]`)?.value ?? ''
  const asked = new URLSearchParams({
    csrf: valueOf('csrf'),
    acting_for: valueOf('acting_for'),
    slug: valueOf('slug'),
    site: site ?? '',
    // How large the files of an archive are shows when it is unpacked.
    bytes: String(looked === undefined || looked.isArchive ? 0 : looked.bytes),
  })
  const answer = await fetch(check, { method: 'POST', body: asked, headers: { 'dropway-fragment': '1' } })
  const sent = { status: answer.status, text: await answer.text() }
  if (!answer.ok) throw refusalOf(sent)
}

async function sendTo(
  form: HTMLFormElement,
  panel: Panel,
  attempt: Attempt,
  looked: Looked | undefined,
): Promise<void> {
  const { proof } = attempt
  const headers = { 'dropway-fragment': '1', ...(proof === undefined ? {} : { 'dropway-proof': proof }) }
  const sending = send(form.action, bodyFor(form, attempt, looked), headers, (sentBytes, allBytes) => {
    const share = sentBytes / allBytes
    const figures = `${Math.floor(share * 100)} %, ${bytesInWords(sentBytes)} of ${bytesInWords(allBytes)}`
    panel.show(share === 1 ? 'Publishing…' : `Sending ${looked?.words ?? 'the text'}`, share, figures)
  })
  const sent = await whileLeavingAsks(panel, sending)
  const body = bodyOf(sent)
  if (sent.status === 201 && typeof body['location'] === 'string') return location.assign(body['location'])
  const { challenge, bits } = body
  if (proof === undefined && typeof challenge === 'string' && typeof bits === 'number')
    return sendTo(form, panel, { ...attempt, proof: await solveChallenge(challenge, bits) }, looked)
  throw refusalOf(sent)
}

/** Cancel works while it is sent, and a person who is about to leave is asked. */
async function whileLeavingAsks(panel: Panel, sending: Sending): Promise<Sent> {
  const ask = (event: BeforeUnloadEvent): void => event.preventDefault()
  addEventListener('beforeunload', ask)
  const stopCancelling = panel.onCancel(sending.cancel)
  try {
    return await sending.done
  } finally {
    stopCancelling()
    removeEventListener('beforeunload', ask)
  }
}

/** Fields first, then the paths of all files, then the files: the server decides before the bytes arrive. */
function bodyFor(form: HTMLFormElement, { allowSecrets }: Attempt, looked: Looked | undefined): FormData {
  const body = new FormData()
  for (const [name, value] of new FormData(form)) {
    if (typeof value === 'string' && (name !== 'text' || !looked)) body.append(name, value)
  }
  if (allowSecrets) body.set('allow_secrets', 'on')
  for (const { path } of looked?.files ?? []) body.append('paths', path)
  for (const { file } of looked?.files ?? []) body.append('files', file)
  return body
}

function refusalOf(sent: { status: number; text: string }): ApiError {
  const code = bodyOf(sent)['error']
  const words = sent.status === 401 ? SESSION_OVER : errorText(sent)
  return errors.relayed({ status: sent.status, code: typeof code === 'string' ? code : '', detail: words })
}

function wordsOf(error: unknown): string {
  const isSaid = error instanceof ApiError || error instanceof SendError || error instanceof UnreadableFile
  return isSaid ? error.message : 'This did not work. Try again.'
}

/** What a person can do about a refusal, nearest first. */
function waysOn(form: HTMLFormElement, panel: Panel, attempt: Attempt, error: unknown): WayOn[] {
  const code = error instanceof ApiError ? error.code : undefined
  const again = (change: Partial<Attempt>) => (): void => void publishFrom(form, panel, { ...attempt, ...change })
  if (code === 'secret_files') return [{ label: 'Publish them too', act: again({ allowSecrets: true }) }]
  if (error instanceof ApiError && error.status === 401)
    return [{ label: 'Sign in', act: () => signInAgain(form, panel, attempt) }]
  if (code === 'version_changed') return [{ label: 'Publish mine over it', act: overwriting(form, again({})) }]
  if (attempt.files.length > 0 && isForAccounts(form, attempt.files))
    return [
      { label: 'Sign up and publish it', act: () => void goWithFiles(form, panel, attempt, '/signup?next=/sites/new') },
      { label: 'Sign in', act: () => void goWithFiles(form, panel, attempt, '/signin?next=/sites/new') },
    ]
  return attempt.files.length > 0 && isKnownBeforehand(code) ? [] : [{ label: 'Try again', act: again({}) }]
}

/** The publisher knows now that another version is live. */
function overwriting(form: HTMLFormElement, publish: () => void): () => void {
  return () => {
    form.querySelector('input[name=if_version]')?.remove()
    publish()
  }
}

/** A stranger may not publish it, and anyone with an account may. */
function isForAccounts({ dataset }: HTMLFormElement, files: readonly ChosenFile[]): boolean {
  if (dataset['takes'] !== 'page') return false
  const given = files.map(({ file, path }) => ({ path, size: file.size }))
  const isTaken = (takes: UploadTerms['takes'], capBytes: number): boolean => {
    try {
      uploadKindOf(given, { takes, capBytes })
      return true
    } catch {
      return false
    }
  }
  return !isTaken('page', Number(dataset['cap'])) && isTaken('anything', Number(dataset['accountCap']))
}

function isKnownBeforehand(code: string | undefined): boolean {
  return code !== undefined && ['unsupported_file_type', 'missing_index', 'upload_too_large'].includes(code)
}

/** Text goes to the service, whose sign-in form carries it through; files wait in this browser. */
function signInAgain(form: HTMLFormElement, panel: Panel, attempt: Attempt): void {
  if (attempt.files.length === 0) return form.submit()
  void goWithFiles(form, panel, attempt, `/signin?next=${encodeURIComponent(location.pathname + location.search)}`)
}

/** The files, and what was typed beside them, wait in this browser while their publisher goes to `page` and its `next`. */
async function goWithFiles(form: HTMLFormElement, panel: Panel, { files }: Attempt, page: string): Promise<void> {
  try {
    await keepInBrowser({ files, fields: typedInto(form) })
  } catch {
    return panel.refuse(KEEPS_NOTHING, [])
  }
  const there = new URL(page, location.href)
  const next = new URL(there.searchParams.get('next') ?? '', location.href)
  next.searchParams.set(KEPT, '')
  there.searchParams.set('next', next.pathname + next.search)
  location.assign(there)
}
