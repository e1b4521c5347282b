/** What a comment is about, as the form for it says: words, an element, a point in an image, or the page. */
import { find } from './elements.ts'

export interface ShownAnchor {
  readonly exact: string
  readonly prefix: string
  readonly suffix: string
  readonly element?: string
  readonly src?: string
  readonly point?: { readonly x: number; readonly y: number }
}

const MOST_QUOTED = 5000
const MOST_CONTEXT = 500
const MOST_SHOWN = 280

/** What the framed page says, cut to what the service takes; undefined where it says nothing that could be meant. */
export function claimedAnchor(claim: unknown): ShownAnchor | undefined {
  if (typeof claim !== 'object' || claim === null) return undefined
  const of = claim as Record<string, unknown>
  const exact = claimedText(of['exact'], MOST_QUOTED)
  const element = claimedText(of['element'], MOST_CONTEXT)
  if (exact === '' && element === '') return undefined
  const quote = {
    exact,
    prefix: claimedText(of['prefix'], MOST_CONTEXT),
    suffix: claimedText(of['suffix'], MOST_CONTEXT),
  }
  if (element === '') return quote
  if (exact !== '') return { ...quote, element }
  const point = (of['point'] ?? {}) as Record<string, unknown>
  const share = (value: unknown): number => Math.max(0, Math.min(1, Number(value) || 0))
  return {
    ...quote,
    element,
    src: claimedText(of['src'], MOST_CONTEXT),
    point: { x: share(point['x']), y: share(point['y']) },
  }
}

export function claimedText(value: unknown, most: number): string {
  return typeof value === 'string' ? value.slice(0, most) : ''
}

export interface AnchorForm {
  set(anchor: ShownAnchor | undefined): void
}

/** Fills in the hidden fields of the form, and shows what it is about. `onChange` hears of every change. */
export function anchorForm(note: HTMLFormElement, onChange: (anchor: ShownAnchor | undefined) => void): AnchorForm {
  const about = find(note, '[data-about]', HTMLElement)
  const shown = find(note, '[data-quoted]', HTMLElement)
  const place = find(note, '[data-place]', HTMLFieldSetElement)
  const [x, y] = [find(place, '[data-x]', HTMLInputElement), find(place, '[data-y]', HTMLInputElement)]
  let own: ShownAnchor | undefined

  function set(anchor: ShownAnchor | undefined): void {
    own = anchor
    const { exact, prefix, suffix, element, src, point } = anchor ?? {}
    for (const [name, value] of Object.entries({ exact, prefix, suffix, element, src, x: point?.x, y: point?.y }))
      find(note, `[name="${name}"]`, HTMLInputElement).value = value === undefined ? '' : String(value)
    about.hidden = anchor === undefined
    shown.textContent = anchor ? wordsOf(anchor) : ''
    place.hidden = anchor?.point === undefined
    if (anchor?.point)
      [x.value, y.value] = [anchor.point.x, anchor.point.y].map((share) => String(share * 100)) as [string, string]
    onChange(anchor)
  }

  place.addEventListener('input', () => {
    if (own) set({ ...own, point: { x: Number(x.value) / 100, y: Number(y.value) / 100 } })
  })
  find(note, '[data-unquote]', HTMLButtonElement).addEventListener('click', () => set(undefined))
  return { set }
}

function wordsOf({ exact, src = '', element = '' }: ShownAnchor): string {
  if (exact !== '') return exact.slice(0, MOST_SHOWN)
  const file = src.startsWith('data:') ? '' : (src.split(/[?#]/, 1)[0]?.split('/').at(-1) ?? '')
  const tag = element.split(/[\s>#:]+/).find((step) => step === 'img') ? 'Image' : 'Element'
  return `${tag} ${file}`.trim().slice(0, MOST_SHOWN)
}
