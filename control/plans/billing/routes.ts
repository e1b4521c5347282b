import { z } from 'zod'
import type { ApiRouteFactory } from '../../ground/http/api.ts'
import { json } from '../../ground/http/reply.ts'
import type { Route } from '../../ground/http/route.ts'
import type { Billing } from './billing.ts'
import { INTERVALS, SOLD_PLANS } from './rules.ts'

/** Stripe's events are small; more is not Stripe. */
const MAX_EVENT_BYTES = 1_000_000

const tag = 'Billing'
const linkSchema = z.object({ url: z.string() })
const overviewSchema = z.object({
  configured: z.boolean(),
  plan: z.string(),
  currency: z.string(),
  status: z.string().nullable(),
  interval: z.string().nullable(),
  current_period_end: z.iso.datetime().nullable(),
  cancel_at_period_end: z.boolean(),
  past_due_since: z.iso.datetime().nullable(),
  grace_ends_at: z.iso.datetime().nullable(),
})

export function billingRoutes({ apiRoute, billing }: { apiRoute: ApiRouteFactory; billing: Billing }): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: '/api/v1/billing',
      access: 'verified',
      tag,
      summary: 'Plan and subscription',
      status: 200,
      output: overviewSchema,
      run: ({ actor }) => billing.overview(actor),
    }),
    apiRoute({
      method: 'POST',
      path: '/api/v1/billing/checkout',
      access: 'verified',
      tag,
      summary: 'Start a subscription at the payment processor',
      status: 200,
      body: z.strictObject({ plan: z.enum(SOLD_PLANS), interval: z.enum(INTERVALS).default('monthly') }),
      output: linkSchema,
      run: ({ actor, body }) => billing.checkout(actor, body),
    }),
    apiRoute({
      method: 'POST',
      path: '/api/v1/billing/portal',
      access: 'verified',
      tag,
      summary: 'Change plan, card or cancel at the payment processor',
      status: 200,
      output: linkSchema,
      run: ({ actor }) => billing.portal(actor),
    }),
    {
      method: 'POST',
      path: '/stripe/webhook',
      async handle(request) {
        await billing.webhook(await request.bytes(MAX_EVENT_BYTES), request.header('stripe-signature'))
        return json(200, { received: true })
      },
    },
  ]
}
