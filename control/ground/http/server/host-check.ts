/**
 * Is a request meant for this service? A page of a stranger can let its own name point to our address (DNS rebinding):
 * its requests arrive here, from a browser that may reach us, under a name that is not ours.
 */
import { isIP } from 'node:net'
import { isLoopback } from '../../../../shared/http/ip.ts'
import { parseAuthority } from '../../../../shared/http/hosts.ts'

/** Paths that answer under every name: edges and monitors know a control by its address. They tell nothing about anyone. */
const ANY_NAME: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics'])

export function isOurHost(
  request: { readonly path: string; readonly headers: Readonly<Record<string, string | undefined>> },
  serviceHost: string | undefined,
): boolean {
  if (serviceHost === undefined || ANY_NAME.has(request.path)) return true
  const authority = request.headers['host']
  return parseAuthority(authority) === serviceHost || isLoopbackLiteral(authority)
}

/** `127.0.0.1[:port]`, `[::1][:port]`: an address cannot be registered as a name. */
function isLoopbackLiteral(authority: string | undefined): boolean {
  const address = /^(?:\[([0-9a-f:.]{2,45})\]|([0-9.]{7,15}))(?::\d{1,5})?$/i.exec(authority ?? '')
  const literal = address?.[1] ?? address?.[2] ?? ''
  return isIP(literal) !== 0 && isLoopback(literal)
}
