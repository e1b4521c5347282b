/**
 * Content that is on its way into an upload, as this process reads it. A caller whose line broke asks what has arrived and
 * sends the rest; what the broken line had delivered may then still be read and stored, above all in a process that stood
 * still for a while. So the answer waits for that, and no file has two writers: the earlier one comes to its end first.
 */
import type { Readable } from 'node:stream'
import { systemTimers, type Timers } from '../../../../shared/running/timers.ts'

/**
 * How long what was delivered may take to be read and stored: a busy machine writes some megabytes a second. A line that
 * goes on for longer is not a broken one. The client waits for an answer for twice as long.
 */
const MAX_WAIT_MS = 30_000

export interface Arrivals {
  /** Handles a request that brings content of this name, from its head on: who sends it may have to be looked up first. */
  announced<Result>(fileOrUpload: string, work: () => Promise<Result>): Promise<Result>
  /** Reads one file. An earlier reading of the same file ends first: by itself, or after a while because it has to. */
  file<Result>(file: string, body: Readable, work: () => Promise<Result>): Promise<Result>
  /** Reads several files of an upload in one request; others may read others of them at the same time. */
  batch<Result>(upload: string, work: () => Promise<Result>): Promise<Result>
  /** Resolves when nothing of this name is announced or being read any more, or after a while. */
  settled(fileOrUpload: string): Promise<void>
}

interface Arrival {
  readonly body: Readable | undefined
  readonly over: Promise<unknown>
}

export function createArrivals(timers: Pick<Timers, 'sleep'> = systemTimers): Arrivals {
  const underWay = new Map<string, Set<Arrival>>()

  function begin<Result>(name: string, body: Readable | undefined, work: () => Promise<Result>): Promise<Result> {
    const result = work()
    const arrivals = underWay.get(name) ?? new Set()
    underWay.set(name, arrivals)
    const arrival = { body, over: result.catch(() => undefined).finally(() => forget(arrival)) }
    function forget(one: Arrival): void {
      arrivals.delete(one)
      if (arrivals.size === 0) underWay.delete(name)
    }
    arrivals.add(arrival)
    return result
  }

  async function atMostAWhile(arrivals: Iterable<Arrival>): Promise<void> {
    const all = Promise.all([...arrivals].map(({ over }) => over))
    await Promise.race([all, timers.sleep(MAX_WAIT_MS)])
  }

  return {
    announced: (name, work) => begin(announcementOf(name), undefined, work),
    async file(name, body, work) {
      const before = underWay.get(name)
      if (before !== undefined) await atMostAWhile(before)
      for (let left = underWay.get(name); left !== undefined; left = underWay.get(name)) {
        for (const arrival of left) arrival.body?.destroy(new Error('sent again by a later request'))
        await Promise.all([...left].map(({ over }) => over))
      }
      return begin(name, body, work)
    },
    batch: (upload, work) => begin(upload, undefined, work),
    async settled(name) {
      const arrivals = [...(underWay.get(name) ?? []), ...(underWay.get(announcementOf(name)) ?? [])]
      if (arrivals.length > 0) await atMostAWhile(arrivals)
    },
  }
}

/** No name of a file or an upload has a space in it. */
const announcementOf = (name: string): string => `announced ${name}`
