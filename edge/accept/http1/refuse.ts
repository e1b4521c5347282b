/** Ends a connection on which something came that no page can answer. */
import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ApiError } from '../../../shared/contracts/errors.ts'
import { closeInStages, isEnding, throwAway } from './close-in-stages.ts'

/** As node:http keeps it: the answer whose turn it is, of several that were asked for at once. */
interface Answering {
  readonly _httpMessage?: ServerResponse | null
}

/** Connections that end once what was asked before is answered. */
const waiting = new WeakSet<object>()

export function refuse(socket: Duplex, status: string, headers = '', body = ''): void {
  if (!socket.writable) return void socket.destroy()
  const length = `content-length: ${Buffer.byteLength(body)}\r\n`
  closeInStages(
    socket,
    `HTTP/1.1 ${status}\r\n${headers}${length}cache-control: no-store\r\nconnection: close\r\n\r\n${body}`,
  )
}

/** For programs that call the API, which read what is wrong from a body. */
function refuseAsJson(socket: Duplex, status: string, error: ApiError): void {
  refuse(
    socket,
    status,
    'content-type: application/json\r\n',
    JSON.stringify({ error: error.code, detail: error.message }),
  )
}

/**
 * Refuses what came last. Requests that came whole before it are answered first: a refusal in between would be read as an
 * answer to one of them, or as part of its body. Nothing follows the head of an answer to the broken request itself.
 */
export function refuseInTurn(socket: Duplex, status: string, error?: ApiError): void {
  if (isEnding(socket) || waiting.has(socket)) return
  if (answerBefore(socket) !== undefined) {
    waiting.add(socket)
    throwAway(socket)
  }
  refuseAfterAnswers(socket, status, error)
}

function refuseAfterAnswers(socket: Duplex, status: string, error: ApiError | undefined): void {
  // The answer before was the last one of its connection.
  if (socket.writableEnded || socket.destroyed) return
  const before = answerBefore(socket)
  if (before !== undefined) return void before.once('finish', () => refuseAfterAnswers(socket, status, error))
  if ((socket as Answering)._httpMessage?.headersSent) socket.destroy()
  else if (error) refuseAsJson(socket, status, error)
  else refuse(socket, status)
}

/** An answer to a request that came whole, and is not out yet. */
function answerBefore(socket: Duplex): ServerResponse | undefined {
  const { _httpMessage: answer } = socket as Answering
  return answer?.req.complete ? answer : undefined
}
