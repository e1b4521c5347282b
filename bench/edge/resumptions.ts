/**
 * A visitor who comes back, again and again: each connection brings the ticket of the first. Says how many there were,
 * and how many the server took the ticket of.
 *
 *   node bench/edge/resumptions.ts <port> <host> <seconds>
 */
import { once } from 'node:events'
import tls from 'node:tls'

const CLIENTS = 4
const [port = 0, host = '', seconds = 1] = process.argv.slice(2).map((text, at) => (at === 1 ? text : Number(text)))
const options = { port: Number(port), host: '127.0.0.1', servername: String(host), rejectUnauthorized: false }

const first = tls.connect(options)
const [session] = (await once(first, 'session')) as [Buffer]
first.destroy()

let made = 0
let resumed = 0
const endAt = performance.now() + Number(seconds) * 1000
await Promise.all(Array.from({ length: CLIENTS }, visit))
process.stdout.write(`${JSON.stringify({ made, resumed })}\n`)

async function visit(): Promise<void> {
  while (performance.now() < endAt) {
    const socket = tls.connect({ ...options, session })
    await once(socket, 'secureConnect')
    made += 1
    if (socket.isSessionReused()) resumed += 1
    socket.destroy()
  }
}
