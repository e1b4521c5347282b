/**
 * The part of a page that it is about, with what only a browser needs taken out. It prefers to keep too much: a menu
 * costs a reader some words, a lost sentence costs the reader the page.
 */

/** Never text of a page. */
const UNREAD =
  'script, style, template, noscript, iframe, object, embed, canvas, svg, audio, video, link, meta, input, select, textarea, dialog, nav, [role=navigation], [hidden], [aria-hidden=true]'
/** Beside the content, unless they stand in it. */
const BESIDE = 'footer, aside, [role=contentinfo], [role=complementary], [role=banner] form, [role=search]'
/** Line numbers and buttons around code, which would come between its lines. */
const AROUND_CODE = '.linenos, .lineno, .line-numbers-rows, .gutter, .highlight .copy'
const HEADINGS = 'h1, h2, h3, h4, h5, h6, summary'
/** What a heading ends with so that people can copy a link to it. */
const PERMALINK = /^[#¶§🔗\u200b\s]*$/u
/** Less than this share of the words of a page is not its content, whatever its markup says. */
const LEAST_SHARE = 0.3

type Queried = Pick<PageElement, 'querySelectorAll'>

/** Changes the document. The caller gives it away. */
export function mainContentOf(document: PageDocument): PageElement {
  removeAll(document, UNREAD)
  removeAll(document, AROUND_CODE)
  for (const button of all(document, 'button')) if (!isWithin(button, HEADINGS)) button.remove()
  for (const link of all(document, 'a[href^="#"]')) if (PERMALINK.test(link.textContent ?? '')) link.remove()
  const { body } = document
  const marked = onlyOne(body, 'main, [role=main]') ?? onlyOne(body, 'article')
  if (marked && wordsIn(marked) >= LEAST_SHARE * wordsIn(withoutBeside(body))) return marked
  for (const element of all(body, BESIDE)) if (!isWithin(element, 'main, article, [role=main]')) element.remove()
  return body
}

/** Words that are left when what stands beside the content does not count. Walks the page once. */
function withoutBeside(body: PageElement): PageElement {
  const copy = body.cloneNode(true)
  removeAll(copy, BESIDE)
  removeAll(copy, 'header')
  return copy
}

function removeAll(root: Queried, selector: string): void {
  for (const element of all(root, selector)) element.remove()
}

function all(root: Queried, selector: string): PageElement[] {
  return Array.from(root.querySelectorAll(selector))
}

function onlyOne(root: Queried, selector: string): PageElement | undefined {
  const found = all(root, selector).filter((element) => !isWithin(element, selector))
  return found.length === 1 ? found[0] : undefined
}

/** Is it inside of such an element, itself not counted? */
function isWithin(element: PageElement, selector: string): boolean {
  return element.parentElement?.closest(selector) != null
}

function wordsIn(element: PageElement): number {
  return (element.textContent ?? '').replace(/\s+/g, ' ').length
}
