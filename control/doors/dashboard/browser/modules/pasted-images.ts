/** Images that are pasted into a comment, or chosen for it: sent at once, shown under the words, and named by the form. */
const MOST_IMAGES = 4

/** Listens in every form of the root that has a place for images. `say` tells what went wrong. */
export function takePastedImages(root: HTMLElement, base: string, say: (text: string) => void): void {
  root.addEventListener('paste', (event) => {
    const field = event.target
    const place = field instanceof HTMLTextAreaElement ? field.form?.querySelector('[data-pasted]') : null
    const files = [...(event.clipboardData?.files ?? [])].filter(({ type }) => type.startsWith('image/'))
    if (!place || files.length === 0) return
    event.preventDefault()
    for (const file of files) void take(file, place)
  })
  root.addEventListener('change', ({ target }) => {
    if (target instanceof HTMLInputElement && target.type === 'file') takeChosen(target)
  })
  // Someone may have been faster than this script.
  for (const input of root.querySelectorAll<HTMLInputElement>('input[type=file]')) takeChosen(input)
  // A form that was sent, or emptied, has none any more.
  root.addEventListener('reset', ({ target }) => {
    if (target instanceof HTMLFormElement) target.querySelector('[data-pasted]')?.replaceChildren()
  })

  function takeChosen(input: HTMLInputElement): void {
    const place = input.form?.querySelector('[data-pasted]')
    if (!place) return
    for (const file of input.files ?? []) void take(file, place)
    input.value = ''
  }

  async function take(file: File, place: Element): Promise<void> {
    if (place.querySelectorAll('input').length >= MOST_IMAGES)
      return say(`A comment has at most ${MOST_IMAGES} images.`)
    try {
      const answer = await fetch(`${base}/images`, {
        method: 'POST',
        body: file,
        headers: { 'content-type': 'application/octet-stream' },
      })
      const told = (await answer.json()) as { id?: string; detail?: string }
      if (told.id === undefined) return say(told.detail ?? 'The image was not accepted.')
      place.append(shownImage(`${base}/images/${told.id}`, told.id))
    } catch {
      say('The service does not answer. Add the image again in a moment.')
    }
  }
}

function shownImage(src: string, id: string): HTMLElement {
  const shown = document.createElement('span')
  const image = Object.assign(document.createElement('img'), { src, alt: 'Pasted image' })
  const named = Object.assign(document.createElement('input'), { type: 'hidden', name: 'images', value: id })
  const remove = Object.assign(document.createElement('button'), {
    type: 'button',
    className: 'button small',
    textContent: 'Remove',
  })
  remove.addEventListener('click', () => shown.remove())
  shown.append(image, named, remove)
  return shown
}
