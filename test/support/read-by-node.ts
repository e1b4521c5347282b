/** What node:http makes of the bytes of a connection. */
import http, { type IncomingMessage } from 'node:http'
import { duplexPair } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'

export interface ReadByNode {
  readonly requests: readonly IncomingMessage[]
  /** Whether the connection goes on after each of them. */
  readonly keepsAlive: readonly boolean[]
  /** Something in there is not HTTP. */
  readonly isBroken: boolean
}

const TURNS = 4

export async function readByNode(bytes: Buffer): Promise<ReadByNode> {
  const requests: IncomingMessage[] = []
  const keepsAlive: boolean[] = []
  let isBroken = false
  const server = http.createServer({ requireHostHeader: false }, (request, response) => {
    requests.push(request)
    keepsAlive.push(response.shouldKeepAlive)
  })
  server.on('clientError', () => (isBroken = true))
  const [visitor, socket] = duplexPair()
  server.emit('connection', socket)
  visitor.write(bytes)
  for (let n = 0; n < TURNS; n++) await turn()
  visitor.destroy()
  socket.destroy()
  return { requests, keepsAlive, isBroken }
}
