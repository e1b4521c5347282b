/** Reloads a preview when a newer version of it is served, at the place where its reader is. */
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
    // A browser connects again by itself when the line is lost, and gives up where it is refused: it is asked again, each time later.
    events.addEventListener('error', () => {
      if (events.readyState === EventSource.CLOSED)
        setTimeout(listen, Math.min(300_000, 2000 * 2 ** refused++) * (0.5 + Math.random()))
    })
  }
  listen()
}
