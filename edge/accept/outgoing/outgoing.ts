/**
 * Answers on their way out. What is written to a connection is encrypted at once, and the encrypted copy stays in
 * memory until the kernel takes it. A visitor who opens all windows and reads nothing would make the edge keep a copy
 * of everything they asked for; so the worker counts the bytes that its readers have not taken yet:
 *
 *   plenty: a body leaves whole, in one write, when its connection has room for it
 *   scarce: it leaves in pieces, and a connection has few of them under way at a time; less patience
 *
 * A connection has little room even in plenty: its buffer of encrypted bytes grows to what it is handed at once, and stays
 * as large as long as it lives. One that has loaded twenty pictures at once and is idle would hold all of them. What finds
 * no room waits for its turn. Where the kernel has taken everything, what takes the room are answers whose windows are
 * closed, such as a video that its visitor has paused: the others go out beside them, in pieces.
 *
 * A connection whose visitor hardly takes anything of an answer is given up, however the visitor keeps it: closed
 * windows, a full buffer, a byte now and then. What counts is what the visitor's side has acknowledged: a slow line that
 * goes on is served to the end. A few who pause cost little and have two minutes; many who do so at once have seconds.
 */
import type { Readable, Writable } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { giveBack } from '../../../shared/blobs/lent-chunks.ts'
import { inTurns } from '../in-turns.ts'
import { rawSocketOf } from '../raw-socket.ts'
import { createSendQueues, type Queues, type SendQueues } from './send-queues.ts'
import { STALLED_CHECK_MS } from '../timeouts.ts'

const SCARCE_FROM_BYTES = 16_000_000
/** Of one connection, while there is plenty. */
const ROOM_BYTES = 524_288
/** What is no larger waits until it fits whole: to divide it costs more. */
const MAX_WAITED_FOR_BYTES = ROOM_BYTES / 2
const PIECE_BYTES = 8192
/** Of one connection when room is scarce. A paused video takes one; the pages beside it still go out. */
const MAX_PIECES = 4

/** Of the event loop. By then the kernel has been offered what is under way, and an answer that it has taken whole is over. */
const QUIET_TURNS = 3
/** Where the kernel has yet to take something, it is looked at again and again. */
const LOOK_AGAIN_MS = 200

/** Each connection is checked every STALLED_CHECK_MS, a few of them at a time. */
const CHECK_GROUPS = 20
/** In a row. A program that reads 20 kB/s makes room in its kernel's buffer every twenty seconds only. */
const MAX_STALLED_CHECKS = 24
/** When room is scarce, or many stand still at once. */
const MAX_STALLED_CHECKS_IN_NEED = 1
/** More than this many of a worker's connections that stand still at once are no coincidence, nor are the last of them. */
const CROWD = 32
const CROWD_CHECKS = 6
/** Per check. The slowest line in use carries ten times as much. */
const MIN_TAKEN_BYTES = 4096
/** When room is scarce, what a connection holds must be gone after this many checks at the pace that it shows. */
const CHECKS_TO_TAKE_ALL = 24

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
   * breaks off must not look whole: it ends with a reset. So does one that is not as long as announced: on HTTP/1.1 what
   * is too much would be read as the next answer, and of what is too little the next answer would be a part.
   */
  pump(source: Readable, to: Writable, length: number): void
  /** The same for an answer of another server, which has announced its length itself or has none. */
  relay(source: Readable, to: Writable): void
  /** A body of this length may be written whole. */
  hasRoomFor(bytes: number): boolean
  /** Counts bytes that are written elsewhere, until they are released. */
  hold(bytes: number): void
  release(bytes: number): void
}

export function createOutgoing({
  scarceFrom = SCARCE_FROM_BYTES,
  checkMs = STALLED_CHECK_MS,
  sendQueues = createSendQueues(),
} = {}): Outgoing {
  const total: Total = { bytes: 0, stalledLanes: 0, crowdedFor: 0, scarceFrom }
  let next = new Set<CountedLane>()
  const later = Array.from({ length: CHECK_GROUPS - 1 }, () => new Set<CountedLane>())
  const checks = setInterval(() => {
    total.crowdedFor = total.stalledLanes > CROWD ? CROWD_CHECKS * CHECK_GROUPS : Math.max(0, total.crowdedFor - 1)
    void check([...next].filter((lane) => lane.mustBeJudged()))
    later.push(next)
    next = later.shift() ?? next
  }, checkMs / CHECK_GROUPS)
  checks.unref()

  const judge = inTurns(({ lane, queues }: { lane: CountedLane; queues: Queues | undefined }) => lane.judge(queues))

  async function check(quiet: readonly CountedLane[]): Promise<void> {
    if (quiet.length === 0) return
    const queues = await sendQueues.read()
    for (const lane of quiet) judge({ lane, queues })
  }

  return {
    lane(socket) {
      const lane = new CountedLane(total, kernelCounts(socket, sendQueues))
      const group = next
      group.add(lane)
      rawSocketOf(socket).once('close', () => {
        group.delete(lane)
        lane.leave()
      })
      return lane
    },
    heldBytes: () => total.bytes,
  }
}

