/** Decisions about webhooks: no I/O, no clock. */
import { createHmac } from 'node:crypto'
import { isIP } from 'node:net'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../shared/running/clock.ts'
import { isLoopbackName, isPublicAddress } from '../../../shared/http/ip.ts'

/** Pauses before each further attempt: together a day. */
export const RETRY_PAUSES_MS: readonly number[] = [
  SECOND_MS,
  5 * SECOND_MS,
  30 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  6 * HOUR_MS,
  15 * HOUR_MS,
]

/** A webhook that has failed for so long is switched off. */
const MAX_FAILING_MS = 3 * DAY_MS

export type FailureVerdict = { readonly kind: 'retry'; readonly delayMs: number } | { readonly kind: 'give_up' }

/** `attempts`: how many were made, this one included. */
export function verdictOnFailure(attempts: number): FailureVerdict {
  const delayMs = RETRY_PAUSES_MS[attempts - 1]
  return delayMs === undefined ? { kind: 'give_up' } : { kind: 'retry', delayMs }
}

export function mustSwitchOff(failingSince: number, now: number): boolean {
  return now - failingSince >= MAX_FAILING_MS
}

/** A receiver took it. A redirect is no answer: it is not followed. */
export function isTaken(status: number): boolean {
  return status >= 200 && status < 300
}

/** Who sends, as a product of HTTP (RFC 9110 §10.1.5): letters and digits of the service's name. */
export function userAgentOf(serviceName: string): string {
  const words = serviceName.normalize('NFKD').match(/[A-Za-z0-9]+/g) ?? []
  return `${[...words, 'Webhooks'].join('-')}/1`
}

export const SECRET_PREFIX = 'whsec_'

/** As Standard Webhooks says it: one signature for each secret that is in force. */
export function signaturesOf(
  secrets: readonly string[],
  message: { readonly id: string; readonly timestamp: number; readonly body: string },
): string {
  const text = `${message.id}.${message.timestamp}.${message.body}`
  return secrets
    .map((secret) => Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64'))
    .map((key) => `v1,${createHmac('sha256', key).update(text).digest('base64')}`)
    .join(' ')
}

export const MAX_URL_CHARS = 2000

/** Why an address cannot be a webhook's, whatever it resolves to; undefined when it can. */
export function urlProblem(text: string, allowPrivate: boolean): string | undefined {
  const url = text.length > MAX_URL_CHARS ? null : URL.parse(text)
  if (!url) return 'url: enter an address such as https://example.com/hooks.'
  if (url.protocol !== 'https:') return 'url: the address must begin with https://.'
  if (url.username !== '' || url.password !== '') return 'url: leave out the user name and the password.'
  const host = hookHostOf(url)
  const isOurs = isLoopbackName(host) || (isIP(host) !== 0 && !isPublicAddress(host))
  return isOurs && !allowPrivate ? PRIVATE_ADDRESS : undefined
}

export const PRIVATE_ADDRESS = 'url: this leads to a private or local address, where nothing is sent.'

/** Without the brackets of an IPv6 address. */
export function hookHostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
}
