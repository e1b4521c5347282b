/** HTTP/2 frames by hand (RFC 9113), for saying what no well-behaved client says. */
import { once } from 'node:events'
import tls from 'node:tls'

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  resetStream: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const
export const FLAG = { endStream: 1, ack: 1, endHeaders: 4 } as const

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** A GET without Huffman coding and without the dynamic table: indexed names, literal values. */
export function getHeaders(host: string, path = '/'): Buffer {
  const literal = (index: number, value: string): Buffer =>
    Buffer.concat([Buffer.from([index, value.length]), Buffer.from(value)])
  // Static table: 2 = :method GET, 7 = :scheme https, 1 = :authority, 4 = :path.
  return Buffer.concat([Buffer.from([0x82, 0x87]), literal(0x01, host), literal(0x04, path)])
}

export interface RawH2 {
  readonly socket: tls.TLSSocket
  /** Resolves false when the connection has ended. */
  write(bytes: Buffer): Promise<boolean>
  readonly isClosed: () => boolean
  readonly closed: Promise<void>
}

export async function connectRawH2(options: {
  port: number
  ca: string
  servername: string
  localAddress?: string
}): Promise<RawH2> {
  const socket = tls.connect({ host: '127.0.0.1', ALPNProtocols: ['h2'], ...options })
  let isClosed = false
  const closed = new Promise<void>((resolve) => {
    const end = (): void => {
      isClosed = true
      socket.destroy()
      resolve()
    }
    socket.once('close', end)
    socket.once('end', end)
  })
  socket.on('error', () => {})
  socket.resume()
  await once(socket, 'secureConnect')
  socket.write(Buffer.concat([PREFACE, frame(FRAME.settings, 0, 0)]))
  return {
    socket,
    closed,
    isClosed: () => isClosed,
    async write(bytes) {
      if (isClosed) return false
      if (!socket.write(bytes)) await Promise.race([once(socket, 'drain').catch(() => {}), closed])
      return !isClosed
    },
  }
}
