/**
 * How much of an answer the kernel takes before it can send it: by itself all that its buffer holds, megabytes for each
 * visitor who reads nothing (TCP_NOTSENT_LOWAT, tcp(7)). Node has no call for that, so libc's own is called.
 */
import type net from 'node:net'

/** A quarter of what a connection is handed at once, and 10 ms of a line that carries 100 Mbit/s. */
const MAX_UNSENT_BYTES = 131_072
/** Linux, on every architecture. */
const IPPROTO_TCP = 6
const TCP_NOTSENT_LOWAT = 25

/** What a process needs to be started with; a Node that does not know it would not start. */
export const UNSENT_FLAGS: readonly string[] = ['--experimental-ffi'].filter((flag) =>
  process.allowedNodeEnvironmentFlags.has(flag),
)

/** Bounds each connection that the listening `server` accepts: they inherit it. Where Node cannot, the kernel's own bound stays. */
export function limitUnsent(server: net.Server): void {
  const { fd } = (server as unknown as { _handle: { fd: number } })._handle
  const bytes = Buffer.from(Int32Array.of(MAX_UNSENT_BYTES).buffer)
  try {
    const ffi = process.getBuiltinModule('node:ffi')
    const { functions } = ffi.dlopen(null, {
      setsockopt: { arguments: ['int32', 'int32', 'int32', 'buffer', 'uint32'], return: 'int32' },
    })
    functions.setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes, bytes.length)
  } catch {
    // A Node without it, or one that does not allow it.
  }
}
