/**
 * What one visitor network may take of this worker. Counted in memory: a limit that asked another process would
 * itself be a way to slow the edge down.
 */
import type { VisitorLimits } from '../../config.ts'
import { limitKeyOfIp } from '../../../shared/http/ip.ts'

/** A network is forgotten when it has been silent for this long and holds no connection. */
const FORGET_AFTER_MS = 10_000
const SWEEP_MS = 5000
/** A piece of a body below this many bytes is small. Each costs a few µs, whatever is in it. */
const SMALL_PIECE_BYTES = 256
/** Real content never comes in so many small pieces; bodies sent byte by byte do. */
const SMALL_PIECES_PER_SECOND = 10_000

export interface Network {
  connections: number
  readonly requests: Bucket
  readonly handshakes: Bucket
  readonly pieces: Bucket
}

export interface NetworkLimits {
  of(address: string): Network
  /** Counts a new connection; false when the network has too many, or opens them too fast. */
  mayConnect(network: Network): boolean
  /** Counts a request; false when there are too many. */
  mayRequest(network: Network): boolean
  /** Counts a piece of a body; false when the network divides its bodies too finely. */
  mayDivide(network: Network, bytes: number): boolean
  size(): number
  stop(): void
}

/** Tokens that refill evenly; a burst of one second's worth is fine. */
interface Bucket {
  tokens: number
  at: number
}

export function createNetworkLimits(
  limits: VisitorLimits,
  nowMs: () => number = () => performance.now(),
): NetworkLimits {
  const networks = new Map<string, Network>()
  const fresh = (perSecond: number): Bucket => ({ tokens: perSecond, at: nowMs() })
  const take = (bucket: Bucket, perSecond: number): boolean => {
    const now = nowMs()
    bucket.tokens = Math.min(perSecond, bucket.tokens + ((now - bucket.at) / 1000) * perSecond)
    bucket.at = now
    if (bucket.tokens < 1) return false
    bucket.tokens -= 1
    return true
  }
  const sweep = setInterval(() => {
    const idleSince = nowMs() - FORGET_AFTER_MS
    for (const [key, network] of networks) {
      if (network.connections === 0 && network.handshakes.at < idleSince && network.requests.at < idleSince)
        networks.delete(key)
    }
  }, SWEEP_MS).unref()
  return {
    of(address) {
      const key = limitKeyOfIp(address)
      let network = networks.get(key)
      if (network === undefined) {
        network = {
          connections: 0,
          requests: fresh(limits.requestsPerSecond),
          handshakes: fresh(limits.handshakesPerSecond),
          pieces: fresh(SMALL_PIECES_PER_SECOND),
        }
        networks.set(key, network)
      }
      return network
    },
    mayConnect: (network) =>
      network.connections < limits.connections && take(network.handshakes, limits.handshakesPerSecond),
    mayRequest: (network) => take(network.requests, limits.requestsPerSecond),
    mayDivide: (network, bytes) => bytes >= SMALL_PIECE_BYTES || take(network.pieces, SMALL_PIECES_PER_SECOND),
    size: () => networks.size,
    stop: () => clearInterval(sweep),
  }
}
