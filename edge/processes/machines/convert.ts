/** A page as Markdown. Runs in a thread with a budget (markdown-thread.ts): what strangers publish may take long. */
import domino from '@mixmark-io/domino'
import TurndownService from 'turndown'
import { mainContentOf } from './main-content.ts'

/** Absolute links make a page longer; one that grows beyond this is not what anyone wants to read. */
const MAX_CHARS = 2_000_000
/** Names of languages as highlighters write them into classes. */
const LANGUAGE = /(?:^|\s)(?:language-|lang-|highlight-source-|brush:\s*)([\w+#-]{1,30})/
const MAX_TITLE_CHARS = 300
/** No browser follows a longer one. */
const MAX_ADDRESS_CHARS = 2000

/** `address`: where the page is, for its relative links. Throws when the result would be too long. */
export function pageToMarkdown(html: string, address: string): string {
  const document = domino.createDocument(html)
  const title = oneLine(document.querySelector('title')?.textContent ?? '')
  const description = oneLine(document.querySelector('meta[name=description]')?.getAttribute('content') ?? '')
  const base = resolved(document.querySelector('base[href]')?.getAttribute('href'), address) ?? address
  const content = mainContentOf(document)
  makeAbsolute(document, content, base)
  keepLines(document, content)
  const hasHeading = content.querySelectorAll('h1').length > 0
  const text = createConverter().turndown(content)
  const heading = hasHeading || title === '' ? '' : `# ${title}\n\n`
  // A shell that a script fills has nothing else to say.
  const whole = heading + (text === '' ? description : text)
  if (whole.length > MAX_CHARS) throw new Error(`the page has more than ${MAX_CHARS} characters as Markdown`)
  return `${whole.replace(/\n{3,}/g, '\n\n').trim()}\n`
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, MAX_TITLE_CHARS)
}

function resolved(address: string | null | undefined, base: string): string | undefined {
  if (address == null || address.length > MAX_ADDRESS_CHARS) return undefined
  const url = URL.parse(address.trim(), base)
  return url && ['http:', 'https:', 'mailto:', 'tel:'].includes(url.protocol) ? url.href : undefined
}

/** What leads nowhere for a reader of Markdown becomes its text alone. */
function makeAbsolute(document: PageDocument, content: PageElement, base: string): void {
  for (const link of Array.from(content.querySelectorAll('a[href]'))) {
    const address = resolved(link.getAttribute('href'), base)
    if (address === undefined) link.removeAttribute('href')
    else link.setAttribute('href', address)
  }
  for (const image of Array.from(content.querySelectorAll('img'))) {
    const address = resolved(image.getAttribute('src') ?? image.getAttribute('data-src'), base)
    if (address === undefined) image.replaceWith(document.createTextNode(image.getAttribute('alt') ?? ''))
    else image.setAttribute('src', address)
  }
}

/** Highlighters end the lines of code with elements. */
function keepLines(document: PageDocument, content: PageElement): void {
  for (const end of Array.from(content.querySelectorAll('pre br'))) end.replaceWith(document.createTextNode('\n'))
}

function createConverter(): TurndownService {
  const converter = new TurndownService({
    headingStyle: 'atx',
    codeBlockStyle: 'fenced',
    bulletListMarker: '-',
    emDelimiter: '*',
    hr: '---',
  })
  converter.addRule('code', {
    filter: 'pre',
    replacement: (_, node) => fenced(node),
  })
  converter.addRule('struck', { filter: ['del', 's'], replacement: (text) => (text === '' ? '' : `~~${text}~~`) })
  converter.addRule('cell', { filter: ['td', 'th'], replacement: (text) => ` ${cellText(text)} |` })
  converter.addRule('row', {
    filter: 'tr',
    replacement: (cells, node) => (cells.trim() === '' ? '' : `|${cells}\n${lineBelow(node)}`),
  })
  converter.addRule('table', { filter: 'table', replacement: (rows) => `\n\n${rows.trim()}\n\n` })
  converter.addRule('rows', { filter: ['thead', 'tbody', 'tfoot'], replacement: (rows) => rows })
  converter.addRule('term', { filter: 'dt', replacement: (text) => `\n\n${text.trim()}` })
  converter.addRule('meaning', { filter: 'dd', replacement: (text) => `: ${text.trim()}\n` })
  const { escape } = converter
  // Inside of a word an underscore means nothing.
  converter.escape = (text) => escape(text).replace(/(?<=[\p{L}\p{N}])\\_(?=[\p{L}\p{N}])/gu, '_')
  return converter
}

function fenced(pre: PageElement): string {
  const code = withoutBlankEnds(pre.textContent ?? '')
  const places = [pre.querySelector('code'), pre, pre.parentElement, pre.parentElement?.parentElement]
  const language = places.map((place) => LANGUAGE.exec(place?.getAttribute('class') ?? '')?.[1]).find(Boolean) ?? ''
  const longest = Math.max(2, ...Array.from(code.matchAll(/^`+/gm), ([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `\n\n${fence}${language}\n${code}\n${fence}\n\n`
}

/** Highlighters leave an empty line at the beginning and some at the end. */
function withoutBlankEnds(text: string): string {
  let end = text.length
  while (text[end - 1] === '\n') end -= 1
  return text.slice(text.startsWith('\n') ? 1 : 0, end)
}

/** A cell is one line. */
function cellText(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ')
    .replaceAll('|', '\\|')
}

/** Markdown has a line below the first row of each table, whatever it is. */
function lineBelow(row: PageElement): string {
  const isFirst = row.closest('table')?.querySelector('tr') === row
  const cells = Array.from(row.children).filter(({ nodeName }) => nodeName === 'TD' || nodeName === 'TH')
  return isFirst ? `|${' --- |'.repeat(cells.length)}\n` : ''
}
