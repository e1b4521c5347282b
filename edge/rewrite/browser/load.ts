/** Adds a script to the page, with what else is to be set of it before the browser asks for it. */
export function load(src: string, own?: Partial<HTMLScriptElement>): HTMLScriptElement {
  const e = Object.assign(d.createElement('script'), { src }, own)
  ;(d.head || d.documentElement).append(e)
  return e
}
