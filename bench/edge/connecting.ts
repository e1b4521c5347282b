/**
 * Visitors who connect, again and again, with the key of today's browsers: anew each time, or with the ticket of the first
 * connection, or with one that is given. Says how many connections there were, and what the server agreed to.
 *
 *   node bench/edge/connecting.ts <port> <host> <seconds> anew|own|<ticket in base64>
 */
import { once } from 'node:events'
import tls from 'node:tls'

const CLIENTS = 4
const HYBRID = 'X25519MLKEM768'
const [, , port = '', servername = '', seconds = '1', how = 'anew'] = process.argv
const options = {
  port: Number(port),
  host: '127.0.0.1',
  servername,
  rejectUnauthorized: false,
  // A server that does not know the first takes the second, and is told apart by what was agreed on.
  ecdhCurve: how === 'anew' ? `${HYBRID}:X25519` : 'X25519',
}

const session = how === 'anew' ? undefined : how === 'own' ? await ticketOf() : Buffer.from(how, 'base64')
let made = 0
let resumed = 0
let hybrid = 0
const endAt = performance.now() + Number(seconds) * 1000
await Promise.all(Array.from({ length: CLIENTS }, visit))
process.stdout.write(`${JSON.stringify({ made, resumed, hybrid })}\n`)

async function ticketOf(): Promise<Buffer> {
  const first = tls.connect(options)
  const [ticket] = (await once(first, 'session')) as [Buffer]
  first.destroy()
  return ticket
}

async function visit(): Promise<void> {
  while (performance.now() < endAt) {
    const socket = tls.connect({ ...options, session })
    await once(socket, 'secureConnect')
    made += 1
    if (socket.isSessionReused()) resumed += 1
    if ((socket.getEphemeralKeyInfo() as { name?: string } | null)?.name === HYBRID) hybrid += 1
    socket.destroy()
  }
}
