/**
 * A body on its way to control. Sent one byte at a time, each byte becomes a piece: passed on one by one they
 * cost 20 µs each, and a worker stood still for seconds. Here the pieces of a turn go on as one.
 */
import { Readable } from 'node:stream'

/** The visitor is asked to wait when this much waits for control. */
const MAX_PENDING_BYTES = 256_000

export class GatheredBody extends Readable {
  readonly #source: Readable
  #pieces: Buffer[] = []
  #pendingBytes = 0
  #isScheduled = false
  #isHeldUp = false
  /** What the visitor has sent so far. */
  receivedBytes = 0
  isComplete = false

  constructor(source: Readable, onPiece: (bytes: number) => void) {
    super({ highWaterMark: MAX_PENDING_BYTES })
    this.#source = source
    source.on('data', (piece: Buffer) => {
      onPiece(piece.length)
      this.#take(piece)
    })
    source.once('end', () => {
      this.isComplete = true
      this.#passOn()
      this.push(null)
    })
    // Why it broke off is the visitor's affair; who forwards it hears that they are gone.
    source.once('error', () => this.destroy())
  }

  /** More is wanted, and the visitor has not sent it. */
  get isWaiting(): boolean {
    return !this.isComplete && !this.#isHeldUp && this.#pendingBytes === 0
  }

  override _read(): void {
    this.#isHeldUp = false
    this.#source.resume()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#source.pause()
    done(error)
  }

  #take(piece: Buffer): void {
    this.receivedBytes += piece.length
    this.#pieces.push(piece)
    this.#pendingBytes += piece.length
    if (this.#pendingBytes >= MAX_PENDING_BYTES) this.#source.pause()
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#passOn()
    })
  }

  #passOn(): void {
    const first = this.#pieces[0]
    if (first === undefined || this.destroyed) return
    const whole = this.#pieces.length === 1 ? first : Buffer.concat(this.#pieces)
    this.#pieces = []
    this.#pendingBytes = 0
    if (this.push(whole)) this.#source.resume()
    else {
      this.#isHeldUp = true
      this.#source.pause()
    }
  }
}
