/**
 * Answers on their way out. What is written to a connection is encrypted at once, and the encrypted copy stays in
 * memory until the kernel takes it. Whoever opens all windows and reads nothing would make the edge keep a copy of
 * everything they asked for; so it is counted what waits for readers, over all connections of the worker:
 *
 *   plenty: a body leaves whole, in one write
 *   scarce: it leaves in pieces, and a connection has one of them under way at a time
 */
import type { Readable, Writable } from 'node:stream'

const SCARCE_FROM_BYTES = 32_000_000
/** One TLS record, one DATA frame. */
const PIECE_BYTES = 16_384

export interface Outgoing {
  /** For one connection. */
  lane(): Lane
  heldBytes(): number
}

export interface Lane {
  /** Sends all of the body and the end. */
  end(to: Writable, body: Buffer): void
  /**
   * Hands on the next chunk when the one before has left; a pipe would fill both sides' queues first. An answer that
   * breaks off must not look whole: it ends with a reset.
   */
  pump(source: Readable, to: Writable): void
}

export function createOutgoing(scarceFrom = SCARCE_FROM_BYTES): Outgoing {
  const total: Count = { bytes: 0, scarceFrom }
  return { lane: () => new CountedLane(total), heldBytes: () => total.bytes }
}

interface Count {
  bytes: number
  readonly scarceFrom: number
}

class CountedLane implements Lane {
  readonly #total: Count
  #bytes = 0
  #waiting: (() => void)[] = []

  constructor(total: Count) {
    this.#total = total
  }

  end(to: Writable, body: Buffer): void {
    if (this.#isScarce) return this.#endInPieces(new CountedAnswer(to, this), body, 0)
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
      this.#inTurn(() => answer.write(chunk, () => source.resume()))
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

  #endInPieces(answer: CountedAnswer, body: Buffer, start: number): void {
    this.#inTurn(() => {
      const end = start + PIECE_BYTES
      if (end < body.length) answer.write(body.subarray(start, end), () => this.#endInPieces(answer, body, end))
      else answer.end(body.subarray(start))
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
    this.#hold(piece.length)
    this.#to.write(piece, (error) => {
      this.#release(Math.min(piece.length, this.#bytes))
      if (!error) then()
    })
  }

  end(piece: Buffer): void {
    if (this.#to.destroyed) return
    this.#hold(piece.length)
    this.#to.end(piece)
  }

  #hold(bytes: number): void {
    this.#bytes += bytes
    this.#lane.hold(bytes)
  }

  #release(bytes: number): void {
    this.#bytes -= bytes
    this.#lane.release(bytes)
  }
}
