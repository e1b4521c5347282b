/**
 * uWS.HttpResponse over node's ServerResponse: one object for the reply and for the body that arrives.
 * As in uWS it must not be used after it ended or was aborted.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What uWS accepts as text or bytes. */
export type RecognizedString = string | ArrayBuffer | ArrayBufferView

/** How uWS says "length unknown": the body is chunked. */
const UNKNOWN_LENGTH = 0xffffffffffffffffn
/** Bytes of an unwanted body that are read and dropped after the reply, so that the reply is not lost in a reset. */
const LINGER_BYTES = 1_000_000
/** How long a caller that goes on sending keeps the connection after a closing reply. */
const LINGER_MS = 2000
const NOTHING = new ArrayBuffer(0)

export class HttpResponse {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  #status = 200
  #reason: string | undefined
  readonly #headers: string[] = []
  #ended = false
  #offset = 0
  #abortHandler: (() => void) | undefined

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request
    this.#response = response
    // Emitted after a finished reply too; `#ended` tells them apart.
    response.on('close', () => this.#abort())
  }

  #abort(): void {
    if (this.#ended) return
    this.#ended = true
    this.#abortHandler?.()
  }

  #mustBeOpen(): void {
    if (this.#ended) throw new Error('uWS.HttpResponse must not be used after it ended or was aborted.')
  }

  writeStatus(status: RecognizedString): this {
    this.#mustBeOpen()
    const text = toText(status)
    this.#status = Number(text.slice(0, 3))
    this.#reason = text.length > 4 ? text.slice(4) : undefined
    return this
  }

  writeHeader(name: RecognizedString, value: RecognizedString): this {
    this.#mustBeOpen()
    this.#headers.push(toText(name), toText(value))
    return this
  }

  #writeHead(bodyBytes: number | undefined, close = false): void {
    if (this.#response.headersSent) return
    if (bodyBytes !== undefined) this.#headers.push('content-length', String(bodyBytes))
    if (close && !this.#headers.includes('connection')) this.#headers.push('connection', 'close')
    if (this.#reason === undefined) this.#response.writeHead(this.#status, this.#headers)
    else this.#response.writeHead(this.#status, this.#reason, this.#headers)
  }

  beginWrite(): this {
    this.#mustBeOpen()
    this.#writeHead(undefined)
    this.#response.flushHeaders()
    return this
  }

  /** False asks the caller to wait for `onWritable`; the chunk itself is taken in either case. */
  write(chunk: RecognizedString): boolean {
    this.#mustBeOpen()
    this.#writeHead(undefined)
    const bytes = toBytes(chunk)
    this.#offset += bytes.byteLength
    return bytes.byteLength === 0 || this.#response.write(bytes)
  }

  end(body?: RecognizedString, closeConnection = false): this {
    this.#mustBeOpen()
    // A string goes out in one write together with the head.
    const payload = typeof body === 'string' ? body : body === undefined ? '' : toBytes(body)
    this.#writeHead(typeof payload === 'string' ? Buffer.byteLength(payload) : payload.byteLength, closeConnection)
    return this.#finish(payload, closeConnection)
  }

  endWithoutBody(reportedLength?: number, closeConnection = false): this {
    this.#mustBeOpen()
    this.#writeHead(reportedLength, closeConnection)
    return this.#finish('', closeConnection)
  }

  /** Writes a part of a body of known length; `[taken whole, response complete]`. */
  tryEnd(chunk: RecognizedString, totalBytes: number): [boolean, boolean] {
    this.#mustBeOpen()
    this.#writeHead(totalBytes)
    const bytes = toBytes(chunk)
    this.#offset += bytes.byteLength
    if (this.#offset >= totalBytes) {
      this.#finish(bytes, false)
      return [true, true]
    }
    return [bytes.byteLength === 0 || this.#response.write(bytes), false]
  }

  #finish(payload: string | Uint8Array, closeConnection: boolean): this {
    this.#ended = true
    if (closeConnection && !this.#request.complete) linger(this.#request)
    this.#response.end(payload)
    return this
  }

  close(): this {
    this.#abort()
    this.#request.socket.destroy()
    return this
  }

  /** Node joins the head and the first chunk by itself. */
  cork(write: () => void): this {
    this.#mustBeOpen()
    write()
    return this
  }

  getWriteOffset(): number {
    return this.#offset
  }

  onWritable(handler: (offset: number) => boolean): this {
    this.#mustBeOpen()
    this.#response.on('drain', () => {
      if (!this.#ended) handler(this.#offset)
    })
    return this
  }

  onAborted(handler: () => void): this {
    this.#mustBeOpen()
    this.#abortHandler = handler
    return this
  }

  pause(): this {
    this.#mustBeOpen()
    this.#request.pause()
    return this
  }

  resume(): this {
    this.#mustBeOpen()
    this.#request.resume()
    return this
  }

  /** `remaining` is 0n with the last chunk; until then exact for a declared length, UNKNOWN_LENGTH for a chunked body. */
  onDataV2(handler: (chunk: ArrayBuffer, remaining: bigint) => void): this {
    this.#mustBeOpen()
    const declared = this.#request.headers['content-length']
    let remaining = declared === undefined ? UNKNOWN_LENGTH : BigInt(declared)
    this.#request.on('data', (chunk: Buffer) => {
      if (declared !== undefined) remaining -= BigInt(chunk.byteLength)
      if (!this.#ended) handler(toArrayBuffer(chunk), remaining)
    })
    this.#request.on('end', () => {
      if (!this.#ended && remaining !== 0n) handler(NOTHING, 0n)
    })
    return this
  }

