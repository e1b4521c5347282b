/** The text of the framed page: what of it is quoted, and where a quote stands. */

/** Around a quote: as much as tells two places apart. */
const CONTEXT = 64
/** A selection of more is about the page. */
const MOST_QUOTED = 5000
/** Text that is looked at, of pages of any length. */
const MOST_READ = 2_000_000

export interface Quote {
  readonly exact: string
  readonly prefix: string
  readonly suffix: string
}

/** The text of the page with single blanks, and where each of its letters stands. */
export interface PageText {
  readonly text: string
  readonly nodes: readonly Text[]
  /** For each letter its node and its place in it. */
  readonly of: Int32Array
  readonly at: Int32Array
}

const UNSEEN = new Set(['SCRIPT', 'STYLE', 'TEMPLATE', 'NOSCRIPT', 'TEXTAREA'])

export function readText(): PageText {
  const walker = d.createTreeWalker(d.body ?? d.documentElement, NodeFilter.SHOW_TEXT)
  const nodes: Text[] = []
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
    const { parentElement, data } = node as Text
    if (!parentElement || UNSEEN.has(parentElement.tagName)) continue
    const index = nodes.push(node as Text) - 1
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

/** What is selected, with the text around it; undefined where that is nothing, or more than a passage. */
export function quoteOf(read: PageText, range: Range): Quote | undefined {
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
export function rangeOf(read: PageText, { exact, prefix, suffix }: Quote): Range | undefined {
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

/** The text around an element that has none itself. */
export function aroundOf(read: PageText, element: Element): Quote {
  // Nodes stand in the order of the page: the first one behind the element is where its surroundings divide.
  let [low, high] = [0, read.nodes.length]
  while (low < high) {
    const middle = (low + high) >> 1
    const node = read.nodes[middle]
    if (node && element.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_FOLLOWING) high = middle
    else low = middle + 1
  }
  const found = read.of.findIndex((node) => node >= low)
  const place = found < 0 ? read.text.length : found
  const prefix = read.text.slice(Math.max(0, place - CONTEXT), place).trim()
  return { exact: '', prefix, suffix: read.text.slice(place, place + CONTEXT).trim() }
}

/** How well the text around a place fits what was said of it. */
export function fitOf(one: Quote, other: Quote): number {
  return commonEnd(one.prefix.trim(), other.prefix.trim()) + commonStart(one.suffix.trim(), other.suffix.trim())
}
