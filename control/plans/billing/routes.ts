import { z } from 'zod'
import type { ApiRouteFactory } from '../../ground/http/api.ts'
import { json } from '../../ground/http/reply.ts'
import { described } from '../../ground/http/operations/described.ts'
import type { Route } from '../../ground/http/route.ts'
import type { Billing } from './billing.ts'
import { INTERVALS, SOLD_PLANS } from './rules.ts'

/** Stripe's events are small; more is not Stripe. */
const MAX_EVENT_BYTES = 1_000_000

const tag = 'Billing'
const linkSchema = z.object({
  url: described(
    z.string(),
    'A page of the payment processor, to open in a browser.',
    'https://checkout.example.com/c/pay',
  ),
})
const overviewSchema = z.object({
  configured: described(z.boolean(), 'Payments are switched on.', true),
  plan: described(z.string(), 'The plan of the organisation.', 'plus'),
  currency: described(z.string(), 'Of its invoices.', 'eur'),
  status: described(z.string().nullable(), 'Of the subscription; null without one.', 'active'),
  interval: described(z.string().nullable(), 'How often it is paid.', 'monthly'),
  current_period_end: described(z.iso.datetime().nullable(), 'Paid until.', '2026-12-15T09:00:00.000Z'),
  cancel_at_period_end: described(z.boolean(), 'It ends then.', false),
  past_due_since: described(z.iso.datetime().nullable(), 'Since when a payment is missing.', null),
  grace_ends_at: described(z.iso.datetime().nullable(), 'Until when the plan stays without it.', null),
})

export function billingRoutes({ apiRoute, billing }: { apiRoute: ApiRouteFactory; billing: Billing }): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: '/api/v1/billing',
      access: 'verified',
      needs: 'read-people',
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
      needs: 'people',
      tag,
      summary: 'Start a subscription at the payment processor',
      status: 200,
      body: z.strictObject({
        plan: described(z.enum(SOLD_PLANS), 'What to buy.', 'plus'),
        interval: described(z.enum(INTERVALS).default('monthly'), 'How often to pay.', 'annual'),
      }),
      output: linkSchema,
      run: ({ actor, body }) => billing.checkout(actor, body),
    }),
    apiRoute({
      method: 'POST',
      path: '/api/v1/billing/portal',
      access: 'verified',
      needs: 'people',
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