  getRemoteAddressAsText(): ArrayBuffer {
    return remoteAddress(this.#request.socket)
  }

  getRemotePort(): number {
    return this.#request.socket.remotePort ?? 0
  }

  /** The PROXY protocol is not spoken here. */
  getProxiedRemoteAddressAsText(): ArrayBuffer {
    return NOTHING
  }

  getProxiedRemotePort(): number {
    return 0
  }
}

const addressOfSocket = new WeakMap<Socket, ArrayBuffer>()

/** Asked for with every request of a connection, so kept with it. */
function remoteAddress(socket: Socket): ArrayBuffer {
  let address = addressOfSocket.get(socket)
  if (!address) addressOfSocket.set(socket, (address = toArrayBuffer(Buffer.from(socket.remoteAddress ?? ''))))
  return address
}

/**
 * A socket that is closed while the peer still sends answers with a reset, and the peer may lose the reply.
 * So the reply ends with a half-close, some of the body is dropped unread, and the socket goes a little later.
 */
function linger(request: IncomingMessage): void {
  const { socket } = request
  socket.destroySoon = () => {
    socket.end()
    const timer = setTimeout(() => socket.destroy(), LINGER_MS)
    request.once('end', () => socket.destroy())
    socket.once('close', () => clearTimeout(timer))
  }
  let dropped = 0
  request.on('data', (chunk: Buffer) => {
    dropped += chunk.byteLength
    if (dropped > LINGER_BYTES) request.pause()
  })
  request.resume()
}

function toText(value: RecognizedString): string {
  return typeof value === 'string' ? value : Buffer.from(toBytes(value)).toString()
}

function toBytes(value: RecognizedString): Uint8Array {
  if (value instanceof Uint8Array) return value
  if (typeof value === 'string') return Buffer.from(value)
  return ArrayBuffer.isView(value)
    ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
    : new Uint8Array(value)
}

/** Most chunks of a body have a buffer of their own. To keep one, copy it: to the caller it is only lent. */
function toArrayBuffer(bytes: Buffer): ArrayBuffer {
  if (bytes.byteLength === bytes.buffer.byteLength) return bytes.buffer as ArrayBuffer
  const copy = new ArrayBuffer(bytes.byteLength)
  new Uint8Array(copy).set(bytes)
  return copy
}
