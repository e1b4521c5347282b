/** The mark: a drop that lands on its way. */
import { html, raw, type Html } from './html.ts'
import type { Look } from './look.ts'

export const MARK_PATHS =
  '<path fill="currentColor" d="M12 1.5c3.9 4.4 6.6 7.9 6.6 11.2 0 .6-.1 1.2-.3 1.8-1.5.5-2.7.3-4.2-.4-2-1-4.4-1.2-7.8.6a6.7 6.7 0 0 1-.9-2c0-3.3 2.7-6.8 6.6-11.2Z"/><path fill="currentColor" d="M6.9 16.3c2.7-1.2 4.5-1 6.3-.2 1.5.7 2.9 1 4.3.7A6.6 6.6 0 0 1 12 19.3c-2 0-3.9-1.1-5.1-3Z" opacity=".65"/><path stroke="currentColor" stroke-width="1.8" stroke-linecap="round" d="M4 22.1h16"/>'

export const mark: Html = raw(
  `<svg viewBox="0 0 24 24" fill="none" aria-hidden="true" focusable="false">${MARK_PATHS}</svg>`,
)

/** The mark for `<link rel="icon">`. Its colour is fixed, since an icon has no style sheet around it. */
export const FAVICON_SVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" color="#0c8a83">${MARK_PATHS}</svg>`

/** `logo`: where the picture of the operator's choice is, if there is one. */
export function brandLink(href: string, { name }: Pick<Look, 'name'>, logo?: string): Html {
  const picture = logo === undefined ? mark : html`<img src="${logo}" alt="">`
  return html`<a class="brand" href="${href}">${picture}<span>${name}</span></a>`
}
