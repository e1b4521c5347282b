/** Follows a domain that is being set up: takes over the server's own rendering while nothing is being typed. */
import { enableCopying } from './modules/elements.ts'
import { showOwnTimes } from './times.ts'

const PAUSE_MS = 4000

async function refresh(): Promise<void> {
  const place = document.querySelector('[data-domains]')
  if (!place) return
  const answer = await fetch(location.pathname, { credentials: 'same-origin' })
  if (!answer.ok) return
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('[data-domains]')
  if (!fresh || place.contains(document.activeElement) || fresh.innerHTML === place.innerHTML) return
  place.replaceChildren(...document.adoptNode(fresh).childNodes)
  enableCopying(place)
  showOwnTimes(place)
}

enableCopying(document)

setInterval(() => {
  if (document.visibilityState === 'visible') void refresh().catch(() => undefined)
}, PAUSE_MS)
