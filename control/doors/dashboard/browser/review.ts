/**
 * The review page in a browser. It hears from the framed drop what a person selected, tells it where to draw marks, and
 * reloads it when a newer version is served. The framed page is a stranger: what it says is a claim about where someone
 * clicked, read in small portions and never acted upon beyond that. Comments are sent by the page's own forms.
 */
import { find } from './modules/elements.ts'
import { keepUnsent, type Unsent } from './modules/unsent.ts'
import { showOwnTimes } from './times.ts'

interface Quote {
  readonly exact: string
  readonly prefix: string
  readonly suffix: string
}

const root = find(document, '[data-review]', HTMLElement)
const frame = find(root, '.review-frame', HTMLIFrameElement)
const list = find(root, '[data-list]', HTMLElement)
const status = find(root, '[data-status]', HTMLElement)
const note = root.querySelector<HTMLFormElement>('[data-note]')
const base = root.dataset['review'] ?? ''
const origin = root.dataset['origin'] ?? ''
const preview = root.dataset['preview'] ?? ''

let page = root.dataset['page'] ?? '/'
let version = Number(root.dataset['version'] ?? 0)
let changed = Number(root.dataset['changed'] ?? 0)
let scrolled = 0
let chosen = new URLSearchParams(location.search).get('thread') ?? ''

const MOST_QUOTED = 5000
const MOST_CONTEXT = 500
/** Messages of the frame that are read in a second; a flood of them is not. */
const MOST_HEARD = 40
const HERE_MS = 15_000
const SAID_SPREAD_MS = 700

function say(text: string): void {
  status.textContent = text
  status.hidden = text === ''
}

function query(more: Record<string, string> = {}): string {
  const own = new URLSearchParams({ ...(preview === '' ? {} : { preview }), ...more }).toString()
  return own === '' ? '' : `?${own}`
}

const tell = (message: object): void => frame.contentWindow?.postMessage(message, origin)

/** Marks of what is open on the page that the frame shows. */
function mark(): void {
  const marks = [...list.querySelectorAll<HTMLElement>('.thread.open')].flatMap((thread) => {
    const text = thread.dataset['quote'] ?? ''
    if (text === '' || thread.dataset['page'] !== page) return []
    return [{ id: thread.id, isChosen: thread.id === chosen, ...(JSON.parse(text) as Quote) }]
  })
  tell({ kind: 'marks', marks })
}

function choose(id: string): void {
  chosen = id
  for (const thread of list.querySelectorAll('.thread')) thread.toggleAttribute('aria-current', thread.id === id)
  const thread = document.getElementById(id)
  if (thread?.dataset['page'] !== undefined && thread.dataset['page'] !== page) void show(thread.dataset['page'])
  mark()
  tell({ kind: 'show', id })
}

async function refreshList(): Promise<void> {
  const answer = await fetch(`${base}/list${query({ state: root.dataset['state'] ?? 'open' })}`)
  if (!answer.ok) return
  const typed = new Map([...list.querySelectorAll('textarea')].map((field) => [field.id, field.value]))
  const focused = document.activeElement?.id ?? ''
  // Written by our own service, from a template that escapes.
  const parsed = new DOMParser().parseFromString(await answer.text(), 'text/html')
  list.replaceChildren(...parsed.body.childNodes)
  for (const field of list.querySelectorAll('textarea')) field.value = typed.get(field.id) ?? ''
  if (focused !== '') document.getElementById(focused)?.focus()
  showOwnTimes(list)
  mark()
}

/** The frame anew: another page, or a newer version of this one. */
async function show(path: string): Promise<void> {
  page = path
  find(root, '[data-path]', HTMLElement).textContent = path
  if (note) find(note, '[name="page"]', HTMLInputElement).value = path
  try {
    const answer = await fetch(`${base}/frame${query({ page: path })}`)
    if (answer.ok) frame.src = ((await answer.json()) as { src: string }).src
  } catch {
    say('The service does not answer. The page is as it was; what you write is kept and sent later.')
  }
}

function quoted(quote: Quote | undefined): void {
  if (!note) return
  const shown = find(note, '[data-quoted]', HTMLElement)
  for (const name of ['exact', 'prefix', 'suffix'] as const)
    find(note, `[name="${name}"]`, HTMLInputElement).value = quote?.[name] ?? ''
  shown.textContent = quote?.exact.slice(0, 280) ?? ''
  shown.hidden = quote === undefined
  find(note, '[data-unquote]', HTMLButtonElement).hidden = quote === undefined
}

function textOf(value: unknown, most: number): string {
  return typeof value === 'string' ? value.slice(0, most) : ''
}

