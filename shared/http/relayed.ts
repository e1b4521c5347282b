/**
 * Set by an edge on a request that another proxy had passed on to it: the address that the edge saw is that proxy's, so
 * nothing may be concluded from it.
 */
export const RELAYED_HEADER = 'dropway-relayed'

/** Any of these says that the sender is not the visitor. */
export const PROXY_HEADERS: readonly string[] = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
]
