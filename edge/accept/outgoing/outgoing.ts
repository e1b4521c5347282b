/**
 * Answers on their way out, at the pace of those who read them.
 *
 *   room.ts      how much a connection is handed at once
 *   answer.ts    one answer: its body and nothing else, piece by piece
 *   stalled.ts   readers who stand still, and when they are given up
 */
import type { Readable, Writable } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { rawSocketOf } from '../raw-socket.ts'
import { Answer } from './answer.ts'
import { kernelCounts } from './kernel-counts.ts'
import { ConnectionRoom, WorkerRoom } from './room.ts'
import { createSendQueues, type SendQueues } from './send-queues.ts'
import { createStalledReaders, type Stall } from './stalled.ts'

export interface Outgoing {
  lane(socket: TLSSocket): Lane
  /** Bytes of answers that their readers have not taken yet. */
  heldBytes(): number
}

/** The answers of one connection. */
export interface Lane {
  /** What to do when the visitor takes nothing: at each check again. */
  whenStalled(giveUp: (stall: Stall) => void): void
  /** Resets the answers of which nothing has left since this was called last. */
  resetStanding(): void
  /** Sends all of the body and the end. */
  end(to: Writable, body: Buffer): void
  /**
   * Sends what the source gives, and the end after it. An answer that breaks off, or is not as long as announced, ends with
   * a reset. `announcedBytes` is undefined where the head names no length.
   */
  pump(source: Readable, to: Writable, announcedBytes: number | undefined): void
  /** A body of this length may be written whole. */
  hasRoomFor(bytes: number): boolean
  /** Counts bytes that are written elsewhere, until they are released. */
  hold(bytes: number): void
  release(bytes: number): void
}

export interface OutgoingOptions {
  /** The worker's held bytes from which on room is scarce. */
  readonly scarceFrom?: number
  readonly checkMs?: number
  readonly sendQueues?: SendQueues
}

export function createOutgoing({
  scarceFrom,
  checkMs,
  sendQueues = createSendQueues(),
}: OutgoingOptions = {}): Outgoing {
  const worker = new WorkerRoom(scarceFrom)
  const readers = createStalledReaders(sendQueues, checkMs)
  return {
    lane(socket) {
      const room = new ConnectionRoom(worker)
      const lane = new ConnectionLane(room)
      const stopWatching = readers.watch(room, kernelCounts(socket, sendQueues), (stall) => lane.giveUp(stall))
      rawSocketOf(socket).once('close', () => {
        stopWatching()
        lane.leave()
      })
      return lane
    },
    heldBytes: () => worker.heldBytes,
  }
}

const NO_PIECES: ReadonlyMap<Answer, object | undefined> = new Map()

class ConnectionLane implements Lane {
  readonly #room: ConnectionRoom
  readonly #answers = new Set<Answer>()
  readonly #onOver = (answer: Answer): void => void this.#answers.delete(answer)
  /** The answers that had a piece under way when they were looked at last. */
  #lookedAt = NO_PIECES
  giveUp: (stall: Stall) => void = () => {}

  constructor(room: ConnectionRoom) {
    this.#room = room
  }

  whenStalled(giveUp: (stall: Stall) => void): void {
    this.giveUp = giveUp
  }

  resetStanding(): void {
    const before = this.#lookedAt
    const pieces = new Map([...this.#answers].map((answer) => [answer, answer.piece]))
    this.#lookedAt = pieces
    for (const [answer, piece] of pieces) if (piece !== undefined && before.get(answer) === piece) answer.giveUp()
  }

  end(to: Writable, body: Buffer): void {
    this.#begin(to).sendBytes(body)
  }

  pump(source: Readable, to: Writable, announcedBytes: number | undefined): void {
    this.#begin(to).sendStream(source, announcedBytes)
  }

  #begin(to: Writable): Answer {
    const answer = new Answer(to, this.#room, this.#onOver)
    this.#answers.add(answer)
    return answer
  }

  hasRoomFor(bytes: number): boolean {
    return bytes <= this.#room.pieceBytes
  }

  hold(bytes: number): void {
    this.#room.hold(bytes)
  }

  release(bytes: number): void {
    this.#room.release(bytes)
  }

  /** The connection is gone, and with it all that was under way. */
  leave(): void {
    for (const answer of this.#answers) answer.leave()
  }
}
