/**
 * Readers who stand still. A connection whose visitor hardly takes anything of an answer is given up, however the visitor
 * keeps it: closed windows, a full buffer, a byte now and then. What counts is what the visitor's side has acknowledged: a
 * slow line that goes on is served to the end. A few who pause cost little and have two minutes; when room is scarce, or
 * many stand still at once, they have seconds. What the visitor loses then, over HTTP/2, says `http2/stalled-session.ts`.
 */
import { inTurns } from '../in-turns.ts'
import { STALLED_CHECK_MS } from '../timeouts.ts'
import type { KernelCounts } from './kernel-counts.ts'
import type { ConnectionRoom } from './room.ts'
import type { Queues, SendQueues } from './send-queues.ts'

/** Each connection is checked every STALLED_CHECK_MS, a few of them at a time. */
const CHECK_GROUPS = 20
/** Checks in a row. A program that reads 20 kB/s makes room in its kernel's buffer every twenty seconds only. */
const MAX_STALLED_CHECKS = 24
/** The first of them notes what is acknowledged, the second has something to compare it with. */
const MAX_STALLED_CHECKS_IN_NEED = 2
/** More connections of a worker than these never pause at once by chance. */
const CROWD = 32
/** What a reader takes, or a sender sends, between two checks at least. The slowest line in use carries ten times as much. */
export const MIN_MOVED_BYTES = 4096
/** When room is scarce, what a connection holds must be gone after this many checks at the pace that it shows. */
const CHECKS_TO_TAKE_ALL = 24

/** A connection at one check. */
export interface ReaderCounters {
  /** What the kernel has taken so far. */
  readonly takenBytes: number
  /** What the visitor's side has acknowledged of it; undefined where that is not known. */
  readonly acknowledgedBytes: number | undefined
  /** Checks in a row at which the connection stood still, before this one. */
  readonly stalledChecks: number
}

/** What a connection's standing still costs others. */
export interface Need {
  readonly heldBytes: number
  readonly isScarce: boolean
  /** Since the connection stood still first, there was a check at which too many others did so too. */
  readonly isCrowded: boolean
}

export type Verdict = 'goes on' | 'stalled' | 'give up'

export function judge(before: ReaderCounters, now: Omit<ReaderCounters, 'stalledChecks'>, need: Need): Verdict {
  const expectedBytes = expectedOf(need)
  if (now.takenBytes - before.takenBytes >= expectedBytes) return 'goes on'
  const isKnown = now.acknowledgedBytes !== undefined && before.acknowledgedBytes !== undefined
  if (isKnown && now.acknowledgedBytes - before.acknowledgedBytes >= expectedBytes) return 'goes on'
  const isNeed = isKnown && (need.isScarce || need.isCrowded)
  const patience = isNeed ? MAX_STALLED_CHECKS_IN_NEED : MAX_STALLED_CHECKS
  return before.stalledChecks + 1 >= patience ? 'give up' : 'stalled'
}

function expectedOf({ isScarce, heldBytes }: Need): number {
  return isScarce ? Math.max(MIN_MOVED_BYTES, heldBytes / CHECKS_TO_TAKE_ALL) : MIN_MOVED_BYTES
}

/** How a connection stands whose reader is given up. */
export interface Stall {
  /** Not even the kernel takes what is written: nothing reaches the visitor. Otherwise windows of HTTP/2 are closed. */
  readonly isBlocked: boolean
  /** What has come from the visitor since the check before. */
  readonly arrivedBytes: number
}

export interface StalledReaders {
  /**
   * Judges the reader of a connection from now on, and says at each check that they are given up. Returns how to end it,
   * for a connection that is gone.
   */
  watch(room: ConnectionRoom, kernel: KernelCounts, giveUp: (stall: Stall) => void): () => void
}

