/**
 * The body of one answer on its way out. Every head is followed by exactly its body, or by the end of the connection (of
 * the stream, on HTTP/2): the next answer of an HTTP/1.1 connection would otherwise be read as a part of this one. One
 * object owns the source, the destination, the count of bytes and the end, and there is one way through it:
 *
 *   source ─▶ chunk ─▶ piece ─▶ written ─▶ the next piece ─▶ … ─▶ the source has ended and all is written ─▶ end
 *                                                             └─ anything else ─▶ reset
 *
 * One piece is under way at a time. A pipe would fill the queues of both sides first.
 */
import type { Readable, Writable } from 'node:stream'
import { giveBack } from '../../../shared/blobs/lent-chunks.ts'
import type { ConnectionRoom } from './room.ts'

const NOTHING = Buffer.alloc(0)

export class Answer {
  readonly #to: Writable
  readonly #room: ConnectionRoom
  readonly #onOver: (answer: Answer) => void
  #source: Readable | undefined
  /** The bytes that were announced and have not come from the source; undefined where no length was announced. */
  #missingBytes: number | undefined
  /** What the source gave last, and the part of it that is not written yet. */
  #chunk: Buffer = NOTHING
  #rest: Buffer = NOTHING
  #hasAll = false
  /** The size of the piece under way. */
  #heldBytes = 0
  #isOver = false

  /** `onOver` is called once, when nothing of the answer is held any more. */
  constructor(to: Writable, room: ConnectionRoom, onOver: (answer: Answer) => void) {
    this.#to = to
    this.#room = room
    this.#onOver = onOver
    // It comes once; `once` would make two more objects of it.
    to.on('close', () => this.leave())
  }

  /** Sends a body that is in memory. */
  sendBytes(body: Buffer): void {
    this.#rest = body
    this.#hasAll = true
    this.#proceed()
  }

  /** Sends what the source gives, which must be as long as announced where a length was. */
  sendStream(source: Readable, announcedBytes: number | undefined): void {
    this.#source = source
    this.#missingBytes = announcedBytes
    source.on('data', (chunk: Buffer) => this.#take(chunk))
    source.on('end', () => this.#finish())
    source.on('error', (error) => this.#fail(error))
    source.on('close', () => this.#fail(null))
    if (source.readableEnded) this.#finish()
    else if (source.destroyed) this.#fail(source.errored)
    else source.resume()
  }

  /** The visitor or the connection is gone; a pipelined answer of node:http hears of neither. */
  leave(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#release()
    this.#source?.destroy()
    this.#onOver(this)
  }

  /** Resets the answer, of which the visitor takes nothing. */
  giveUp(): void {
    this.#breakOff(new Error('the visitor takes nothing of the answer'))
  }

  /** The piece under way, by something that no other piece of this answer has: what it leaves. Undefined when there is none. */
  get piece(): object | undefined {
    if (this.#heldBytes === 0) return undefined
    return this.#to.writableEnded ? this.#to : this.#rest
  }

  #take(chunk: Buffer): void {
    if (this.#isOver) return
    if (this.#missingBytes !== undefined) {
      this.#missingBytes -= chunk.length
      if (this.#missingBytes < 0) return this.#breakOff(new Error('the answer is too long'))
    }
    this.#source?.pause()
    this.#chunk = chunk
    this.#rest = chunk
    this.#proceed()
  }

  #finish(): void {
    if (this.#missingBytes !== undefined && this.#missingBytes > 0)
      return this.#breakOff(new Error('the answer is too short'))
    this.#hasAll = true
    this.#proceed()
  }

  /** What becomes of a source that has given everything is of no concern. */
  #fail(error: Error | null): void {
    if (!this.#hasAll) this.#breakOff(error ?? new Error('the source of an answer broke off'))
  }

  /** The only place that writes and ends. Whatever happens leads here, and does nothing while a piece is under way. */
  #proceed(): void {
    if (this.#isOver || this.#heldBytes > 0) return
    if (this.#to.destroyed) return this.leave()
    if (this.#rest.length > 0) return this.#writePiece()
    giveBack(this.#chunk)
    this.#chunk = NOTHING
    if (this.#hasAll) this.#to.end()
    else this.#source?.resume()
  }

  #writePiece(): void {
    const bytes = this.#rest
    const length = Math.min(bytes.length, this.#room.pieceBytes)
    this.#heldBytes = length
    this.#room.hold(length)
    // A body in memory whose last piece this is ends in the same write.
    if (length === bytes.length && this.#source === undefined) return void this.#to.end(bytes)
    this.#rest = bytes.subarray(length)
    this.#to.write(length === bytes.length ? bytes : bytes.subarray(0, length), (error) => {
      if (error) return this.#breakOff(error)
      this.#release()
      this.#proceed()
    })
  }

  /** An answer that breaks off must not look whole: it ends with a reset, which needs an error on HTTP/2. */
  #breakOff(error: Error): void {
    if (this.#isOver) return
    this.#to.destroy(error)
    this.leave()
  }

  #release(): void {
    const bytes = this.#heldBytes
    this.#heldBytes = 0
    if (bytes > 0) this.#room.release(bytes)
  }
}
