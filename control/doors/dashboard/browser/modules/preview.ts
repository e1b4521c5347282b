/**
 * Live preview: the form is posted into a fresh frame, whose answer is a sandboxed page of its own origin.
 * A fresh frame each time, because navigating an old one would fill the back button's history.
 */
const PAUSE_MS = 400

export function enablePreview(form: HTMLFormElement, source: HTMLElement): void {
  const place = document.querySelector<HTMLElement>('[data-preview]')
  if (!place) return
  let timer: number | undefined
  let count = 0
  const refresh = (): void => {
    const frame = document.createElement('iframe')
    frame.className = 'preview'
    frame.title = 'Preview'
    frame.name = `preview-${++count}`
    frame.setAttribute('sandbox', 'allow-scripts allow-forms')
    place.replaceChildren(frame)
    post(form, frame.name)
  }
  const refreshSoon = (): void => {
    clearTimeout(timer)
    timer = setTimeout(refresh, PAUSE_MS)
  }
  source.addEventListener('input', refreshSoon)
  // Someone may have typed before this script arrived.
  if (isEdited(form)) refreshSoon()
}

function isEdited(form: HTMLFormElement): boolean {
  return [...form.elements].some(
    (field) =>
      (field instanceof HTMLTextAreaElement || (field instanceof HTMLInputElement && field.type !== 'file')) &&
      field.value !== field.defaultValue,
  )
}

/** Posts the text fields of the form, without its files. */
function post(form: HTMLFormElement, target: string): void {
  const copy = document.createElement('form')
  copy.method = 'post'
  copy.action = form.dataset['previewAction'] ?? '/preview'
  copy.target = target
  copy.hidden = true
  for (const [name, value] of new FormData(form)) {
    if (typeof value !== 'string') continue
    const field = document.createElement('input')
    field.type = 'hidden'
    field.name = name
    field.value = value
    copy.append(field)
  }
  document.body.append(copy)
  copy.submit()
  copy.remove()
}
