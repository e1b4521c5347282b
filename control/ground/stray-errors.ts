/**
 * What escaped every try of one request must not end the requests of everyone else: it is logged with the request it
 * belongs to, and the process goes on. Each change is a transaction, so none is left half made.
 */
import type { Log } from '../../shared/running/log.ts'
import { currentRequest } from './http/server/current-request.ts'

export function surviveStrayErrors(log: Log): void {
  process.on('unhandledRejection', (error) => {
    log.error({ err: error, request: currentRequest() }, 'an unhandled rejection')
  })
  process.on('uncaughtException', (error) => {
    log.error({ err: error, request: currentRequest() }, 'an uncaught exception')
  })
}
