/** The words of the banner, and their language. */
interface ConsentWords {
  readonly title: string
  readonly text: string
  readonly accept: string
  readonly reject: string
  readonly lang: string
}

/**
 * Shows the banner until the visitor has answered, and whenever the address ends with `#cookie-settings`. `start` begins
 * what waits for a yes. A no after a yes takes the trackers' cookies away and loads the page anew, without them.
 */
export function consent(t: ConsentWords, start: () => void): void {
  const key = 'dw-consent'
  let box: HTMLElement | undefined
  let begun: boolean | undefined

  /** Storage may be closed to the page; the visitor is then asked on every page. */
  function read(): string | null | undefined {
    try {
      return w.localStorage.getItem(key)
    } catch {}
  }

  function begin(): void {
    if (begun) return
    begun = true
    start()
  }

  function forget(): void {
    const labels = w.location.hostname.split('.')
    for (const cookie of d.cookie.split(';')) {
      const gone = `${cookie.trim().split('=')[0]}=; Max-Age=0; Path=/; Secure`
      if (!/^(_ga|_fbp=|_fbc=|ph_)/.test(gone)) continue
      d.cookie = gone
      labels.forEach((_, at) => (d.cookie = `${gone}; Domain=${labels.slice(at).join('.')}`))
    }
    w.location.reload()
  }

  function choose(detail: 'granted' | 'denied'): void {
    try {
      w.localStorage.setItem(key, detail)
    } catch {}
    box?.remove()
    w.dispatchEvent(new CustomEvent('dw:consent', { detail }))
    if (detail === 'granted') begin()
    else if (begun) forget()
  }

  function add(into: Element, tag: string, textContent?: string, own?: object): Element {
    const e = Object.assign(d.createElement(tag), { textContent }, own)
    into.append(e)
    return e
  }

  /** A frameset page, whose body is a frameset, has no place for it. */
  function show(): void {
    if (box?.isConnected || d.body?.tagName.toUpperCase() !== 'BODY') return
    box = d.createElement('div')
    const set = {
      id: key,
      role: 'dialog',
      'aria-labelledby': 'dw-consent-title',
      'aria-describedby': 'dw-consent-text',
      lang: t.lang,
      dir: 'ltr',
      tabindex: '-1',
    }
    for (const k in set) box.setAttribute(k, set[k as keyof typeof set])
    add(box, 'h2', t.title, { id: 'dw-consent-title' })
    add(box, 'p', t.text, { id: 'dw-consent-text' })
    const row = add(box, 'div')
    add(row, 'button', t.reject, { type: 'button', onclick: () => choose('denied') })
    add(row, 'button', t.accept, { type: 'button', onclick: () => choose('granted') })
    d.body.append(box)
    if (d.activeElement === d.body) box.focus({ preventScroll: true })
  }

  function ask(): void {
    if (w.location.hash === '#cookie-settings') show()
  }

  function ready(): void {
    if (read() == null) show()
    ask()
  }

  w.addEventListener('hashchange', ask)
  if (read() === 'granted') begin()
  if (d.readyState === 'loading') d.addEventListener('DOMContentLoaded', ready)
  else ready()
}
