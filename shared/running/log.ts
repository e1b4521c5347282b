import pino from 'pino'

export type Log = pino.Logger

/** One JSON line per event on stdout. Secrets never reach it: callers log ids and hashes, not headers or bodies. */
export function createLog(name: string, level: string): Log {
  return pino({ name, level, base: { name, pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime })
}

export const silentLog: Log = pino({ level: 'silent' })
