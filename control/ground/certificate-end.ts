/** The certificate that a server shows for a name: until when it is good, for which names, and who signed it. */
import { isIP } from 'node:net'
import tls from 'node:tls'

export interface TlsPlace {
  readonly host: string
  readonly port: number
  readonly servername: string
  readonly timeoutMs: number
}

export interface ShownCertificate {
  readonly end: Date
  /** DNS names and addresses, as OpenSSL writes them. */
  readonly names: readonly string[]
  readonly issuer: string
}

/** Makes a handshake, whoever signed the certificate. Rejects when nothing answers TLS there in time. */
export function shownCertificate({ host, port, servername, timeoutMs }: TlsPlace): Promise<ShownCertificate> {
  const { promise, resolve, reject } = Promise.withResolvers<ShownCertificate>()
  // RFC 6066 §3: an address is no name to ask for.
  const asked = isIP(servername) === 0 ? { servername } : {}
  const socket = tls.connect({ host, port, ...asked, rejectUnauthorized: false, timeout: timeoutMs })
  socket.on('error', reject)
  socket.on('timeout', () => reject(new Error(`Nothing answers TLS at ${host}:${port} in time.`)))
  socket.on('secureConnect', () => {
    const { valid_to, subjectaltname = '', issuer } = socket.getPeerCertificate()
    const names = subjectaltname.split(', ').map((name) => name.replace(/^(?:DNS|IP Address):/, '').toLowerCase())
    resolve({ end: new Date(valid_to), names, issuer: [issuer?.O, issuer?.CN].flat().filter(Boolean).join(' ') })
  })
  return promise.finally(() => socket.destroy())
}

export async function certificateEnd(place: TlsPlace): Promise<Date> {
  return (await shownCertificate(place)).end
}