export function createStalledReaders(sendQueues: Pick<SendQueues, 'read'>, checkMs = STALLED_CHECK_MS): StalledReaders {
  const stalled = new Set<Reader>()
  let next = new Set<Reader>()
  const later = Array.from({ length: CHECK_GROUPS - 1 }, () => new Set<Reader>())
  const checks = setInterval(() => {
    void check([...next].filter((reader) => reader.isQuiet()))
    later.push(next)
    next = later.shift() ?? next
  }, checkMs / CHECK_GROUPS)
  checks.unref()

  const judgeOne = inTurns(({ reader, queues }: { reader: Reader; queues: Queues | undefined }) => reader.judge(queues))

  async function check(quiet: readonly Reader[]): Promise<void> {
    if (quiet.length === 0) return
    const queues = await sendQueues.read()
    for (const reader of quiet) judgeOne({ reader, queues })
  }

  return {
    watch(room, kernel, giveUp) {
      const group = next
      const reader = new Reader(room, kernel, giveUp, stalled)
      group.add(reader)
      return () => {
        group.delete(reader)
        reader.leave()
      }
    },
  }
}

/** The reader of one connection, from check to check. */
class Reader {
  readonly #room: ConnectionRoom
  readonly #kernel: KernelCounts
  readonly #giveUp: (stall: Stall) => void
  /** All readers of the worker who stand still. */
  readonly #stalled: Set<Reader>
  /** Undefined until the first check that finds an answer under way. */
  #before: ReaderCounters | undefined
  /** What had come from the visitor at the last check that judged. */
  #arrivedBytes = 0
  #timesEmptied = 0
  #isCrowded = false
  #hasLeft = false

  constructor(room: ConnectionRoom, kernel: KernelCounts, giveUp: (stall: Stall) => void, stalled: Set<Reader>) {
    this.#room = room
    this.#kernel = kernel
    this.#giveUp = giveUp
    this.#stalled = stalled
  }

  /** True when the kernel must be asked what is acknowledged: it took hardly anything since the last check. */
  isQuiet(): boolean {
    // What answers that were broken off have written waits in the connection itself, and is held by no one else.
    const isDue = this.#room.heldBytes > 0 || this.#kernel.waitingBytes() > 0
    if (this.#hasCaughtUp() || !isDue) this.#goOn(undefined)
    if (!isDue) return false
    const takenBytes = this.#kernel.takenBytes()
    const isQuiet = this.#before !== undefined && takenBytes - this.#before.takenBytes < expectedOf(this.#need)
    if (!isQuiet) this.#goOn({ takenBytes, acknowledgedBytes: undefined, stalledChecks: 0 })
    return isQuiet
  }

  /** The question took a moment; the reader may have caught up, or be gone. */
  judge(queues: Queues | undefined): void {
    const before = this.#before
    if (before === undefined || this.#hasLeft) return
    if (this.#hasCaughtUp()) return this.#goOn(undefined)
    const takenBytes = this.#kernel.takenBytes()
    const now = { takenBytes, acknowledgedBytes: queues && this.#kernel.acknowledgedBytes(queues) }
    if (this.#stalled.size > CROWD) this.#isCrowded = true
    const verdict = judge(before, now, this.#need)
    if (verdict === 'goes on') return this.#goOn({ ...now, stalledChecks: 0 })
    this.#stalled.add(this)
    this.#before = { ...now, stalledChecks: before.stalledChecks + 1 }
    const arrivedBefore = this.#arrivedBytes
    this.#arrivedBytes = this.#kernel.arrivedBytes()
    if (verdict === 'stalled') return
    this.#giveUp({
      isBlocked: this.#kernel.waitingBytes() > 0,
      arrivedBytes: this.#arrivedBytes - arrivedBefore,
    })
  }

  leave(): void {
    this.#goOn(undefined)
    this.#hasLeft = true
  }

  /** There was a moment without an answer under way since this was asked last: the reader is judged anew. */
  #hasCaughtUp(): boolean {
    const { timesEmptied } = this.#room
    const isNew = timesEmptied !== this.#timesEmptied
    this.#timesEmptied = timesEmptied
    return isNew
  }

  #goOn(counters: ReaderCounters | undefined): void {
    this.#before = counters
    this.#isCrowded = false
    this.#stalled.delete(this)
  }

  get #need(): Need {
    return { heldBytes: this.#room.heldBytes, isScarce: this.#room.isScarce, isCrowded: this.#isCrowded }
  }
}
