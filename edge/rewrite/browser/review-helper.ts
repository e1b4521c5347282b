/**
 * The part of the review page that stands in the framed drop. It reports what a person selects or points at and draws
 * marks where the review page says; it knows no comment, no name and no key, and it speaks to the review page's origin
 * alone.
 */
import { elementOf, FIGURES, meantBy, pointedAt, pointIn, type Pointed } from './review-elements.ts'
import { quoteOf, rangeOf, readText, type PageText, type Quote } from './review-text.ts'

const MOST_MARKS = 200
/** Boxes of one mark: a passage has one for each of its lines. */
const MOST_BOXES = 60

interface Wanted extends Pointed {
  readonly id: string
  readonly isChosen: boolean
}

/** What the review page says. */
interface Told {
  readonly kind?: string
  readonly marks?: Wanted[]
  readonly passages?: Quote[]
  readonly anchor?: Pointed | null
  readonly id?: string
  readonly by?: number
  readonly what?: 'text' | 'figure'
  readonly y?: number
  readonly on?: boolean
  readonly index?: number
}

const PASSAGE = { borderBottom: '2px solid rgb(214,140,0)', mixBlendMode: 'multiply' }
const LOOKS = {
  open: { ...PASSAGE, background: 'rgba(255,208,90,.28)' },
  chosen: { ...PASSAGE, background: 'rgba(255,176,0,.45)' },
  outline: { border: '2px solid rgb(214,140,0)', borderRadius: '4px', boxSizing: 'border-box' },
  draft: { border: '2px dashed rgb(11,107,99)', borderRadius: '4px', boxSizing: 'border-box' },
  change: { background: 'rgb(58,120,216)', borderRadius: '2px' },
}
const PIN = {
  border: '2px solid white',
  background: 'rgb(214,140,0)',
  borderRadius: '50%',
  boxShadow: '0 1px 4px rgba(0,0,0,.5)',
  boxSizing: 'border-box',
}

/** Draws in a layer above the page that no pointer touches. */
function createLayer() {
  const layer = d.createElement('div')
  const add = (box: Pick<DOMRect, 'left' | 'top' | 'width' | 'height'>, look: object): void => {
    const mark = d.createElement('div')
    Object.assign(mark.style, {
      position: 'absolute',
      left: `${box.left + w.scrollX}px`,
      top: `${box.top + w.scrollY}px`,
      width: `${box.width}px`,
      height: `${box.height}px`,
      ...look,
    })
    layer.append(mark)
  }
  return {
    add,
    clear(): void {
      layer.replaceChildren()
      if (!layer.isConnected) d.documentElement.append(layer)
      Object.assign(layer.style, {
        position: 'absolute',
        left: '0',
        top: '0',
        zIndex: '2147483646',
        pointerEvents: 'none',
      })
    },
    outline(element: Element, look: object, point: Pointed['point'], pin: object = PIN): void {
      const box = element.getBoundingClientRect()
      add({ left: box.left - 2, top: box.top - 2, width: box.width + 4, height: box.height + 4 }, look)
      if (!point) return
      const [x, y] = [box.left + box.width * point.x, box.top + box.height * point.y]
      add({ left: x - 9, top: y - 9, width: 18, height: 18 }, pin)
    },
  }
}

type Layer = ReturnType<typeof createLayer>

/** Draws one thing that was pointed at, where the page has it. */
function drawMark(layer: Layer, read: PageText, { isChosen, ...wanted }: Wanted): void {
  if (wanted.element !== undefined) {
    const element = elementOf(read, wanted)
    const fill = isChosen ? { background: 'rgba(255,176,0,.16)' } : {}
    if (element) layer.outline(element, { ...LOOKS.outline, ...fill }, wanted.point)
    return
  }
  const range = rangeOf(read, wanted)
  for (const box of [...(range?.getClientRects() ?? [])].slice(0, MOST_BOXES))
    layer.add(box, isChosen ? LOOKS.chosen : LOOKS.open)
}

