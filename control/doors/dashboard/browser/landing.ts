/** Publishing from the front door: choosing or dropping a file sends it at once, pasted text goes with the button. */
import { enableCopying, find } from './modules/elements.ts'
import { watchZone } from './modules/drop-zone.ts'
import { errorText, send, SendError } from './modules/send.ts'
import { solveChallenge } from '../../../../shared/pages/browser/proof-of-work.ts'

enableCopying(document)

const form = document.querySelector<HTMLFormElement>('form[data-drop]')
if (form) enableDrop(form)

function enableDrop(form: HTMLFormElement): void {
  const zone = find(form, '[data-zone]', HTMLElement)
  const input = find(zone, 'input', HTMLInputElement)
  watchZone(zone, ([picked]) => {
    if (!picked) return
    const transfer = new DataTransfer()
    transfer.items.add(picked.file)
    input.files = transfer.files
    void publish(form)
  })
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void publish(form)
  })
}

async function publish(form: HTMLFormElement, proof?: string): Promise<void> {
  const progress = find(form, '[data-progress]', HTMLElement)
  const bar = find(progress, 'progress', HTMLProgressElement)
  const status = find(progress, '[role=status]', HTMLElement)
  const button = find(form, 'button.primary', HTMLButtonElement)
  progress.hidden = false
  button.disabled = true
  status.textContent = 'Uploading…'
  const headers = { 'dropway-fragment': '1', ...(proof === undefined ? {} : { 'dropway-proof': proof }) }
  try {
    const sent = await send(form.action, new FormData(form), headers, (share) => {
      bar.value = share * 100
      if (share === 1) status.textContent = 'Publishing…'
    }).done
    const challenge = challengeOf(sent.text)
    if (challenge !== undefined && proof === undefined)
      return await publish(form, await solveChallenge(challenge.challenge, challenge.bits))
    if (sent.status !== 201) return fail(form, errorText(sent))
    show(form, sent.text)
  } catch (error) {
    fail(form, error instanceof SendError ? error.message : 'This did not work. Try again.')
  } finally {
    progress.hidden = true
    button.disabled = false
  }
}

function show(form: HTMLFormElement, markup: string): void {
  const place = form.parentElement ?? form
  place.innerHTML = markup
  enableCopying(place)
  find(place, 'h2', HTMLElement).focus()
}

function fail(form: HTMLFormElement, text: string): void {
  form.querySelector('.notice')?.remove()
  const notice = document.createElement('p')
  notice.className = 'notice bad'
  notice.setAttribute('role', 'alert')
  notice.textContent = text
  form.prepend(notice)
  find(form, 'input[type=file]', HTMLInputElement).value = ''
}

function challengeOf(text: string): { challenge: string; bits: number } | undefined {
  try {
    const { challenge, bits } = JSON.parse(text) as { challenge?: unknown; bits?: unknown }
    return typeof challenge === 'string' && typeof bits === 'number' ? { challenge, bits } : undefined
  } catch {
    return undefined
  }
}
