/**
 * What the kernel still holds of what it took: the bytes that the other side has not acknowledged. It takes the next
 * megabytes only when a third of its queue has left, so that a reader of 20 kB/s seems to stand still for a minute;
 * this tells them from one who takes nothing. Linux lists it per socket.
 */
import { readlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

/** `  12: 0100007F:20FB 0100007F:D2A4 01 0002FFE0:00000000 01:00000014 00000000     0        0 48217 …` */
const ENTRY = /^ *\d+: \S+ \S+ \S+ ([0-9A-F]{8}):\S+ \S+ \S+ +\d+ +\d+ (\d+)/gm

export interface SendQueues {
  /** The name of a socket in the kernel's lists; undefined where there are none. */
  inodeOf(fd: number): string | undefined
  /** By inode; empty where nothing can be learnt. */
  read(): Promise<ReadonlyMap<string, number>>
}

export const sendQueues: SendQueues = {
  inodeOf(fd) {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1]
    } catch {
      return undefined
    }
  },
  async read() {
    const queues = new Map<string, number>()
    for (const list of ['/proc/self/net/tcp6', '/proc/self/net/tcp']) {
      const text = await readFile(list, 'latin1').catch(() => '')
      for (const [, queued, inode] of text.matchAll(ENTRY)) queues.set(inode!, Number.parseInt(queued!, 16))
    }
    return queues
  },
}