let heard = 0
setInterval(() => (heard = 0), 1000)
window.addEventListener('message', ({ data, source, origin: from }) => {
  if (source !== frame.contentWindow || from !== origin || ++heard > MOST_HEARD) return
  const message = data as Record<string, unknown> | null
  if (typeof message !== 'object' || message === null || message['dropway'] !== 1) return
  switch (message['kind']) {
    case 'ready': {
      const path = textOf(message['path'], 2000)
      if (path.startsWith('/')) {
        page = path
        find(root, '[data-path]', HTMLElement).textContent = path
        if (note) find(note, '[name="page"]', HTMLInputElement).value = path
      }
      mark()
      if (scrolled > 0) tell({ kind: 'scroll', y: scrolled })
      if (chosen !== '') tell({ kind: 'show', id: chosen })
      break
    }
    case 'selected': {
      const quote = (message['quote'] ?? {}) as Record<string, unknown>
      const exact = textOf(quote['exact'], MOST_QUOTED)
      if (exact !== '')
        quoted({ exact, prefix: textOf(quote['prefix'], MOST_CONTEXT), suffix: textOf(quote['suffix'], MOST_CONTEXT) })
      break
    }
    case 'scrolled':
      scrolled = Number(message['y']) || 0
      break
  }
})

/** Sends a form as a browser would; what does not arrive is kept and sent later. */
async function send({ action, fields }: Unsent): Promise<'sent' | 'refused' | 'away'> {
  try {
    const body = new URLSearchParams(fields)
    const answer = await fetch(action, { method: 'POST', body, redirect: 'manual' })
    // A deed that was done leads back to the page.
    if (answer.type === 'opaqueredirect' || answer.ok) return 'sent'
    return answer.status >= 500 ? 'away' : 'refused'
  } catch {
    return 'away'
  }
}

const unsent = keepUnsent(`dropway-review ${base}`, send, (left) => {
  say(left === 0 ? '' : 'The service does not answer. What you wrote is kept in this browser and sent later.')
  if (left === 0) void refreshList()
})

root.addEventListener('submit', (event) => {
  const form = event.target
  if (!(form instanceof HTMLFormElement) || !('live' in form.dataset)) return
  event.preventDefault()
  const fields = [...new FormData(form)].map(([name, value]): [string, string] => [
    name,
    typeof value === 'string' ? value : '',
  ])
  void send({ action: form.action, fields }).then(async (outcome) => {
    if (outcome === 'refused') return form.submit()
    if (outcome === 'away') unsent.add({ action: form.action, fields })
    for (const field of form.querySelectorAll('textarea')) field.value = ''
    if (form === note) quoted(undefined)
    if (outcome === 'sent') await refreshList()
  })
})

root.addEventListener('click', (event) => {
  const target = event.target instanceof Element ? event.target : undefined
  const place = target?.closest<HTMLElement>('[data-show]')
  if (place) {
    event.preventDefault()
    choose(place.dataset['show'] ?? '')
  }
  if (target?.closest('[data-step]')) tell({ kind: 'step', by: 1 })
  if (target?.closest('[data-unquote]')) quoted(undefined)
})

/** One stream for this tab; the browser connects again by itself, and says what it knows. */
function listen(): void {
  const events = new EventSource(`${base}/events${query({ pass: root.dataset['pass'] ?? '' })}`)
  events.addEventListener('message', ({ lastEventId }) => {
    const newest = Number(lastEventId)
    if (!Number.isInteger(newest) || newest === version) return
    version = newest
    const shown = root.querySelector('[data-number]')
    if (shown) shown.textContent = String(newest)
    say(`Version ${newest} is shown now.`)
    void show(page)
    void refreshList()
  })
  // Many tabs hear it at the same moment: they do not ask at the same moment.
  events.addEventListener('threads', () => setTimeout(() => void here(), Math.random() * SAID_SPREAD_MS))
}

async function here(): Promise<void> {
  if (document.hidden) return
  try {
    const answer = await fetch(`${base}/here`, { method: 'POST' })
    if (!answer.ok) return
    const { people, changed: now } = (await answer.json()) as {
      people: { name: string; isYou: boolean }[]
      changed: number
    }
    const others = people.filter(({ isYou }) => !isYou).map(({ name }) => name)
    find(root, '[data-present]', HTMLElement).textContent =
      others.length === 0 ? 'Only you are here' : `Here too: ${others.join(', ')}`
    if (now !== changed) {
      changed = now
      await refreshList()
    }
    await unsent.tryAgain()
  } catch {
    // Reading goes on without it.
  }
}

if (note) find(note, '[data-step]', HTMLButtonElement).hidden = false
listen()
void here()
setInterval(() => void here(), HERE_MS)
