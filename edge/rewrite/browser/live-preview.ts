/**
 * Reloads a page of that version of a preview when another one is served or its reader must come in anew, at the place
 * where they are.
 */
export function followPreview(shown: number): void {
  let heard: number | undefined
  let refused = 0
  const listen = (): void => {
    const events = new EventSource('/.dropway/events')
    events.addEventListener('message', ({ lastEventId }) => {
      refused = 0
      const version = Number(lastEventId)
      // The first may be an older one: said by an edge that is behind the one that sent the page.
      const isNews =
        heard === undefined ? version > shown && isUntried(version) : version !== heard && version !== shown
      heard = version
      if (isNews) w.location.reload()
    })
    // The stream has no right to the preview any more; the page may get one, where its reader signs in.
    events.addEventListener('again', () => w.location.reload())
    // A browser connects again by itself when the line is lost, and gives up where it is refused: it is asked again, each time later.
    events.addEventListener('error', () => {
      if (events.readyState === EventSource.CLOSED)
        setTimeout(listen, Math.min(300_000, 2000 * 2 ** refused++) * (0.5 + Math.random()))
    })
  }
  listen()
}

/**
 * Whether this page was not reloaded for that version yet: a worker of its own, or an edge that is behind, may send the
 * same page again and again.
 */
function isUntried(version: number): boolean {
  const name = 'dropway-preview'
  const reload = `${version} ${w.location.href}`
  try {
    if (w.sessionStorage.getItem(name) === reload) return false
    w.sessionStorage.setItem(name, reload)
    return true
  } catch {
    // A page may be without storage.
    return false
  }
}
