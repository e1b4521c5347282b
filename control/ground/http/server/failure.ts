/** Turns whatever a handler threw into an answer. */
import { ApiError, errors } from '../../../../shared/contracts/errors.ts'
import { newId } from '../../../../shared/contracts/ids.ts'
import type { Log } from '../../../../shared/running/log.ts'

/** Codes of node sockets, of `postgres`, of the blob store and messages of `ioredis` that mean: the engine is away, not the request wrong. */
const UNREACHABLE_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
  'STORE_AWAY',
  // Postgres: starting up, shutting down, terminated, out of connections.
  '57P01',
  '57P02',
  '57P03',
  '53300',
])
const UNREACHABLE_MESSAGES =
  /^(?:Connection is closed\.|Command timed out|Stream isn't writeable|Reached the max retries per request)/

const DISK_FULL = 'The disk of the service has no space left right now. Nothing was changed. Try again in a moment.'

/** Postgres or the disk answers, and nothing can be changed: codes and what callers hear. */
const UNWRITABLE: ReadonlyMap<string, string> = new Map([
  [
    '25006',
    'The database only reads right now, as it does while another one takes over. Nothing was changed. Try again in a moment.',
  ],
  ['53100', 'The database has no space left right now. Nothing was changed. Try again in a moment.'],
  ['ENOSPC', DISK_FULL],
  ['EDQUOT', DISK_FULL],
  ['EROFS', 'The disk of the service only reads right now. Nothing was changed. Try again in a moment.'],
])

/** Postgres stores any text but one with U+0000, as a value or inside JSON. No person types it, and nothing needs it. */
const UNSTORABLE_CODES: ReadonlySet<string> = new Set(['22021', '22P05'])

export function isUnreachable(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isUnreachable)
  if (!(error instanceof Error)) return false
  const { code } = error as NodeJS.ErrnoException
  return (
    (code !== undefined && UNREACHABLE_CODES.has(code)) ||
    // The engine's unix socket is not there: it is not up.
    (code === 'ENOENT' && (error as NodeJS.ErrnoException).syscall === 'connect') ||
    UNREACHABLE_MESSAGES.test(error.message)
  )
}

/** Logs what is our fault, once; a caller's mistake is not an event. */
export function toApiError(error: unknown, log: Log, about: { method: string; path: string; now: number }): ApiError {
  if (error instanceof ApiError) return error
  const { now, ...request } = about
  if (UNSTORABLE_CODES.has((error as { code?: string } | null)?.code ?? ''))
    return errors.invalidRequest('The request holds the character U+0000, which no text may contain. Leave it out.')
  if (isUnreachable(error)) {
    log.error({ err: error, ...request }, 'an engine is unreachable')
    return errors.unavailable('A part of the service is not reachable right now. Try again in a moment.')
  }
  const unwritable = UNWRITABLE.get((error as { code?: string } | null)?.code ?? '')
  if (unwritable !== undefined) {
    log.error({ err: error, ...request }, 'nothing can be written')
    return errors.unavailable(unwritable)
  }
  const id = newId('err', now)
  log.error({ err: error, id, ...request }, 'request failed')
  return errors.internal(id)
}
