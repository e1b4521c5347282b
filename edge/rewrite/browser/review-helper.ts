/**
 * The part of the review page that stands in the framed drop. It reports what a person selects and draws marks where the
 * review page says; it knows no comment, no name and no key, and it speaks to the review page's origin alone.
 */

/** Around a quote: as much as tells two places apart. */
const CONTEXT = 64
/** A selection of more is about the page. */
const MOST_QUOTED = 5000
/** Text that is looked at, of pages of any length. */
const MOST_READ = 2_000_000
const MOST_MARKS = 200

interface Quote {
  readonly exact: string
  readonly prefix: string
  readonly suffix: string
}

interface Wanted extends Quote {
  readonly id: string
  readonly isChosen: boolean
}

/** The text of the page with single blanks, and where each of its letters stands. */
interface Text {
  readonly text: string
  readonly nodes: readonly globalThis.Text[]
  /** For each letter its node and its place in it. */
  readonly of: Int32Array
  readonly at: Int32Array
}

export function startReview(origin: string): void {
  const url = new URL(w.location.href)
  if (url.searchParams.has('dropway-review')) {
    url.searchParams.delete('dropway-review')
    w.history.replaceState(w.history.state, '', url)
  }
  const say = (message: object): void => w.parent.postMessage({ dropway: 1, ...message }, origin)
  const layer = d.createElement('div')
  let wanted: Wanted[] = []
  let block = -1

  function draw(): void {
    layer.replaceChildren()
    if (wanted.length === 0) return
    if (!layer.isConnected) d.documentElement.append(layer)
    Object.assign(layer.style, {
      position: 'absolute',
      left: '0',
      top: '0',
      zIndex: '2147483646',
      pointerEvents: 'none',
    })
    const read = readText()
    const found: string[] = []
    for (const { id, isChosen, ...quote } of wanted) {
      const range = rangeOf(read, quote)
      if (!range) continue
      found.push(id)
      for (const box of [...range.getClientRects()].slice(0, 60)) layer.append(markAt(box, isChosen))
    }
    say({ kind: 'found', ids: found })
  }

  function markAt(box: DOMRect, isChosen: boolean): HTMLElement {
    const mark = d.createElement('div')
    Object.assign(mark.style, {
      position: 'absolute',
      left: `${box.left + w.scrollX}px`,
      top: `${box.top + w.scrollY}px`,
      width: `${box.width}px`,
      height: `${box.height}px`,
      background: isChosen ? 'rgba(255,176,0,.45)' : 'rgba(255,208,90,.28)',
      borderBottom: '2px solid rgb(214,140,0)',
      mixBlendMode: 'multiply',
    })
    return mark
  }

  function report(): void {
    const selection = d.getSelection()
    const range = selection && selection.rangeCount > 0 && !selection.isCollapsed ? selection.getRangeAt(0) : undefined
    const quote = range && quoteOf(readText(), range)
    say(quote ? { kind: 'selected', quote, top: range.getBoundingClientRect().top } : { kind: 'unselected' })
  }

  /** The next paragraph for who uses no pointer. */
  function step(by: number): void {
    const blocks = [...d.querySelectorAll<HTMLElement>('h1,h2,h3,h4,p,li,blockquote,figcaption,td,dd,dt,pre')].filter(
      (each) => each.textContent.trim() !== '',
    )
    block = Math.max(0, Math.min(blocks.length - 1, block + by))
    const chosen = blocks[block]
    if (!chosen) return
    const range = d.createRange()
    range.selectNodeContents(chosen)
    chosen.scrollIntoView({ block: 'center' })
    const selection = d.getSelection()
    selection?.removeAllRanges()
    selection?.addRange(range)
    report()
  }

  w.addEventListener('message', (event) => {
    if (event.origin !== origin || event.source !== w.parent) return
    const message = event.data as { kind?: string; marks?: Wanted[]; id?: string; by?: number; y?: number }
    if (message.kind === 'marks') {
      wanted = (message.marks ?? []).slice(0, MOST_MARKS)
      draw()
    }
    if (message.kind === 'show') {
      const chosen = wanted.find(({ id }) => id === message.id)
      const range = chosen && rangeOf(readText(), chosen)
      range?.startContainer.parentElement?.scrollIntoView({ block: 'center', behavior: 'smooth' })
    }
    if (message.kind === 'step') step(message.by ?? 1)
    if (message.kind === 'scroll') w.scrollTo(0, message.y ?? 0)
  })
  d.addEventListener('mouseup', () => w.setTimeout(report, 10))
  d.addEventListener('keyup', (event) => {
    if (event.shiftKey || event.key === 'Shift') report()
  })
  w.addEventListener('scroll', () => say({ kind: 'scrolled', y: w.scrollY }), { passive: true })
  w.addEventListener('resize', draw)
  w.addEventListener('load', () => {
    draw()
    say({ kind: 'ready', path: w.location.pathname })
  })
  say({ kind: 'ready', path: w.location.pathname })
}

