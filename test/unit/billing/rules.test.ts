import { describe, expect, test } from 'vitest'
import {
  boughtWith,
  effectivePlan,
  formatAmount,
  hasEnded,
  isEntitled,
  isLive,
  lookupKeyOf,
  nextCheck,
  productOf,
} from '../../../control/plans/billing/rules.ts'

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const NOW = Date.parse('2026-03-01T12:00:00Z')
const at = (offsetMs: number) => new Date(NOW + offsetMs)

describe('which plan a price is for', () => {
  test.each([
    ['dropway_plus_monthly_eur', 'any', 'month', { plan: 'plus', interval: 'monthly' }],
    ['dropway_business_annual_usd', 'any', 'year', { plan: 'business', interval: 'annual' }],
    ['starter_monthly_usd', 'any', 'month', { plan: 'starter', interval: 'monthly' }],
    ['dropway_pro_annual_gbp', 'any', 'year', { plan: 'pro', interval: 'annual' }],
    [null, 'dropway_plus', 'year', { plan: 'plus', interval: 'annual' }],
    [null, 'dropway_starter', 'month', { plan: 'starter', interval: 'monthly' }],
    ['mugs', 'dropway_business', 'month', { plan: 'business', interval: 'monthly' }],
    [null, 'prod_mugs', 'month', undefined],
    ['dropway_free_monthly_usd', 'prod', 'month', undefined],
    ['plus_monthly_usd_x', 'prod', 'month', undefined],
    ['x_plus_monthly_usd', 'prod', 'month', undefined],
    [null, 'x_dropway_plus', 'month', undefined],
    [null, 'dropway_plus_old', 'month', undefined],
  ])('%s of %s each %s', (lookup_key, product, interval, bought) => {
    expect(boughtWith({ lookup_key, product, interval })).toEqual(bought)
  })

  test('what is sold is found by the name it is sold under', () => {
    expect(boughtWith({ lookup_key: lookupKeyOf('plus', 'annual', 'gbp'), product: '', interval: undefined })).toEqual({
      plan: 'plus',
      interval: 'annual',
    })
    expect(boughtWith({ lookup_key: null, product: productOf('business'), interval: 'year' })).toEqual({
      plan: 'business',
      interval: 'annual',
    })
  })
})

describe('statuses', () => {
  test.each([
    ['active', true, true, false],
    ['trialing', true, true, false],
    ['past_due', true, true, false],
    ['unpaid', false, true, false],
    ['paused', false, true, false],
    ['incomplete', false, false, false],
    ['incomplete_expired', false, false, true],
    ['canceled', false, false, true],
    ['something_new', false, false, false],
  ])('%s: in force %s, live %s, over %s', (status, entitled, live, ended) => {
    expect(isEntitled({ status, past_due_since: at(-DAY_MS) }, NOW)).toBe(entitled)
    expect(isLive(status)).toBe(live)
    expect(hasEnded(status)).toBe(ended)
  })

  test.each([
    [null, true],
    [0, true],
    [-7 * DAY_MS + 1, true],
    [-7 * DAY_MS, false],
  ])('a payment missing since %s leaves the plan in force: %s', (offset, entitled) => {
    expect(isEntitled({ status: 'past_due', past_due_since: offset === null ? null : at(offset) }, NOW)).toBe(entitled)
  })
})

describe('the plan that subscriptions pay for', () => {
  const of = (plan: 'plus' | 'business' | 'starter' | 'pro', status: string) => ({ plan, status, past_due_since: null })
  test.each([
    [[], undefined],
    [[of('plus', 'incomplete')], undefined],
    [[of('plus', 'incomplete_expired')], undefined],
    [[of('plus', 'canceled')], 'free'],
    [[of('plus', 'canceled'), of('business', 'active')], 'business'],
    [[of('business', 'active'), of('plus', 'active')], 'business'],
    [[of('business', 'unpaid'), of('plus', 'active')], 'plus'],
    [[of('starter', 'active'), of('plus', 'incomplete')], 'starter'],
    [[of('pro', 'past_due')], 'pro'],
  ])('%j → %s', (subscriptions, plan) => {
    expect(effectivePlan(subscriptions, NOW)).toBe(plan)
  })
})

describe('when to ask Stripe again', () => {
  const facts = { status: 'active', past_due_since: null, current_period_end: null, ends_at: null }
  test.each([
    ['regularly', facts, 45 * MINUTE_MS],
    ['right after the period', { ...facts, current_period_end: at(10 * MINUTE_MS) }, 11 * MINUTE_MS],
    ['right after the end', { ...facts, ends_at: at(5 * MINUTE_MS), current_period_end: at(DAY_MS) }, 6 * MINUTE_MS],
    ['not at a moment that is now', { ...facts, current_period_end: at(-MINUTE_MS) }, 45 * MINUTE_MS],
    ['not in the past', { ...facts, current_period_end: at(-DAY_MS) }, 45 * MINUTE_MS],
    [
      'right after the grace',
      { ...facts, status: 'past_due', past_due_since: at(-7 * DAY_MS + 2 * MINUTE_MS) },
      3 * MINUTE_MS,
    ],
    ['never', { ...facts, status: 'canceled', current_period_end: at(MINUTE_MS) }, undefined],
  ])('%s', (_, subscription, offset) => {
    expect(nextCheck(subscription, NOW)).toEqual(offset === undefined ? null : at(offset))
  })
})

test.each([
  [1200, 'eur', '€12.00'],
  [4900, 'usd', '$49.00'],
  [99, 'gbp', '£0.99'],
  [500, 'jpy', '¥500'],
])('%i %s is %s', (amount, currency, text) => {
  expect(formatAmount(amount, currency)).toBe(text)
})