/** Begins to listen and to draw. `origin` is the review page's. */
export function startReview(origin: string): void {
  const url = new URL(w.location.href)
  if (url.searchParams.has('dropway-review')) {
    url.searchParams.delete('dropway-review')
    w.history.replaceState(w.history.state, '', url)
  }
  const say = (message: object): void => w.parent.postMessage({ dropway: 1, ...message }, origin)
  const layer = createLayer()
  let wanted: Wanted[] = []
  let passages: Quote[] = []
  let draft: Pointed | undefined
  let hovered: Element | undefined
  let isDue = false

  function draw(): void {
    layer.clear()
    if (wanted.length + passages.length === 0 && !draft && !hovered) return
    const read = readText()
    for (const each of wanted) drawMark(layer, read, each)
    for (const passage of passages) {
      const box = rangeOf(read, passage)?.getBoundingClientRect()
      if (box) layer.add({ left: Math.max(2, box.left - 12), top: box.top, width: 4, height: box.height }, LOOKS.change)
    }
    if (hovered) layer.outline(hovered, LOOKS.draft, undefined)
    const element = draft?.element === undefined ? undefined : elementOf(read, draft)
    if (element) layer.outline(element, LOOKS.draft, draft?.point, { ...PIN, background: 'rgb(11,107,99)' })
  }

  /** Once for however much changes before the next frame. */
  function drawSoon(): void {
    if (isDue) return
    isDue = true
    w.requestAnimationFrame(() => {
      isDue = false
      draw()
    })
  }

  function report(): void {
    const selection = d.getSelection()
    const range = selection && selection.rangeCount > 0 && !selection.isCollapsed ? selection.getRangeAt(0) : undefined
    const quote = range && quoteOf(readText(), range)
    say(quote ? { kind: 'selected', quote } : { kind: 'unselected' })
  }

  const pointing = createPointing(say, (element) => {
    hovered = element
    drawSoon()
  })
  const step = createSteps(say, report)

  function show(read: PageText, target: Pointed | Quote | undefined): void {
    const element =
      target && ('element' in target && target.element !== undefined ? elementOf(read, target) : undefined)
    const place = element ?? (target && rangeOf(read, target)?.startContainer.parentElement)
    place?.scrollIntoView({ block: 'center', behavior: 'smooth' })
  }

  w.addEventListener('message', (event) => {
    if (event.origin !== origin || event.source !== w.parent) return
    const told = event.data as Told
    if (told.kind === 'marks') wanted = (told.marks ?? []).slice(0, MOST_MARKS)
    if (told.kind === 'changes') passages = (told.passages ?? []).slice(0, MOST_MARKS)
    if (told.kind === 'draft') draft = told.anchor ?? undefined
    if (told.kind === 'hello') say({ kind: 'ready', path: w.location.pathname })
    if (told.kind === 'marks' || told.kind === 'changes' || told.kind === 'draft') drawSoon()
    if (told.kind === 'show')
      show(
        readText(),
        wanted.find(({ id }) => id === told.id),
      )
    if (told.kind === 'show-change') show(readText(), passages[told.index ?? 0])
    if (told.kind === 'step') step(told.what ?? 'text', told.by ?? 1)
    if (told.kind === 'scroll') w.scrollTo(0, told.y ?? 0)
    if (told.kind === 'point') pointing(told.on === true)
  })
  d.addEventListener('mouseup', () => w.setTimeout(report, 10))
  d.addEventListener('keyup', (event) => {
    if (event.shiftKey || event.key === 'Shift') report()
  })
  w.addEventListener('scroll', () => say({ kind: 'scrolled', y: w.scrollY }), { passive: true })
  w.addEventListener('resize', drawSoon)
  // Images that arrive late and parts that unfold move what is marked.
  new ResizeObserver(drawSoon).observe(d.documentElement)
  w.addEventListener('load', () => {
    drawSoon()
    say({ kind: 'ready', path: w.location.pathname })
  })
  say({ kind: 'ready', path: w.location.pathname })
}

/** Pointing with the mouse or a finger: the next press says what is meant, and does nothing else. Escape ends it. */
function createPointing(say: (message: object) => void, hover: (element: Element | undefined) => void) {
  let isOn = false
  const meant = ({ target }: Event): Element | undefined => (target instanceof Element ? meantBy(target) : undefined)
  const end = (): void => {
    isOn = false
    d.documentElement.style.cursor = ''
    hover(undefined)
  }
  d.addEventListener('pointermove', (event) => isOn && hover(meant(event)), { passive: true })
  for (const press of ['pointerdown', 'mousedown', 'mouseup', 'pointerup'] as const)
    d.addEventListener(press, (event) => isOn && (event.preventDefault(), event.stopImmediatePropagation()), true)
  d.addEventListener(
    'click',
    (event) => {
      if (!isOn) return
      event.preventDefault()
      event.stopImmediatePropagation()
      const element = meant(event)
      end()
      const anchor = element && pointedAt(readText(), element, pointIn(element, event))
      say(anchor ? { kind: 'pointed', anchor } : { kind: 'unpointed' })
    },
    true,
  )
  d.addEventListener('keydown', (event) => {
    if (!isOn || event.key !== 'Escape') return
    end()
    say({ kind: 'unpointed' })
  })
  return (on: boolean): void => {
    if (!on) return end()
    isOn = true
    d.documentElement.style.cursor = 'crosshair'
  }
}

const BLOCKS = 'h1,h2,h3,h4,p,li,blockquote,figcaption,td,dd,dt,pre'

/** The next paragraph, or the next image, for who uses no pointer. After the last comes the first. */
function createSteps(say: (message: object) => void, report: () => void) {
  const at = { text: -1, figure: -1 }
  return (what: 'text' | 'figure', by: number): void => {
    const all = [...d.querySelectorAll(what === 'text' ? BLOCKS : FIGURES)].filter((each) =>
      what === 'text' ? (each.textContent ?? '').trim() !== '' : each.getClientRects().length > 0,
    )
    if (all.length === 0) return say({ kind: 'nothing', what })
    at[what] = (at[what] + by) % all.length
    const chosen = all[at[what]]!
    chosen.scrollIntoView({ block: 'center' })
    if (what === 'figure')
      return say({ kind: 'pointed', isStep: true, anchor: pointedAt(readText(), chosen, { x: 0.5, y: 0.5 }) })
    const range = d.createRange()
    range.selectNodeContents(chosen)
    const selection = d.getSelection()
    selection?.removeAllRanges()
    selection?.addRange(range)
    report()
  }
}
