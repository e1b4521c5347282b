/**
 * Requests that came before the answers to earlier ones. Ten thousand fit into what is read in one turn: a few are
 * answered per turn, others in between. A visitor who sends more than any browser does is refused.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { stopReading } from '../raw-socket.ts'

/** Browsers send none ahead, programs a handful. */
const MAX_PIPELINED = 256
const PIPELINED_PER_TURN = 16

export type Take = (request: IncomingMessage, response: ServerResponse) => void

export class Pipeline {
  readonly #take: Take
  #waiting: [IncomingMessage, ServerResponse][] = []
  #isClosed = false

  constructor(take: Take) {
    this.#take = take
  }

  push(request: IncomingMessage, response: ServerResponse): void {
    if (this.#isClosed) return
    if (this.#waiting.length === 0) setImmediate(() => this.#proceed())
    response.once('socket', endIfBroken)
    this.#waiting.push([request, response])
    if (this.#waiting.length < MAX_PIPELINED) return
    this.#isClosed = true
    response.shouldKeepAlive = false
    // Node makes an Error of every request that is open when its connection ends: 10,000 of them took seconds.
    stopReading(request.socket as TLSSocket)
  }

  #proceed(): void {
    for (const [request, response] of this.#waiting.splice(0, PIPELINED_PER_TURN)) {
      if (request.socket.destroyed) return void (this.#waiting = [])
      if (this.#isClosed && this.#waiting.length === 0) return refuseNext(response)
      this.#take(request, response)
    }
    if (this.#waiting.length > 0) setImmediate(() => this.#proceed())
  }
}

/**
 * An answer that broke off before its turn came has no connection to reset, and node:http would send what it had written and
 * then nothing more, for ever.
 */
function endIfBroken(this: ServerResponse, socket: Socket): void {
  if (this.destroyed) socket.destroy()
}

function refuseNext(response: ServerResponse): void {
  response.writeHead(429, [
    'content-length',
    '0',
    'cache-control',
    'no-store',
    'retry-after',
    '5',
    'connection',
    'close',
  ])
  response.end()
}
