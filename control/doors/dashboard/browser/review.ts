/**
 * The review page in a browser. It hears from the framed drop what a person selected, tells it where to draw marks, and
 * reloads it when a newer version is served. The framed page is a stranger: what it says is a claim about where someone
 * clicked, read in small portions and never acted upon beyond that. Comments are sent by the page's own forms.
 */
import { find } from './modules/elements.ts'
import { followLooks } from './modules/last-look.ts'
import { anchorForm, claimedAnchor, claimedText, type ShownAnchor } from './modules/review-anchor.ts'
import { takePastedImages } from './modules/pasted-images.ts'
import { keepUnsent, type SendingOutcome, type Unsent } from './modules/unsent.ts'
import { showOwnTimes } from './times.ts'

const root = find(document, '[data-review]', HTMLElement)
const frame = find(root, '.review-frame', HTMLIFrameElement)
const list = find(root, '[data-list]', HTMLElement)
const status = find(root, '[data-status]', HTMLElement)
const note = root.querySelector<HTMLFormElement>('[data-note]')
const base = root.dataset['review'] ?? ''
const origin = root.dataset['origin'] ?? ''
const preview = root.dataset['preview'] ?? ''

const { state = 'open', label = '' } = root.dataset
const filters = { state, ...(label === '' ? {} : { label }) }

let page = root.dataset['page'] ?? '/'
let version = Number(root.dataset['version'] ?? 0)
let changed = Number(root.dataset['changed'] ?? 0)
let scrolled = 0
let editing = new URLSearchParams(location.search).get('edit') ?? ''
let chosen = new URLSearchParams(location.search).get('thread') ?? ''

/** Messages of the frame that are read in a second; a flood of them is not. */
const MOST_HEARD = 40
const HERE_MS = 15_000
const SAID_SPREAD_MS = 700
const FIRST_PATIENCE_MS = 2000
const MOST_PATIENCE_MS = 300_000

function say(text: string): void {
  status.textContent = text
  status.hidden = text === ''
}

function query(more: Readonly<Record<string, string>> = {}): string {
  const own = new URLSearchParams({ ...(preview === '' ? {} : { preview }), ...more }).toString()
  return own === '' ? '' : `?${own}`
}

const tell = (message: object): void => frame.contentWindow?.postMessage(message, origin)