/** One connection as the kernel sees it. */
interface KernelCounts {
  /** What it has taken so far. */
  takenBytes(): number
  /** What it has not. */
  queuedBytes(): number
  /** What the visitor's side has acknowledged of it; undefined where that is not known. */
  acknowledgedBytes(queues: Queues): number | undefined
}

function kernelCounts(socket: TLSSocket, sendQueues: SendQueues): KernelCounts {
  const raw = rawSocketOf(socket) as unknown as {
    readonly _handle: { readonly bytesWritten: number; readonly writeQueueSize: number; readonly fd: number } | null
  }
  const takenBytes = (): number => (raw._handle === null ? 0 : raw._handle.bytesWritten - raw._handle.writeQueueSize)
  let inode: string | undefined
  return {
    takenBytes,
    queuedBytes: () => raw._handle?.writeQueueSize ?? 0,
    acknowledgedBytes(queues) {
      if (raw._handle === null) return undefined
      inode ??= sendQueues.inodeOf(raw._handle.fd)
      return inode === undefined ? undefined : takenBytes() - (queues.get(inode) ?? 0)
    },
  }
}

/** Of all connections of the worker. */
interface Total {
  bytes: number
  stalledLanes: number
  /** Looks at a group until many who stand still are forgotten. */
  crowdedFor: number
  readonly scarceFrom: number
}

interface Waiting {
  readonly bytes: number
  write(): void
}

class CountedLane implements Lane {
  readonly #total: Total
  readonly #kernel: KernelCounts
  #bytes = 0
  #pieces = 0
  #waiting: Waiting[] = []
  #isLooking = false
  #lookingAgain: NodeJS.Timeout | undefined
  /** Since something has left or begun to wait. */
  #quietTurns = 0
  #giveUp = (): void => {}
  /** Since the last check there was a moment without an answer under way. */
  #wasFree = true
  #isQuiet = false
  #takenAtCheck = 0
  #acknowledgedAtCheck: number | undefined
  #stalledChecks = 0
  #hasLeft = false

  constructor(total: Total, kernel: KernelCounts) {
    this.#total = total
    this.#kernel = kernel
  }

  whenStalled(giveUp: () => void): void {
    this.#giveUp = giveUp
  }

  /** True when the kernel must be asked what is acknowledged: it took hardly anything since the last check. */
  mustBeJudged(): boolean {
    if (this.#bytes === 0) {
      this.#goesOn()
      return false
    }
    const taken = this.#kernel.takenBytes()
    this.#isQuiet = !this.#wasFree && taken - this.#takenAtCheck < this.#expectedBytes
    this.#wasFree = false
    this.#takenAtCheck = taken
    this.#proceed()
    if (this.#isQuiet) return true
    this.#goesOn()
    this.#acknowledgedAtCheck = undefined
    // In need every connection is looked at, so that the next look has something to compare with.
    return this.#isNeed
  }

  judge(queues: Queues | undefined): void {
    // The question took a moment.
    if (this.#bytes === 0 || this.#hasLeft) return
    const acknowledged = queues && this.#kernel.acknowledgedBytes(queues)
    const before = this.#acknowledgedAtCheck
    this.#acknowledgedAtCheck = acknowledged
    if (!this.#isQuiet) return
    const isKnown = acknowledged !== undefined && before !== undefined
    if (isKnown && acknowledged - before >= this.#expectedBytes) return this.#goesOn()
    if (this.#stalledChecks++ === 0) this.#total.stalledLanes += 1
    if (this.#stalledChecks >= this.#patience(isKnown)) this.#giveUp()
  }

  leave(): void {
    this.#goesOn()
    this.#hasLeft = true
    clearTimeout(this.#lookingAgain)
  }

  #goesOn(): void {
    if (this.#stalledChecks > 0) this.#total.stalledLanes -= 1
    this.#stalledChecks = 0
  }

  get #expectedBytes(): number {
    return this.#isScarce ? Math.max(MIN_TAKEN_BYTES, this.#bytes / CHECKS_TO_TAKE_ALL) : MIN_TAKEN_BYTES
  }

  #patience(isKnown: boolean): number {
    return isKnown && this.#isNeed ? MAX_STALLED_CHECKS_IN_NEED : MAX_STALLED_CHECKS
  }

  end(to: Writable, body: Buffer): void {
    if (this.hasRoomFor(body.length)) this.#endWhole(to, body)
    else this.#inTurn(body.length, () => this.#endInTurn(to, body))
  }

  #endWhole(to: Writable, body: Buffer): void {
    const { length } = body
    this.hold(length)
    // It comes once; `once` would make two more objects of it.
    to.on('close', () => this.release(length))
    to.end(body)
  }

  #endInTurn(to: Writable, bytes: Buffer, begun?: CountedAnswer): void {
    if (to.destroyed) return
    if (this.#fits(bytes.length)) return this.#endWhole(to, bytes)
    const answer = begun ?? new CountedAnswer(to, this)
    const [piece, rest] = this.#divide(bytes)
    answer.write(piece, () => {
      if (rest.length === 0) to.end()
      else this.#inTurn(rest.length, () => this.#endInTurn(to, rest, answer))
    })
  }

  pump(source: Readable, to: Writable, length: number): void {
    let left = length
    source.on('end', () => (left === 0 ? to.end() : to.destroy(new Error('the answer is too short'))))
    this.#carry(source, to, (bytes) => {
      left -= bytes
      if (left < 0) to.destroy(new Error('the answer is too long'))
    })
  }

  relay(source: Readable, to: Writable): void {
    source.on('end', () => to.end())
    this.#carry(source, to, () => {})
  }

  #carry(source: Readable, to: Writable, onChunk: (bytes: number) => void): void {
    const answer = new CountedAnswer(to, this)
    to.once('close', () => source.destroy())
    source.on('error', (error) => to.destroy(error))
    source.on('data', (chunk: Buffer) => {
      onChunk(chunk.length)
      if (to.destroyed) return
      source.pause()
      this.#send(answer, chunk, () => {
        giveBack(chunk)
        source.resume()
      })
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
    this.#proceed()
  }

  beginPiece(bytes: number): void {
    this.#pieces += 1
    this.hold(bytes)
  }

  endPiece(bytes: number): void {
    this.#pieces -= 1
    this.release(bytes)
  }

  #proceed(): void {
    for (let [next] = this.#waiting; next && this.#mayWrite(next.bytes); [next] = this.#waiting) {
      this.#waiting.shift()
      next.write()
    }
    if (this.#waiting.length > 0) this.#lookSoon()
  }

  get #isNeed(): boolean {
    return this.#isScarce || this.#total.crowdedFor > 0
  }

