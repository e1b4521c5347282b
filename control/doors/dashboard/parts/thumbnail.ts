/** The card of a drop, small, where drops are listed. It comes from the drop's own address. */
import { CARD_HEIGHT, CARD_WIDTH } from '../../../../shared/contracts/route-record.ts'
import { html, type Html } from '../../../../shared/pages/html.ts'

/** The name beside it says all that it says. */
export function thumbnail(cardUrl: string | null): Html | false {
  return (
    cardUrl !== null &&
    html`<img class="thumbnail" src="${cardUrl}" alt="" width="${CARD_WIDTH}" height="${CARD_HEIGHT}" loading="lazy">`
  )
}

/** Where the pictures of a page come from, for its policy: every drop has a host of its own below the same domain. */
export function thumbnailSources(cardUrls: readonly (string | null)[]): string[] {
  const hosts = cardUrls.flatMap((url) => (url === null ? [] : [new URL(url).host]))
  return [...new Set(hosts.map((host) => `https://*${host.slice(host.indexOf('.'))}`))]
}
