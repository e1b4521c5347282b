/**
 * Where a comment on an image, or on another element without text, belongs after a page has changed. Pure. In this order:
 *
 * 1. the only element that shows the same                                     → same, or moved where other text is around it
 * 2. of several that show the same, the one whose surroundings fit best; where none does and there are as many as before,
 *    the one that is as far down                                              → same
 * 3. another that is new, with the same description or the same text around it → changed
 * 4. otherwise                                                                → gone
 */
import { commonEnd, commonStart, folded, type Anchor, type AnchorPlacement } from './anchors.ts'
import type { Figure } from './page-text.ts'

export interface PlacedFigure {
  readonly placement: AnchorPlacement
  /** Where it is now; undefined when it is gone. */
  readonly at?: Figure | undefined
}

/** Text on one side of an element that tells it is where it was: an accident is shorter. */
const FITTING_CHARS = 12

/** isFigureAnchor tells a comment on an element without text from one on words. */
export function isFigureAnchor({ exact, element }: Anchor): boolean {
  return exact === '' && element !== undefined
}

type Around = Pick<Figure, 'before' | 'after'>

/** figureOf is the element that was pointed at; undefined where the page's own text does not have it, or has two alike. */
export function figureOf(figures: readonly Figure[], anchor: Anchor): Figure | undefined {
  const tag = tagOf(anchor.element ?? '')
  const alike = figures.filter(
    (figure) => (tag === '' || figure.tag === tag) && (anchor.src === undefined || figure.src === anchor.src),
  )
  return bestOf(alike, { before: anchor.prefix.trim(), after: anchor.suffix.trim() })
}

/** tagOf is the name of the element that a structure path ends with; empty where it names none. */
export function tagOf(selector: string): string {
  const last =
    selector
      .trim()
      .split(/[\s>]+/)
      .at(-1) ?? ''
  return /^[a-z][a-z0-9-]*/i.exec(last)?.[0].toLowerCase() ?? ''
}

/** The one whose surroundings fit best; the only one in any case. */
function bestOf(figures: readonly Figure[], around: Around): Figure | undefined {
  if (figures.length === 1) return figures[0]
  const scored = figures.map((figure) => ({ figure, score: endOf(figure, around) + startOf(figure, around) }))
  const [best, second] = scored.toSorted((a, b) => b.score - a.score)
  return best && best.score > (second?.score ?? 0) ? best.figure : undefined
}

const endOf = (one: Around, other: Around): number => commonEnd(folded(one.before), folded(other.before))
const startOf = (one: Around, other: Around): number => commonStart(folded(one.after), folded(other.after))

/** Whether the text on a side is the same, as far as it can be told. Where a page has none, there is none. */
function fitsBefore(one: Around, other: Around): boolean {
  return endOf(one, other) >= Math.min(FITTING_CHARS, Math.max(one.before.length, other.before.length))
}

function fitsAfter(one: Around, other: Around): boolean {
  return startOf(one, other) >= Math.min(FITTING_CHARS, Math.max(one.after.length, other.after.length))
}

/** placeFigure says where an element of the old page is in the new one. */
export function placeFigure(before: readonly Figure[], after: readonly Figure[], own: Figure): PlacedFigure {
  const showsSame = ({ tag, src }: Figure): boolean => tag === own.tag && src === own.src
  const [old, fresh] = [before.filter(showsSame), after.filter(showsSame)]
  const [only] = fresh
  if (only && fresh.length === 1 && old.length === 1) {
    // What names nothing is known by what is around it alone.
    const isHere = fitsBefore(only, own) || fitsAfter(only, own)
    return isHere ? { placement: 'same', at: only } : own.src === '' ? GONE : { placement: 'moved', at: only }
  }
  if (fresh.length > 0) {
    const best = fresh.filter((each) => fitsBefore(each, own) && fitsAfter(each, own))
    const nth = old.length === fresh.length ? fresh[old.indexOf(own)] : undefined
    const at = best.length === 1 ? best[0] : best.length === 0 || best.includes(nth as Figure) ? nth : undefined
    return at ? { placement: 'same', at } : GONE
  }
  const others = after.filter(({ tag, src }) => tag === own.tag && !before.some((each) => each.src === src))
  const described = own.alt === '' ? [] : others.filter(({ alt }) => alt === own.alt)
  const around = others.filter((each) => fitsBefore(each, own) && fitsAfter(each, own))
  const [at] = described.length === 1 ? described : around
  return at && (described.length === 1 || around.length === 1) ? { placement: 'changed', at } : GONE
}

const GONE: PlacedFigure = { placement: 'gone' }
