/**
 * Keys of TLS session tickets. Derived from SECRET_KEY and the day's third, so that every worker of every edge agrees
 * without talking, and a key is forgotten soon (forward secrecy of resumed sessions).
 */
import { hkdfSync } from 'node:crypto'
import { HOUR_MS, type Clock } from '../../shared/running/clock.ts'
import type { Secrets } from '../../shared/secrets/secrets.ts'

const ROTATION_MS = 8 * HOUR_MS
/** 16 bytes name, 16 bytes HMAC key, 16 bytes AES key: what OpenSSL takes. */
const TICKET_KEY_BYTES = 48

export function ticketKeys(secrets: Secrets, nowMs: number): Buffer {
  const period = Math.floor(nowMs / ROTATION_MS)
  return Buffer.from(hkdfSync('sha256', secrets.key('tls-tickets'), 'tickets', String(period), TICKET_KEY_BYTES))
}

/** Calls back at every change of period. Returns how to stop. */
export function rotateTicketKeys(secrets: Secrets, clock: Clock, use: (keys: Buffer) => void): () => void {
  let timer: NodeJS.Timeout
  const schedule = (): void => {
    timer = setTimeout(
      () => {
        use(ticketKeys(secrets, clock.now()))
        schedule()
      },
      ROTATION_MS - (clock.now() % ROTATION_MS) + 1,
    )
    timer.unref()
  }
  schedule()
  return () => clearTimeout(timer)
}