const UNSEEN = new Set(['SCRIPT', 'STYLE', 'TEMPLATE', 'NOSCRIPT', 'TEXTAREA'])

function readText(): Text {
  const walker = d.createTreeWalker(d.body ?? d.documentElement, NodeFilter.SHOW_TEXT)
  const nodes: globalThis.Text[] = []
  const letters: string[] = []
  const [of, at]: [number[], number[]] = [[], []]
  let last: Element | null = null
  let wasBlank = true
  const add = (letter: string, node: number, place: number): void => {
    const isBlank = /[\s\u00a0\u200b]/.test(letter)
    if (isBlank && wasBlank) return
    letters.push(isBlank ? ' ' : letter)
    of.push(node)
    at.push(place)
    wasBlank = isBlank
  }
  for (let node = walker.nextNode(); node && letters.length < MOST_READ; node = walker.nextNode()) {
    const { parentElement, data } = node as globalThis.Text
    if (!parentElement || UNSEEN.has(parentElement.tagName)) continue
    const index = nodes.push(node as globalThis.Text) - 1
    const own = blockOf(parentElement)
    if (own !== last) add(' ', index, 0)
    last = own
    for (let place = 0; place < data.length; place++) add(data[place] ?? '', index, place)
  }
  return { text: letters.join(''), nodes, of: Int32Array.from(of), at: Int32Array.from(at) }
}

function blockOf(element: Element): Element {
  let own = element
  while (own.parentElement && getComputedStyle(own).display === 'inline') own = own.parentElement
  return own
}

function quoteOf(read: Text, range: Range): Quote | undefined {
  // What of each node is selected: from where to where.
  const parts = read.nodes.map((node): [number, number] => {
    if (!range.intersectsNode(node)) return [0, 0]
    const from = node === range.startContainer ? range.startOffset : 0
    return [from, node === range.endContainer ? range.endOffset : node.length]
  })
  let [start, end] = [-1, -1]
  for (const [place, node] of read.of.entries()) {
    const [from, to] = parts[node] ?? [0, 0]
    const offset = read.at[place] ?? 0
    if (offset < from || offset >= to) continue
    if (start < 0) start = place
    end = place + 1
  }
  if (start < 0 || end - start > MOST_QUOTED) return undefined
  const exact = read.text.slice(start, end).trim()
  if (exact === '') return undefined
  return {
    exact,
    prefix: read.text.slice(Math.max(0, start - CONTEXT), start),
    suffix: read.text.slice(end, end + CONTEXT),
  }
}

/** The place whose surroundings fit best. */
function rangeOf(read: Text, { exact, prefix, suffix }: Quote): Range | undefined {
  const quote = exact.replace(/[\s\u00a0\u200b]+/g, ' ').trim()
  if (quote === '') return undefined
  let [best, score] = [-1, -1]
  for (let found = read.text.indexOf(quote), seen = 0; found >= 0 && seen < 500; seen++) {
    const left = read.text.slice(Math.max(0, found - CONTEXT), found).trimEnd()
    const right = read.text.slice(found + quote.length, found + quote.length + CONTEXT).trimStart()
    const fits = commonEnd(left, prefix.trimEnd()) + commonStart(right, suffix.trimStart())
    if (fits > score) [best, score] = [found, fits]
    found = read.text.indexOf(quote, found + 1)
  }
  if (best < 0) return undefined
  const [from, to] = [best, best + quote.length - 1]
  const [first, last] = [read.nodes[read.of[from] ?? 0], read.nodes[read.of[to] ?? 0]]
  if (!first || !last) return undefined
  const range = d.createRange()
  range.setStart(first, read.at[from] ?? 0)
  range.setEnd(last, (read.at[to] ?? 0) + 1)
  return range
}

function commonEnd(one: string, other: string): number {
  let count = 0
  while (count < one.length && count < other.length && one.at(-1 - count) === other.at(-1 - count)) count++
  return count
}

function commonStart(one: string, other: string): number {
  let count = 0
  while (count < one.length && count < other.length && one[count] === other[count]) count++
  return count
}
