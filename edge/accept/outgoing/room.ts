/**
 * How much of its answers a connection is handed at once. What is written to a connection is encrypted at once, and the
 * encrypted copy stays in memory until the kernel takes it. A visitor who opens all windows and reads nothing would make
 * the edge keep a copy of everything they asked for. So the worker counts the bytes that its readers have not taken yet:
 *
 *   plenty: a connection is handed half a megabyte; beyond that each answer has one piece under way
 *   scarce: a connection is handed a few pieces; beyond that each answer has one small piece under way
 *
 * Half a megabyte is little even in plenty: a connection's buffer of encrypted bytes grows to what it is handed at once,
 * and stays as large as long as the connection lives. One that has loaded twenty pictures at once would hold all of them.
 *
 * No answer waits for another: each may always write one piece. An answer that its visitor does not take, such as a video
 * that is paused, leaves the others of its connection their way.
 */

/** Answers of one worker that readers have not taken; from here on room is scarce. */
const SCARCE_FROM_BYTES = 16_000_000
/** One connection's room in plenty. */
const ROOM_BYTES = 524_288
/** One connection's room when room is scarce: four pieces. */
const SCARCE_ROOM_BYTES = 32_768
const PIECE_BYTES = 8192
/** With 128 streams, a connection that reads nothing holds 160 kB when room is scarce. */
const SMALL_PIECE_BYTES = 1024

/** The bytes of all connections of a worker that readers have not taken. */
export class WorkerRoom {
  heldBytes = 0
  readonly #scarceFrom: number

  constructor(scarceFrom = SCARCE_FROM_BYTES) {
    this.#scarceFrom = scarceFrom
  }

  get isScarce(): boolean {
    return this.heldBytes >= this.#scarceFrom
  }
}

/** The bytes of one connection, counted in its worker's too. */
export class ConnectionRoom {
  readonly #worker: WorkerRoom
  #heldBytes = 0
  #timesEmptied = 0

  constructor(worker: WorkerRoom) {
    this.#worker = worker
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** How often the reader has caught up: nothing was held any more. */
  get timesEmptied(): number {
    return this.#timesEmptied
  }

  get isScarce(): boolean {
    return this.#worker.isScarce
  }

  /** How many bytes an answer that has nothing under way may write now; never none. */
  get pieceBytes(): number {
    return pieceBytes(this.isScarce, this.#heldBytes)
  }

  hold(bytes: number): void {
    this.#heldBytes += bytes
    this.#worker.heldBytes += bytes
  }

  release(bytes: number): void {
    this.#heldBytes -= bytes
    this.#worker.heldBytes -= bytes
    if (this.#heldBytes === 0) this.#timesEmptied += 1
  }
}

/** How large the next piece of an answer may be on a connection that holds this much already. */
export function pieceBytes(isScarce: boolean, heldBytes: number): number {
  if (!isScarce) return Math.max(PIECE_BYTES, ROOM_BYTES - heldBytes)
  return heldBytes + PIECE_BYTES <= SCARCE_ROOM_BYTES ? PIECE_BYTES : SMALL_PIECE_BYTES
}
