/**
 * What the kernel still holds of what it took: the bytes that the other side has not acknowledged. It takes the next ones
 * only when a good part of its queue has left, so that a slow reader seems to stand still for seconds, or for a minute where
 * it has no bound (`unsent.ts`); this tells them from one who takes nothing. Linux lists it per socket.
 */
import { readlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

/** `  12: 0100007F:20FB 0100007F:D2A4 01 0002FFE0:00000000 01:00000014 00000000     0        0 48217 …`, unless it is empty. */
const QUEUE = /^ *\d+: \S+ \S+ \S+ (?!00000000)([0-9A-F]{8}):\S+ \S+ \S+ +\d+ +\d+ (\d+)/gm
/** The list of thousands of sockets takes milliseconds; callers that ask meanwhile share it. */
const FRESH_MS = 1000

/** Bytes by inode, where there are any. */
export type Queues = ReadonlyMap<string, number>

export interface SendQueues {
  /** The name of a socket in the kernel's lists; undefined where there are none. */
  inodeOf(fd: number): string | undefined
  /** Undefined where nothing can be learnt. */
  read(): Promise<Queues | undefined>
}

export function createSendQueues(): SendQueues {
  let latest: Promise<Queues | undefined> = Promise.resolve(undefined)
  let readAt = Number.NEGATIVE_INFINITY
  return {
    inodeOf(fd) {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1]
      } catch {
        return undefined
      }
    },
    read() {
      if (performance.now() - readAt > FRESH_MS) {
        readAt = performance.now()
        latest = readQueues().catch(() => undefined)
      }
      return latest
    },
  }
}

async function readQueues(): Promise<Queues> {
  const ipv4 = await readFile('/proc/self/net/tcp', 'latin1')
  // Missing on a machine without IPv6.
  const ipv6 = await readFile('/proc/self/net/tcp6', 'latin1').catch(() => '')
  const queues = new Map<string, number>()
  for (const list of [ipv6, ipv4])
    for (const [, bytes = '', inode = ''] of list.matchAll(QUEUE)) queues.set(inode, Number.parseInt(bytes, 16))
  return queues
}
