/**
 * Answers on their way out. What is written to a connection is encrypted at once, and the encrypted copy stays in
 * memory until the kernel takes it. Whoever opens all windows and reads nothing would make the edge keep a copy of
 * everything they asked for; so it is counted what waits for readers, over all connections of the worker:
 *
 *   plenty: a body leaves whole, in one write
 *   scarce: it leaves in pieces, and a connection has one of them under way at a time; less patience
 *
 * A connection whose visitor hardly takes anything of an answer is given up, however the visitor keeps it: closed
 * windows, a full buffer, a byte now and then. A paused video asks again for the rest when it goes on.
 */
import type { Readable, Writable } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { rawSocketOf } from './raw-socket.ts'
import { STALLED_CHECK_MS } from './timeouts.ts'

const SCARCE_FROM_BYTES = 16_000_000
const PIECE_BYTES = 8192

/** Each connection is checked every STALLED_CHECK_MS, a few of them at a time. */
const CHECK_GROUPS = 20
/** In a row. The kernel tells of progress only when a third of its queue has left, so one proves little. */
const MAX_STALLED_CHECKS = 2
const MAX_STALLED_CHECKS_WHEN_SCARCE = 1
/** The slowest line that anybody uses carries ten times as much. */
const MIN_TAKEN_BYTES = 4096

export interface Outgoing {
  lane(socket: TLSSocket): Lane
  heldBytes(): number
}

/** The answers of one connection. */
export interface Lane {
  /** What to do when the visitor takes nothing. */
  whenStalled(giveUp: () => void): void
  /** Sends all of the body and the end. */
  end(to: Writable, body: Buffer): void
  /**
   * Hands on the next chunk when the one before has left; a pipe would fill both sides' queues first. An answer that
   * breaks off must not look whole: it ends with a reset.
   */
  pump(source: Readable, to: Writable): void
}

export function createOutgoing({ scarceFrom = SCARCE_FROM_BYTES, checkMs = STALLED_CHECK_MS } = {}): Outgoing {
  const total: Total = { bytes: 0, scarceFrom }
  const groups = Array.from({ length: CHECK_GROUPS }, () => new Set<CountedLane>())
  let next = 0
  const checks = setInterval(() => {
    for (const lane of groups[next]!) lane.check()
    next = (next + 1) % CHECK_GROUPS
  }, checkMs / CHECK_GROUPS)
  checks.unref()
  return {
    lane(socket) {
      const lane = new CountedLane(total, takenBytesOf(socket))
      const group = groups[next]!
      group.add(lane)
      rawSocketOf(socket).once('close', () => group.delete(lane))
      return lane
    },
    heldBytes: () => total.bytes,
  }
}

/** Counts what the kernel has taken on this connection so far. */
function takenBytesOf(socket: TLSSocket): () => number {
  const raw = rawSocketOf(socket) as unknown as {
    readonly _handle: { readonly bytesWritten: number; readonly writeQueueSize: number } | null
  }
  return () => (raw._handle === null ? 0 : raw._handle.bytesWritten - raw._handle.writeQueueSize)
}

/** Of all connections of the worker. */
interface Total {
  bytes: number
  readonly scarceFrom: number
}

class CountedLane implements Lane {
  readonly #total: Total
  readonly #takenBytes: () => number
  #bytes = 0
  #waiting: (() => void)[] = []
  #giveUp = (): void => {}
  /** Since the last check there was a moment without an answer under way. */
  #wasFree = true
  #takenAtCheck = 0
  #stalledChecks = 0

  constructor(total: Total, takenBytes: () => number) {
    this.#total = total
    this.#takenBytes = takenBytes
  }

  whenStalled(giveUp: () => void): void {
    this.#giveUp = giveUp
  }

  check(): void {
    if (this.#bytes === 0) return
    const taken = this.#takenBytes()
    const isStalled = !this.#wasFree && taken - this.#takenAtCheck < MIN_TAKEN_BYTES
    this.#wasFree = false
    this.#takenAtCheck = taken
    this.#stalledChecks = isStalled ? this.#stalledChecks + 1 : 0
    if (this.#stalledChecks >= (this.#isScarce ? MAX_STALLED_CHECKS_WHEN_SCARCE : MAX_STALLED_CHECKS)) this.#giveUp()
  }

  end(to: Writable, body: Buffer): void {
    if (this.#isScarce) return this.#send(new CountedAnswer(to, this), body, () => to.end())
    const { length } = body
    this.hold(length)
    to.once('close', () => this.release(length))
    to.end(body)
  }

  pump(source: Readable, to: Writable): void {
    const answer = new CountedAnswer(to, this)
    to.once('close', () => source.destroy())
    source.on('error', (error) => to.destroy(error))
    source.on('end', () => to.end())
    source.on('data', (chunk: Buffer) => {
      source.pause()
      this.#send(answer, chunk, () => source.resume())
    })
    source.resume()
  }

  hold(bytes: number): void {
    this.#bytes += bytes
    this.#total.bytes += bytes
  }

  release(bytes: number): void {
    this.#bytes -= bytes
    this.#total.bytes -= bytes
    if (this.#bytes === 0) this.#wasFree = true
    while (this.#waiting.length > 0 && this.#mayWrite) this.#waiting.shift()!()
  }

  get #isScarce(): boolean {
    return this.#total.bytes >= this.#total.scarceFrom
  }

  get #mayWrite(): boolean {
    return this.#bytes === 0 || !this.#isScarce
  }

  #inTurn(write: () => void): void {
    if (this.#mayWrite) write()
    else this.#waiting.push(write)
  }

  #send(answer: CountedAnswer, bytes: Buffer, then: () => void): void {
    this.#inTurn(() => {
      const length = this.#isScarce ? PIECE_BYTES : bytes.length
      const rest = bytes.subarray(length)
      answer.write(bytes.subarray(0, length), rest.length > 0 ? () => this.#send(answer, rest, then) : then)
    })
  }
}

/** What one answer holds of its lane is given back piece by piece, and at the latest when the answer is over. */
class CountedAnswer {
  readonly #to: Writable
  readonly #lane: CountedLane
  #bytes = 0

  constructor(to: Writable, lane: CountedLane) {
    this.#to = to
    this.#lane = lane
    to.once('close', () => this.#release(this.#bytes))
  }

  write(piece: Buffer, then: () => void): void {
    if (this.#to.destroyed) return
    this.#bytes += piece.length
    this.#lane.hold(piece.length)
    this.#to.write(piece, (error) => {
      this.#release(Math.min(piece.length, this.#bytes))
      if (!error) then()
    })
  }

  #release(bytes: number): void {
    this.#bytes -= bytes
    this.#lane.release(bytes)
  }
}