  get #isScarce(): boolean {
    return this.#total.bytes >= this.#total.scarceFrom
  }

  hasRoomFor(bytes: number): boolean {
    return this.#fits(bytes) && (this.#waiting.length === 0 || bytes <= PIECE_BYTES)
  }

  #fits(bytes: number): boolean {
    return !this.#isScarce && bytes <= this.#largestPiece
  }

  get #largestPiece(): number {
    return this.#isScarce ? PIECE_BYTES : Math.max(PIECE_BYTES, ROOM_BYTES - this.#bytes)
  }

  #mayWrite(bytes: number): boolean {
    if (this.#isScarce) return this.#pieces < MAX_PIECES
    return Math.min(bytes, MAX_WAITED_FOR_BYTES) <= ROOM_BYTES - this.#bytes
  }

  #inTurn(bytes: number, write: () => void): void {
    if (this.#waiting.length === 0 && this.#mayWrite(bytes)) return write()
    this.#waiting.push({ bytes, write })
    this.#lookSoon()
  }

  #lookSoon(): void {
    this.#quietTurns = 0
    if (this.#isLooking || this.#isScarce) return
    clearTimeout(this.#lookingAgain)
    this.#isLooking = true
    this.#look()
  }

  #look(): void {
    setImmediate(() => {
      this.#quietTurns += 1
      if (this.#waiting.length > 0 && this.#quietTurns < QUIET_TURNS) return this.#look()
      this.#isLooking = false
      this.#letPass()
    })
  }

  /**
   * Those that wait for answers whose windows are closed. What the kernel has yet to take may make room when it is taken; it
   * may also be the beginning of such an answer, which leaves without an end.
   */
  #letPass(): void {
    if (this.#waiting.length === 0 || this.#isScarce || this.#hasLeft) return
    if (this.#kernel.queuedBytes() > 0) {
      this.#lookingAgain = setTimeout(() => this.#letPass(), LOOK_AGAIN_MS).unref()
      return
    }
    const passing = this.#waiting
    this.#waiting = []
    for (const { write } of passing) write()
  }

  #send(answer: CountedAnswer, bytes: Buffer, then: () => void): void {
    this.#inTurn(bytes.length, () => {
      const [piece, rest] = this.#divide(bytes)
      answer.write(piece, rest.length > 0 ? () => this.#send(answer, rest, then) : then)
    })
  }

  #divide(bytes: Buffer): [piece: Buffer, rest: Buffer] {
    const length = this.#largestPiece
    return [bytes.subarray(0, length), bytes.subarray(length)]
  }
}

/** One piece of an answer at a time; it is given back when it has left, and at the latest when the answer is over. */
class CountedAnswer {
  readonly #to: Writable
  readonly #lane: CountedLane
  #piece: number | undefined

  constructor(to: Writable, lane: CountedLane) {
    this.#to = to
    this.#lane = lane
    to.once('close', () => this.#done())
  }

  write(piece: Buffer, then: () => void): void {
    if (this.#to.destroyed) return
    this.#piece = piece.length
    this.#lane.beginPiece(piece.length)
    this.#to.write(piece, (error) => {
      this.#done()
      if (!error) then()
    })
  }

  #done(): void {
    if (this.#piece === undefined) return
    const bytes = this.#piece
    this.#piece = undefined
    this.#lane.endPiece(bytes)
  }
}
