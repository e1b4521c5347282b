/** Reloads a preview when a newer version of it is served, at the place where its reader is. */
export function followPreview(): void {
  let known = ''
  const events = new EventSource('/.dropway/events')
  events.addEventListener('message', ({ lastEventId }) => {
    if (known !== '' && known !== lastEventId) w.location.reload()
    known = lastEventId
  })
}
