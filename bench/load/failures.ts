/** Names for what goes wrong between here and an edge. Pure. */

export const NO_ANSWER = 'no answer within 10 s'
export const CLOSED = 'connection closed before the answer'
export const RESET = 'connection reset'
export const TOO_MANY_FILES = 'too many open files on this machine'

const KINDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: RESET,
  EPIPE: RESET,
  ETIMEDOUT: 'connection timed out',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the host',
  EADDRNOTAVAIL: 'no free port on this machine',
  EMFILE: TOO_MANY_FILES,
  ENFILE: TOO_MANY_FILES,
  ENOTFOUND: 'name not found',
  EAI_AGAIN: 'name not found',
}

/** Certificates that nobody vouches for, or that are for another name. */
const UNTRUSTED = /CERT|SELF_SIGNED|UNABLE_TO|ERR_TLS_CERT_ALTNAME_INVALID/

export function kindOf(error: NodeJS.ErrnoException): string {
  const { code = '', message } = error
  if (isUntrusted(error)) return 'certificate not trusted'
  // Cut off in the middle of a handshake.
  if (/before secure TLS connection/.test(message)) return RESET
  if (code === 'EPROTO' || code === 'ERR_SSL_WRONG_VERSION_NUMBER') return 'no TLS is spoken there'
  // The message of OpenSSL begins with the number of a thread, and would be another kind each time.
  if (/^ERR_(SSL|TLS)_/.test(code))
    return `TLS: ${code
      .replace(/^ERR_(SSL|TLS)_/, '')
      .replaceAll('_', ' ')
      .toLowerCase()}`
  if (code === 'ERR_HTTP2_STREAM_ERROR') return `stream reset: ${/NGHTTP2_\w+/.exec(message)?.[0] ?? message}`
  return KINDS[code] ?? (code === '' ? message : code)
}

export function isUntrusted({ code = '' }: NodeJS.ErrnoException): boolean {
  return UNTRUSTED.test(code)
}
