/** Reloads a preview when a newer version of it is served or its reader must come in anew, at the place where they are. */
export function followPreview(): void {
  let known = ''
  let refused = 0
  const listen = (): void => {
    const events = new EventSource('/.dropway/events')
    events.addEventListener('message', ({ lastEventId }) => {
      refused = 0
      if (known !== '' && known !== lastEventId) w.location.reload()
      known = lastEventId
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
