/** What we use of two libraries that describe themselves by a browser's types, which programs on Node do not have. */

/** An element of a page that was read. */
interface PageElement {
  readonly nodeName: string
  readonly textContent: string | null
  readonly parentElement: PageElement | null
  readonly children: ArrayLike<PageElement>
  querySelector(selector: string): PageElement | null
  querySelectorAll(selector: string): ArrayLike<PageElement>
  closest(selector: string): PageElement | null
  cloneNode(isDeep: boolean): PageElement
  getAttribute(name: string): string | null
  setAttribute(name: string, value: string): void
  removeAttribute(name: string): void
  remove(): void
  replaceWith(other: unknown): void
}

interface PageDocument extends Pick<PageElement, 'querySelector' | 'querySelectorAll'> {
  readonly body: PageElement
  createTextNode(text: string): unknown
}

declare module '@mixmark-io/domino' {
  const domino: { createDocument(html: string): PageDocument }
  export default domino
}

declare module 'turndown' {
  interface Rule {
    readonly filter: string | readonly string[]
    replacement(content: string, node: PageElement): string
  }
  export default class TurndownService {
    constructor(options: Record<string, string>)
    addRule(key: string, rule: Rule): void
    turndown(page: PageElement): string
    escape: (text: string) => string
  }
}
