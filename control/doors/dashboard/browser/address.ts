/** Says while an address is typed whether it is free, and names others that are. The server decides again at the end. */
const PAUSE_MS = 350

interface Looked {
  readonly problem?: string
  readonly others?: readonly string[]
}

for (const input of document.querySelectorAll<HTMLInputElement>('input[name=slug]')) watchAddress(input)

function watchAddress(input: HTMLInputElement): void {
  const note = document.createElement('span')
  note.className = 'address-note'
  note.setAttribute('role', 'status')
  input.closest('.field')?.append(note)
  let waiting: ReturnType<typeof setTimeout> | undefined
  let last = input.value
  const look = async (): Promise<void> => {
    const slug = input.value.trim()
    last = slug
    if (slug === '' || slug === input.defaultValue) return note.replaceChildren()
    const looked = await ask(slug)
    // The person has typed on: that is asked next.
    if (looked && last === slug) say(note, input, looked)
  }
  input.addEventListener('input', () => {
    // What the server said about another address is over.
    input.removeAttribute('aria-invalid')
    input.closest('.field')?.querySelector('.problem')?.remove()
    clearTimeout(waiting)
    waiting = setTimeout(() => void look().catch(() => undefined), PAUSE_MS)
  })
}

async function ask(slug: string): Promise<Looked | undefined> {
  const site = /^\/sites\/(st_\w+)\//.exec(location.pathname)?.[1]
  const query = new URLSearchParams({ slug, ...(site === undefined ? {} : { site }) })
  const answer = await fetch(`/sites/address?${query.toString()}`, { credentials: 'same-origin', redirect: 'error' })
  return answer.ok ? ((await answer.json()) as Looked) : undefined
}

function say(note: HTMLElement, input: HTMLInputElement, { problem, others = [] }: Looked): void {
  note.classList.toggle('taken', problem !== undefined)
  note.replaceChildren(problem ?? 'This address is free.', ...others.flatMap((other) => [' ', choiceOf(input, other)]))
}

function choiceOf(input: HTMLInputElement, slug: string): HTMLButtonElement {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'button small'
  button.textContent = slug
  button.addEventListener('click', () => {
    input.value = slug
    input.dispatchEvent(new Event('input', { bubbles: true }))
    input.focus()
  })
  return button
}
