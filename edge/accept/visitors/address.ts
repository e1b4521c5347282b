/** Who a visitor is for limits and logs: the socket's address, unless the peer is a proxy we trust. */
import { callerIp, isTrusted, normaliseIp, trustedNetworks } from '../../../shared/http/ip.ts'

export interface VisitorIps {
  isTrusted(address: string): boolean
  /** The visitor's address: the last one in `x-forwarded-for` that no trusted proxy owns. */
  visitorOf(peer: string, forwardedFor: string | undefined): string
}

export function createVisitorIps(trustedProxies: readonly string[]): VisitorIps {
  const trusted = trustedNetworks(trustedProxies)
  if (trustedProxies.length === 0) return { isTrusted: () => false, visitorOf: (peer) => peer }
  return {
    isTrusted: (address) => isTrusted(address, trusted),
    // Loopback is an ordinary network here: callerIp is asked only about peers that the setting names.
    visitorOf: (peer, forwardedFor) =>
      isTrusted(peer, trusted) ? callerIp(peer, forwardedFor, trusted) : normaliseIp(peer),
  }
}
