import type { Server } from 'node:http'

/**
 * Idle connections are their callers' to close. A server that closes them after five seconds, as Node's does, may do so at
 * the end of a standstill of the machine, just before the caller's next request goes out on one: that is lost.
 */
export function keepIdleConnections(server: Server): void {
  server.keepAliveTimeout = 0
}
