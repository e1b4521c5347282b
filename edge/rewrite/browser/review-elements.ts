/** Elements of the framed page: what a person points at, and where that is in another version of the page. */
import { aroundOf, fitOf, quoteOf, rangeOf, type PageText, type Quote } from './review-text.ts'

/** What was pointed at: words, or an element with its structure path; an element without text by what it shows. */
export interface Pointed extends Quote {
  readonly element?: string | undefined
  readonly src?: string | undefined
  readonly point?: { readonly x: number; readonly y: number } | undefined
}

/** They have no text of their own. */
export const FIGURES = 'img,svg,video,audio,canvas,iframe,hr,input,select,textarea,math'
const MOST_SRC = 500
const MOST_PATH = 500
const MOST_STEPS = 12

/** The element that a person means who points here: a figure whole, else the nearest one that has words. */
export function meantBy(target: Element): Element | undefined {
  const figure = target.closest(FIGURES)
  if (figure) return figure
  for (let own: Element | null = target; own && own !== d.body && own !== d.documentElement; own = own.parentElement)
    if ((own.textContent ?? '').trim() !== '') return own
  return undefined
}

/** The structure path of an element: from the nearest one with an id, or from the top. */
function pathOf(element: Element): string {
  const steps: string[] = []
  for (let own: Element | null = element; own && own !== d.documentElement; own = own.parentElement) {
    const { localName, id } = own
    if (/^[a-z][\w-]*$/i.test(id)) {
      steps.unshift(`${localName}#${id}`)
      break
    }
    const twins = [...(own.parentElement?.children ?? [])].filter((each) => each.localName === localName)
    steps.unshift(twins.length > 1 ? `${localName}:nth-of-type(${twins.indexOf(own) + 1})` : localName)
  }
  while (steps.length > MOST_STEPS || steps.join(' > ').length > MOST_PATH) steps.shift()
  return steps.join(' > ')
}

const srcOf = (element: Element): string =>
  (element.getAttribute('src') ?? element.getAttribute('poster') ?? element.getAttribute('name') ?? '')
    .trim()
    .slice(0, MOST_SRC)

/** What is said of an element; `point` is where in it, in shares. */
export function pointedAt(read: PageText, element: Element, point: Pointed['point']): Pointed | undefined {
  const path = pathOf(element)
  if (element.matches(FIGURES)) return { ...aroundOf(read, element), element: path, src: srcOf(element), point }
  const range = d.createRange()
  range.selectNodeContents(element)
  const quote = quoteOf(read, range)
  return quote && { ...quote, element: path }
}

/** Where in an element the pointer is, in shares of its width and height. */
export function pointIn(element: Element, { clientX, clientY }: MouseEvent): Pointed['point'] {
  const { left, top, width, height } = element.getBoundingClientRect()
  const share = (part: number, whole: number): number =>
    whole > 0 ? Math.round(Math.max(0, Math.min(1, part / whole)) * 1000) / 1000 : 0
  return { x: share(clientX - left, width), y: share(clientY - top, height) }
}

/** The element that is meant, in the page as it is now. */
export function elementOf(read: PageText, wanted: Pointed): Element | undefined {
  const tag = /^[a-z][\w-]*/i.exec((wanted.element ?? '').split(/[\s>]+/).at(-1) ?? '')?.[0] ?? ''
  if (wanted.exact !== '') {
    const start = rangeOf(read, wanted)?.commonAncestorContainer
    const nearest = start instanceof Element ? start : start?.parentElement
    return nearest?.closest(tag === '' ? '*' : tag) ?? nearest ?? undefined
  }
  const alike = [...d.querySelectorAll(FIGURES)].filter(
    (each) => (tag === '' || each.localName === tag) && (wanted.src === undefined || srcOf(each) === wanted.src),
  )
  if (alike.length < 2) return alike[0]
  const scored = alike.map((each) => ({ each, fit: fitOf(aroundOf(read, each), wanted) }))
  return scored.toSorted((a, b) => b.fit - a.fit)[0]?.each
}
