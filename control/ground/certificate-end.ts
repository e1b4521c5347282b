/** Until when the certificate is good that a server shows for a name. */
import { isIP } from 'node:net'
import tls from 'node:tls'

export interface TlsPlace {
  readonly host: string
  readonly port: number
  readonly servername: string
  readonly timeoutMs: number
}

/** Makes a handshake, whoever signed the certificate. Rejects when nothing answers TLS there in time. */
export function certificateEnd({ host, port, servername, timeoutMs }: TlsPlace): Promise<Date> {
  const { promise, resolve, reject } = Promise.withResolvers<Date>()
  // RFC 6066 §3: an address is no name to ask for.
  const asked = isIP(servername) === 0 ? { servername } : {}
  const socket = tls.connect({ host, port, ...asked, rejectUnauthorized: false, timeout: timeoutMs })
  socket.on('error', reject)
  socket.on('timeout', () => reject(new Error(`Nothing answers TLS at ${host}:${port} in time.`)))
  socket.on('secureConnect', () => resolve(new Date(socket.getPeerCertificate().valid_to)))
  return promise.finally(() => socket.destroy())
}
