/** Publishing to an account's drop: files, folders, zips or text, with progress, cancel and retry; live preview of text. */
import { watchZone, type PickedFile } from './modules/drop-zone.ts'
import { enableCopying, find } from './modules/elements.ts'
import { enablePreview } from './modules/preview.ts'
import { errorText, send, SendError, type Sending } from './modules/send.ts'

enableCopying(document)

const form = document.querySelector<HTMLFormElement>('form[data-publish]')
if (form) enablePublishing(form)

function enablePublishing(form: HTMLFormElement): void {
  const zone = find(form, '[data-zone]', HTMLElement)
  const source = find(form, '[data-preview-source]', HTMLTextAreaElement)
  enablePreview(form, source)
  enableFolderChoice(form, zone)
  watchZone(zone, (files) => void publish(form, files))
  form.addEventListener('submit', (event) => {
    const button = (event.submitter as HTMLButtonElement | null) ?? undefined
    if (button?.formTarget) return
    event.preventDefault()
    void publish(form, [])
  })
}

/** A file input chooses files or a folder, never both: the button turns it into the latter for one choice. */
function enableFolderChoice(form: HTMLFormElement, zone: HTMLElement): void {
  const input = find(zone, 'input', HTMLInputElement)
  find(form, '[data-choose-folder]', HTMLButtonElement).addEventListener('click', () => {
    input.webkitdirectory = true
    input.click()
    input.webkitdirectory = false
  })
}

async function publish(form: HTMLFormElement, files: readonly PickedFile[]): Promise<void> {
  const panel = find(form, '[data-progress]', HTMLElement)
  const bar = find(panel, 'progress', HTMLProgressElement)
  const status = find(panel, '[role=status]', HTMLElement)
  const button = find(form, 'button.primary', HTMLButtonElement)
  clearProblem(form)
  panel.hidden = false
  button.disabled = true
  const [first] = files
  status.textContent = first ? `Uploading ${files.length === 1 ? first.path : `${files.length} files`}…` : 'Publishing…'
  const sending = send(form.action, bodyOf(form, files), { 'dropway-fragment': '1' }, (share) => {
    bar.value = share * 100
    if (share === 1) status.textContent = 'Publishing…'
  })
  const stopCancelling = enableCancel(panel, sending)
  try {
    const sent = await sending.done
    const location = sent.status === 201 ? (JSON.parse(sent.text) as { location: string }).location : undefined
    if (location !== undefined) globalThis.location.assign(location)
    else showProblem(form, errorText(sent), files)
  } catch (error) {
    showProblem(form, error instanceof SendError ? error.message : 'This did not work. Try again.', files)
  } finally {
    stopCancelling()
    panel.hidden = true
    button.disabled = false
    bar.value = 0
  }
}

function enableCancel(panel: HTMLElement, sending: Sending): () => void {
  const cancel = find(panel, '[data-cancel]', HTMLButtonElement)
  cancel.addEventListener('click', sending.cancel)
  return () => cancel.removeEventListener('click', sending.cancel)
}

/** Fields first, then each file after its path: the server decides before the bytes arrive. */
function bodyOf(form: HTMLFormElement, files: readonly PickedFile[]): FormData {
  const body = new FormData()
  for (const [name, value] of new FormData(form)) {
    if (typeof value === 'string' && (name !== 'text' || files.length === 0)) body.append(name, value)
  }
  for (const { file, path } of files) {
    body.append('paths', path)
    body.append('files', file)
  }
  return body
}

function clearProblem(form: HTMLFormElement): void {
  for (const notice of form.querySelectorAll('.notice.bad')) notice.remove()
}

function showProblem(form: HTMLFormElement, text: string, files: readonly PickedFile[]): void {
  clearProblem(form)
  const notice = document.createElement('div')
  notice.className = 'notice bad cluster spread'
  notice.setAttribute('role', 'alert')
  const words = document.createElement('p')
  words.textContent = text
  const retry = document.createElement('button')
  retry.type = 'button'
  retry.className = 'button small'
  retry.textContent = 'Try again'
  retry.addEventListener('click', () => void publish(form, files))
  notice.append(words, retry)
  form.prepend(notice)
  find(form, 'input[type=file]', HTMLInputElement).value = ''
}