/** Marks of what is open on the page that the frame shows. */
function mark(): void {
  const marks = [...list.querySelectorAll<HTMLElement>('.thread.open')].flatMap((thread) => {
    const text = thread.dataset['quote'] ?? ''
    if (text === '' || thread.dataset['page'] !== page) return []
    return [{ id: thread.id, isChosen: thread.id === chosen, ...(JSON.parse(text) as ShownAnchor) }]
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
  const answer = await fetch(`${base}/list${query({ ...filters, ...(editing === '' ? {} : { edit: editing }) })}`)
  if (!answer.ok) return
  const isTyped = ({ value, defaultValue }: HTMLTextAreaElement): boolean => value !== defaultValue
  const typed = [...list.querySelectorAll('textarea')].filter(isTyped)
  const focused = document.activeElement?.id ?? ''
  // Written by our own service, from a template that escapes.
  const parsed = new DOMParser().parseFromString(await answer.text(), 'text/html')
  list.replaceChildren(...parsed.body.childNodes)
  for (const { id, value } of typed) {
    const field = document.getElementById(id)
    if (field instanceof HTMLTextAreaElement) field.value = value
  }
  if (focused !== '') document.getElementById(focused)?.focus()
  showOwnTimes(list)
  markNew()
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

/** What the note is about is drawn on the page while it is written. */
const about = note && anchorForm(note, (anchor) => tell({ kind: 'draft', anchor: anchor ?? null }))

function pointing(isOn: boolean): void {
  note?.querySelector('[data-point]')?.setAttribute('aria-pressed', String(isOn))
  tell({ kind: 'point', on: isOn })
  if (isOn) say('Press on what you mean. Escape ends it.')
  else if (status.textContent?.startsWith('Press on')) say('')
}

let heard = 0
setInterval(() => (heard = 0), 1000)
window.addEventListener('message', (event) => {
  if (event.source !== frame.contentWindow || event.origin !== origin || ++heard > MOST_HEARD) return
  // Browsers unpack a message when its data is asked for: what is over the measure costs nearly nothing.
  const message = event.data as Record<string, unknown> | null
  if (typeof message !== 'object' || message === null || message['dropway'] !== 1) return
  switch (message['kind']) {
    case 'ready': {
      const path = claimedText(message['path'], 2000)
      if (path.startsWith('/')) {
        page = path
        find(root, '[data-path]', HTMLElement).textContent = path
        if (note) find(note, '[name="page"]', HTMLInputElement).value = path
      }
      // What points at the page is there once the page listens.
      for (const tools of root.querySelectorAll<HTMLElement>('[data-tools]')) tools.hidden = false
      mark()
      void markChanges()
      if (scrolled > 0) tell({ kind: 'scroll', y: scrolled })
      if (chosen !== '') tell({ kind: 'show', id: chosen })
      break
    }
    case 'selected':
    case 'pointed': {
      const anchor = claimedAnchor(message['quote'] ?? message['anchor'])
      if (anchor) about?.set(anchor)
      if (message['kind'] === 'pointed') {
        pointing(false)
        if (message['isStep'] !== true) note?.querySelector('textarea')?.focus()
      }
      break
    }
    case 'unpointed':
      pointing(false)
      break
    case 'nothing':
      say(message['what'] === 'figure' ? 'This page has no images.' : 'This page has no text.')
      break
    case 'scrolled':
      scrolled = Number(message['y']) || 0
      break
  }
})

/** Sends a form as a browser would; what does not arrive is kept and sent later. */
async function send({ action, fields }: Unsent): Promise<SendingOutcome> {
  try {
    const body = new URLSearchParams(fields)
    const answer = await fetch(action, { method: 'POST', body, redirect: 'manual' })
    // A deed that was done leads back to the page.
    if (answer.type === 'opaqueredirect' || answer.ok) return 'sent'
    return answer.status >= 500 ? 'away' : answer.status === 429 ? 'later' : 'refused'
  } catch {
    return 'away'
  }
}

const unsent = keepUnsent(`dropway-review ${base}`, send, {
  onChange(left) {
    say(left === 0 ? '' : 'The service does not answer. What you wrote is kept in this browser and sent later.')
    if (left === 0) void refreshList()
  },
  onRefused({ fields }) {
    const [, words = ''] = fields.find(([name]) => name === 'body') ?? []
    say(`This was not accepted, and is not kept any longer: ${words}`)
  },
})

root.addEventListener('submit', (event) => {
  const form = event.target
  if (!(form instanceof HTMLFormElement) || !('live' in form.dataset)) return
  event.preventDefault()
  // Files were sent when they were chosen.
  const fields = [...new FormData(form)].flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' ? [[name, value]] : [],
  )
  void send({ action: form.action, fields }).then(async (outcome) => {
    if (outcome === 'refused' || outcome === 'later') return form.submit()
    if (outcome === 'away') unsent.add({ action: form.action, fields })
    form.reset()
    if (form.closest('.message-edit')) editing = ''
    if (form === note) about?.set(undefined)
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
  const edit = target?.closest<HTMLElement>('[data-edit]')
  if (edit) {
    event.preventDefault()
    editing = edit.dataset['edit'] ?? ''
    void refreshList().then(() =>
      list.querySelector<HTMLElement>('.message-edit textarea, .message-edit button')?.focus(),
    )
  }
  const step = target?.closest<HTMLElement>('[data-step]')
  if (step) tell({ kind: 'step', by: 1, what: step.dataset['step'] })
  const point = target?.closest('[data-point]')
  if (point) pointing(point.getAttribute('aria-pressed') !== 'true')
  if (target?.closest('[data-next-change]')) nextChange()
})

root.addEventListener('keydown', ({ key }) => {
  if (key === 'Escape') pointing(false)
})

root.addEventListener('change', ({ target }) => {
  if (target instanceof HTMLSelectElement && 'atOnce' in target.dataset) target.form?.requestSubmit()
})

/** What was written and changed since this person last looked. */
const lastLook = followLooks(
  `dropway-looked ${base} ${preview}`,
  () => version,
  () => void markChanges(),
)
let changes = 0
let shownChange = -1

async function markChanges(): Promise<void> {
  const since = lastLook().version
  const passages = since === undefined || since === version ? [] : await changesSince(since)
  changes = passages.length
  shownChange = -1
  tell({ kind: 'changes', passages })
  const notice = find(root, '[data-changes]', HTMLElement)
  notice.hidden = changes === 0
  find(notice, '[data-changes-text]', HTMLElement).textContent =
    changes === 1 ? 'One passage changed since you last looked.' : `${changes} passages changed since you last looked.`
}

async function changesSince(since: number): Promise<object[]> {
  try {
    const answer = await fetch(`${base}/changes${query({ page, since: String(since) })}`)
    return answer.ok ? ((await answer.json()) as { passages: object[] }).passages : []
  } catch {
    return []
  }
}

function nextChange(): void {
  shownChange = (shownChange + 1) % Math.max(1, changes)
  tell({ kind: 'show-change', index: shownChange })
}

/** Messages of others that came since are told apart, in words too. */
function markNew(): void {
  const look = lastLook()
  for (const message of list.querySelectorAll<HTMLElement>('.message:not([data-mine])')) {
    if (!look.isNew(message.dataset['at'] ?? '') || message.querySelector('.message-new')) continue
    const tag = document.createElement('span')
    tag.className = 'tag accent message-new'
    tag.textContent = 'new'
    message.querySelector('.message-head')?.append(tag)
  }
}

/**
 * One stream for this tab. The browser connects again by itself when the line is lost, and says what it knows. It gives
 * up where it is refused (too many streams, a session that is over): then it is asked again, each time later.
 */
function listen(refusals = 0): void {
  const events = new EventSource(`${base}/events${query({ pass: root.dataset['pass'] ?? '' })}`)
  let refused = refusals
  events.addEventListener('open', () => (refused = 0))
  events.addEventListener('error', () => {
    if (events.readyState !== EventSource.CLOSED) return
    const waitMs = Math.min(MOST_PATIENCE_MS, FIRST_PATIENCE_MS * 2 ** refused) * (0.5 + Math.random())
    setTimeout(() => listen(refused + 1), waitMs)
  })
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

root.dataset['scripted'] = ''
takePastedImages(root, base, say)
markNew()
// The frame may have been faster than this script.
tell({ kind: 'hello' })
listen()
void here()
setInterval(() => void here(), HERE_MS)
