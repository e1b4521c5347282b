/** Until when the certificate is good that a server shows for a name. */
import tls from 'node:tls'

export interface TlsPlace {
  readonly host: string
  readonly port: number
  readonly servername: string
  readonly timeoutMs: number
}

/** Makes a handshake, whoever signed the certificate. Rejects when nothing answers TLS there in time. */
export function certificateEnd({ timeoutMs, ...place }: TlsPlace): Promise<Date> {
  const { promise, resolve, reject } = Promise.withResolvers<Date>()
  const socket = tls.connect({ ...place, rejectUnauthorized: false, timeout: timeoutMs })
  socket.on('error', reject)
  socket.on('timeout', () => reject(new Error(`Nothing answers TLS at ${place.host}:${place.port} in time.`)))
  socket.on('secureConnect', () => resolve(new Date(socket.getPeerCertificate().valid_to)))
  return promise.finally(() => socket.destroy())
}
