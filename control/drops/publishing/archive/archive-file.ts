/** An archive on disk, read synchronously through a window: in its own thread that is the fastest way, and the simplest. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { Readable } from 'node:stream'
import yauzl from 'yauzl'

/** A central directory is read in order, 46 bytes at a time; one system call brings in about 600 entries. */
const WINDOW_BYTES = 65_536
/** After a jump, to a local header, only its neighbourhood is read. */
const JUMP_BYTES = 512

export class ArchiveFile extends yauzl.RandomAccessReader {
  readonly size: number
  readonly #descriptor: number
  readonly #window = Buffer.allocUnsafe(WINDOW_BYTES)
  #windowStart = 0
  #windowLength = 0
  #expectedPosition = 0

  constructor(path: string) {
    super()
    this.#descriptor = openSync(path, 'r')
    this.size = fstatSync(this.#descriptor).size
  }

  /** Fewer bytes when the file ends first. */
  bytes(position: number, length: number): Buffer {
    if (length > WINDOW_BYTES) return this.#readWhole(position, length)
    const isInside = position >= this.#windowStart && position + length <= this.#windowStart + this.#windowLength
    if (!isInside) {
      const ahead = position === this.#expectedPosition ? WINDOW_BYTES : Math.max(length, JUMP_BYTES)
      this.#windowStart = position
      this.#windowLength = readSync(this.#descriptor, this.#window, 0, ahead, position)
    }
    this.#expectedPosition = position + length
    const from = position - this.#windowStart
    return Buffer.from(this.#window.subarray(from, Math.min(from + length, this.#windowLength)))
  }

  #readWhole(position: number, length: number): Buffer {
    const buffer = Buffer.allocUnsafe(length)
    let filled = 0
    while (filled < length) {
      const count = readSync(this.#descriptor, buffer, filled, length - filled, position + filled)
      if (count === 0) break
      filled += count
    }
    return buffer.subarray(0, filled)
  }

  /** yauzl's way of reading. */
  override read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
    callback: (error: Error | null, bytesRead?: number) => void,
  ): void {
    let count: number
    try {
      count = this.bytes(position, length).copy(buffer, offset)
    } catch (error) {
      return callback(error as Error)
    }
    callback(null, count)
  }

  override _readStreamForRange(start: number, end: number): Readable {
    return Readable.from(this.chunks(start, end))
  }

  *chunks(start: number, end: number): Generator<Buffer> {
    for (let at = start; at < end; at += WINDOW_BYTES) yield this.#readWhole(at, Math.min(WINDOW_BYTES, end - at))
  }

  /** The same buffer again and again: `use` must be done with it when it resolves. */
  async eachChunk(start: number, end: number, use: (chunk: Buffer) => Promise<void> | void): Promise<void> {
    const buffer = Buffer.allocUnsafe(WINDOW_BYTES)
    for (let at = start; at < end;) {
      const count = readSync(this.#descriptor, buffer, 0, Math.min(WINDOW_BYTES, end - at), at)
      if (count === 0) break
      await use(buffer.subarray(0, count))
      at += count
    }
  }

  closeFile(): void {
    closeSync(this.#descriptor)
  }
}
