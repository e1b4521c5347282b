/** One connection as the kernel sees it. */
import type { TLSSocket } from 'node:tls'
import { rawSocketOf } from '../raw-socket.ts'
import type { Queues, SendQueues } from './send-queues.ts'

export interface KernelCounts {
  /** What the kernel has taken of the connection so far. */
  takenBytes(): number
  /** What is written to the connection and the kernel has not taken. */
  waitingBytes(): number
  /** What has come from the visitor so far. */
  arrivedBytes(): number
  /** What the visitor's side has acknowledged of it; undefined where that is not known. */
  acknowledgedBytes(queues: Queues): number | undefined
}

export function kernelCounts(socket: TLSSocket, sendQueues: Pick<SendQueues, 'inodeOf'>): KernelCounts {
  const raw = rawSocketOf(socket) as unknown as {
    readonly _handle: { readonly bytesWritten: number; readonly writeQueueSize: number; readonly fd: number } | null
  }
  const takenBytes = (): number => (raw._handle === null ? 0 : raw._handle.bytesWritten - raw._handle.writeQueueSize)
  let inode: string | undefined
  return {
    takenBytes,
    waitingBytes: () => raw._handle?.writeQueueSize ?? 0,
    arrivedBytes: () => socket.bytesRead,
    acknowledgedBytes(queues) {
      if (raw._handle === null) return undefined
      inode ??= sendQueues.inodeOf(raw._handle.fd)
      return inode === undefined ? undefined : takenBytes() - (queues.get(inode) ?? 0)
    },
  }
}
