/** The Stripe client, pointed at Stripe or at whatever STRIPE_API_BASE names, and how to read what it says. */
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import type Stripe from 'stripe'
import { onFirstUse } from '../../../shared/values/on-first-use.ts'
import { errors, type ApiError } from '../../../shared/contracts/errors.ts'

const TIMEOUT_MS = 10_000

/** The package, loaded only where payments are set up: two hundred modules that most instances never use. */
export const stripeLibrary = onFirstUse(() => createRequire(import.meta.url)('stripe') as typeof Stripe)

export function createStripe(secretKey: string, apiBase: string | undefined): Stripe {
  const base = apiBase === undefined ? undefined : new URL(apiBase)
  const Client = stripeLibrary()
  return new Client(secretKey, {
    timeout: TIMEOUT_MS,
    maxNetworkRetries: 2,
    telemetry: false,
    ...(base
      ? {
          host: base.hostname,
          port: base.port || (base.protocol === 'http:' ? 80 : 443),
          protocol: base.protocol === 'http:' ? 'http' : 'https',
        }
      : {}),
  })
}

/**
 * The signature is over the bytes as they came, and over the time, so that an old one cannot be played again. Several
 * secrets are good at once while one takes the place of another.
 */
export function readEvent(
  stripe: Stripe,
  {
    rawBody,
    signature,
    secrets,
    now,
  }: { rawBody: Buffer; signature: string | undefined; secrets: readonly string[]; now: number },
): Stripe.Event {
  for (const secret of secrets) {
    try {
      return stripe.webhooks.constructEvent(rawBody, signature ?? '', secret, undefined, undefined, now)
    } catch {
      // Perhaps it was signed with the next one.
    }
  }
  throw errors.invalidRequest('The signature of this webhook is missing, wrong or too old.')
}

/** The same wish gives the same key, so that a wish repeated after a crash is not granted twice. */
export function idempotencyKey(name: string, parameters: object): string {
  return `${name}:${createHash('sha256').update(JSON.stringify(parameters)).digest('hex').slice(0, 32)}`
}

/** Stripe does not know the object that was asked for or, with `field`, the one that this field of the wish names. */
export function isMissing(error: unknown, field?: string): boolean {
  return (
    isStripeError(error, 'StripeInvalidRequestError') &&
    error.code === 'resource_missing' &&
    (field === undefined || error.param === field)
  )
}

/** What Stripe knows of it; undefined when it does not exist there. */
export async function orMissing<Thing>(asked: Promise<Thing>): Promise<Thing | undefined> {
  try {
    return await asked
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** Nothing is wrong with what was asked; it may be asked again in a moment. */
export function isAway(error: unknown): boolean {
  return isStripeError(error, 'StripeConnectionError', 'StripeAPIError', 'StripeRateLimitError')
}

/** By the name that an error of the client carries: its class is not loaded where payments are not set up. */
export function isStripeError(error: unknown, ...kinds: readonly string[]): error is Stripe.errors.StripeError {
  return error instanceof Error && 'type' in error && kinds.some((kind) => kind === error.type)
}

export function stripeId(reference: string | { id: string }): string
export function stripeId(reference: string | { id: string } | null | undefined): string | undefined
export function stripeId(reference: string | { id: string } | null | undefined): string | undefined {
  return typeof reference === 'string' ? reference : reference?.id
}

export function subscriptionOf(invoice: Stripe.Invoice): string | undefined {
  return stripeId(invoice.parent?.subscription_details?.subscription)
}

export function paymentsNotConfigured(detail: string): ApiError {
  return errors.paymentsNotConfigured(detail)
}

export function paymentsAway(): ApiError {
  return errors.paymentsUnavailable()
}
