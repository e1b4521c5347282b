/** Speaks HTTP/1.1 byte by byte, for what a well-behaved client would never send. */
import net from 'node:net'
import { once } from 'node:events'

/** Sends `text` and collects everything until the server closes or `quietMs` pass without a byte. */
export async function exchange(port: number, text: string | Buffer, quietMs = 300): Promise<string> {
  const socket = net.connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(text)
  let answer = ''
  const { promise, resolve } = Promise.withResolvers<void>()
  socket.setTimeout(quietMs, resolve)
  socket.on('data', (chunk) => (answer += chunk.toString('latin1')))
  socket.on('close', () => resolve())
  await promise
  socket.destroy()
  return answer
}

export function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0)
}
