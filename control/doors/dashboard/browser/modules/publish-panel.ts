/** Where a publish form says what it does: progress in place of the drop zone, a refusal above it. */
import { find } from './elements.ts'

export interface WayOn {
  readonly label: string
  act(): void
}

export interface Panel {
  isBusy(): boolean
  begin(words: string): void
  show(words: string, share: number, figures: string): void
  /** Returns what ends it. */
  onCancel(cancel: () => void): () => void
  refuse(words: string, ways: readonly WayOn[]): void
  end(): void
}

export function createPanel(form: HTMLFormElement): Panel {
  const progress = find(form, '[data-progress]', HTMLElement)
  const bar = find(progress, 'progress', HTMLProgressElement)
  const status = find(progress, '[role=status]', HTMLElement)
  const figures = find(progress, '[data-figures]', HTMLElement)
  const cancel = find(progress, '[data-cancel]', HTMLButtonElement)
  const button = form.querySelector<HTMLButtonElement>('button.primary')
  let isBusy = false

  const setBusy = (value: boolean): void => {
    isBusy = value
    form.toggleAttribute('data-busy', value)
    progress.hidden = !value
    cancel.hidden = true
    if (button) button.disabled = value
    bar.value = 0
    figures.textContent = ''
  }
  const clear = (): void => {
    for (const notice of form.querySelectorAll('.notice.bad')) notice.remove()
  }

  return {
    isBusy: () => isBusy,
    begin(words) {
      clear()
      setBusy(true)
      status.textContent = words
      // The zone may be below what is seen, when the files were let go elsewhere.
      form.scrollIntoView({ block: 'nearest' })
    },
    show(words, share, text) {
      status.textContent = words
      bar.value = share * 100
      figures.textContent = text
    },
    onCancel(act) {
      cancel.hidden = false
      cancel.addEventListener('click', act)
      return () => {
        cancel.hidden = true
        cancel.removeEventListener('click', act)
      }
    },
    refuse(words, ways) {
      clear()
      form.prepend(noticeOf(words, ways))
      form.scrollIntoView({ block: 'nearest' })
    },
    end: () => setBusy(false),
  }
}

function noticeOf(words: string, ways: readonly WayOn[]): HTMLElement {
  const notice = document.createElement('div')
  notice.className = 'notice bad cluster spread'
  notice.setAttribute('role', 'alert')
  const text = document.createElement('p')
  text.textContent = words
  const actions = document.createElement('p')
  actions.className = 'cluster'
  for (const { label, act } of ways) {
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'button small'
    button.textContent = label
    button.addEventListener('click', act)
    actions.append(button)
  }
  notice.append(text, actions)
  return notice
}
