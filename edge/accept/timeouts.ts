/** How long a visitor may take. Slow ones cost a socket; these bound for how long. */

/** A handshake is a few round trips. */
export const HANDSHAKE_MS = 10_000
/** From the first byte of a request to the end of its headers. */
export const HEADERS_MS = 10_000
/** How often to look for requests that take longer. Seldom, it would find a thousand at once, and end them in one turn. */
export const CHECK_SLOW_MS = 100
/** A whole request with its body; a large upload over a thin line is legitimate. */
export const REQUEST_MS = 3_600_000
/** Nothing at all on a connection. */
export const IDLE_MS = 60_000
export const KEEP_ALIVE_MS = 60_000
/** A connection on which nothing was asked for yet, while the edge stops: its first request may be on its way. */
export const FAREWELL_MS = 1000
/** How often to look whether visitors take their answers. */
export const STALLED_CHECK_MS = 5000
/** Nothing at all on a connection that control answers on: event streams, exports, long publishes. */
export const PROXIED_IDLE_MS = 600_000
/** The unlock form. */
export const FORM_MS = 10_000
