/** Speaks HTTP/1.1 byte by byte, for what a well-behaved client would never send. */
import net from 'node:net'
import tls from 'node:tls'
import { once } from 'node:events'

/** A server on a busy machine may take its time; one that has closed the connection is not waited for. */
const PATIENCE_MS = 60_000

/** Sends `text` and collects everything until the server closes or `quietMs` pass without a byte. */
export function exchange(port: number, text: string | Buffer, quietMs = PATIENCE_MS): Promise<string> {
  return converse(port, text, quietMs, () => false)
}

/** The same for a connection that stays open: until the answer `isWhole`. */
export function exchangeUntil(
  port: number,
  text: string | Buffer,
  isWhole: (answer: string) => boolean,
): Promise<string> {
  return converse(port, text, PATIENCE_MS, isWhole)
}

async function converse(
  port: number,
  text: string | Buffer,
  quietMs: number,
  isWhole: (answer: string) => boolean,
): Promise<string> {
  const socket = net.connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(text)
  let answer = ''
  const { promise, resolve } = Promise.withResolvers<void>()
  socket.setTimeout(quietMs, resolve)
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1')
    if (isWhole(answer)) resolve()
  })
  socket.on('close', () => resolve())
  await promise
  socket.destroy()
  return answer
}

export function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0)
}

/**
 * A client that sends its whole request before it reads a byte of the answer, as Python, Java and many others do. Resolves
 * with everything that arrived until the server closed; "broken" when the request could not be sent to its end.
 */
export async function sendFirst(
  { port, ca, host }: { port: number; ca: string; host: string },
  head: string,
  body: Buffer,
): Promise<string> {
  const socket = tls.connect({ port, host: '127.0.0.1', ca, servername: host, ALPNProtocols: ['http/1.1'] })
  let isBroken = false
  socket.on('error', () => (isBroken = true))
  await once(socket, 'secureConnect')
  socket.write(`${head}\r\nhost: ${host}\r\ncontent-length: ${body.length}\r\n\r\n`)
  const { promise: sent, resolve } = Promise.withResolvers<void>()
  socket.once('close', () => resolve())
  socket.write(body, () => resolve())
  await sent
  if (isBroken) return 'broken'
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')))
  if (!socket.closed) await once(socket, 'close')
  return answer
}
