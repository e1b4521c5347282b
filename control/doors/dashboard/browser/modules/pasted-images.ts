/** Images that are pasted into a comment: sent at once, shown under the words, and named by the form. */
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
  // A form that was sent, or emptied, has none any more.
  root.addEventListener('reset', ({ target }) => {
    if (target instanceof HTMLFormElement) target.querySelector('[data-pasted]')?.replaceChildren()
  })

  async function take(file: File, place: Element): Promise<void> {
    if (place.querySelectorAll('input').length >= MOST_IMAGES)
      return say(`A comment has at most ${MOST_IMAGES} images.`)
    try {
      const answer = await fetch(`${base}/images`, {
        method: 'POST',
        body: file,
        headers: { 'content-type': 'application/octet-stream' },
      })
      const told = (await answer.json()) as { id?: string; error?: { message: string } }
      if (told.id === undefined) return say(told.error?.message ?? 'The image was not accepted.')
      place.append(shownImage(`${base}/images/${told.id}`, told.id))
    } catch {
      say('The service does not answer. Paste the image again in a moment.')
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
