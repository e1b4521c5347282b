/** A server of so many certificates, in a process of its own: `node bench/edge/handshake-server.ts <folder> <count>`. */
import type { AddressInfo } from 'node:net'
import tls from 'node:tls'
import { createCertificateIndex } from '../../certs/certificates.ts'
import { openLocalCa } from '../../certs/local/local-ca.ts'
import { systemClock } from '../../shared/running/clock.ts'

export function nameOf(index: number): string {
  return `customer-${index}.example.test`
}

function serve(folder: string, count: number): void {
  const ca = openLocalCa(folder, systemClock)
  const bundles = new Map(Array.from({ length: count }, (_, n) => [nameOf(n), ca.issue([nameOf(n)])] as const))
  // As an edge does it: bundles come from its replica, contexts are built when a name is asked for.
  const index = createCertificateIndex({ fallback: ca.issue(['localhost']), lookup: (name) => bundles.get(name) })
  const server = tls.createServer({
    ...ca.issue(['localhost']),
    SNICallback: (name, done) => done(null, index.contextFor(name)),
  })
  server.on('secureConnection', (socket) => socket.on('error', () => {}))
  server.listen(0, '127.0.0.1', () => process.send!({ port: (server.address() as AddressInfo).port }))
}

const [, program, folder, count] = process.argv
if (program === import.meta.filename && folder !== undefined) serve(folder, Number(count))
