import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FormBrowser, formFields } from '../support/form-browser.ts'
import { sharedStack, startStack, type OwnStack } from '../support/stack.ts'
import { startStripeStandIn, type SignedEvent, type StripeStandIn } from '../support/stripe-stand-in.ts'

let stripe: StripeStandIn
let stack: OwnStack
beforeAll(async () => {
  stripe = await startStripeStandIn()
  stack = await startStack({
    env: { ...stripe.env, GEO_COUNTRY_HEADER: 'x-country' },
    database: 'shared',
    operator: true,
  })
})
afterAll(async () => {
  await stack?.stop()
  await stripe?.stop()
})

const checkout = (token: string, json: unknown) => stack.fetch('/api/v1/billing/checkout', { token, json })
const receive = ({ body, signature }: Pick<SignedEvent, 'body' | 'signature'>) =>
  stack.fetch('/stripe/webhook', {
    body,
    headers: { 'content-type': 'application/json', 'stripe-signature': signature },
  })
const planOf = async (token: string) => (await stack.fetch('/api/v1/billing', { token })).json().plan

test('the country that the proxy names is shown, not asked for, and sets the currency', async () => {
  const browser = new FormBrowser(stack, '198.51.100.80')
  const headers = { 'x-country': 'GB', 'accept-language': 'de-AT' }
  const page = (await browser.open('/signup', { headers })).text()
  expect(/<select[^>]* disabled[ >]/.test(page) && page.includes('<option value="GB" selected>')).toBe(true)
  const body = new URLSearchParams({
    ...formFields(page, '/signup'),
    email: 'visitor@example.com',
    password: 'correct horse battery',
    country: 'FR',
  })
  expect((await browser.post('/signup', body, headers)).status).toBe(303)
  expect((await browser.open('/account/plan')).text()).toContain('£')
})

test('before stripe-setup a checkout says what is missing', async () => {
  const { token } = await stack.createAccount()
  const answer = await checkout(token, { plan: 'plus' })
  expect(answer.status).toBe(503)
  expect(answer.json()).toMatchObject({ error: 'payments_not_configured' })
  expect(answer.json().detail).toContain('stripe-setup')
})

test('stripe-setup creates what is sold, once', async () => {
  const first = JSON.parse((await stack.operate('stripe-setup')).stdout)
  expect(first.created).toContain('dropway_business_annual_gbp')
  expect(first.webhook).toEqual({
    url: `${stack.baseUrl}/stripe/webhook`,
    refused: expect.stringContaining('publicly accessible'),
  })
  const second = JSON.parse((await stack.operate('stripe-setup')).stdout)
  expect(second.created).toEqual([])
  expect(second.existing).toEqual(first.created)
})

test('buying, with webhooks over the wire: refused when forged, taken when true, once when repeated', async () => {
  const { token } = await stack.createAccount()
  const { url } = (await checkout(token, { plan: 'plus', interval: 'annual' })).json()
  expect((await checkout(token, { plan: 'plus', interval: 'annual' })).json().url).toBe(url)
  await stripe.pay(url)
  const [event] = stripe.undelivered
  const good = stripe.sign(event!)
  for (const forged of [
    { body: good.body, signature: '' },
    { body: good.body.replace('evt', 'evx'), signature: good.signature },
    stripe.sign(event!, { secret: 'whsec_other' }),
    stripe.sign(event!, { at: Date.now() - 400_000 }),
  ]) {
    expect((await receive(forged)).status).toBe(400)
  }
  expect((await stack.fetch('/stripe/webhook', { body: good.body })).status).toBe(400)
  expect(await planOf(token)).toBe('free')

  stripe.isFailing = true
  expect((await receive(good)).status).toBeGreaterThanOrEqual(500)
  expect(await planOf(token)).toBe('free')
  stripe.isFailing = false
  for (let time = 0; time < 3; time++) expect((await receive(good)).status).toBe(200)
  expect((await stack.fetch('/api/v1/billing', { token })).json()).toMatchObject({
    configured: true,
    plan: 'plus',
    status: 'active',
    interval: 'annual',
    cancel_at_period_end: false,
    past_due_since: null,
  })

  const second = await checkout(token, { plan: 'business' })
  expect(second.status).toBe(409)
  expect(second.json()).toMatchObject({ error: 'subscription_exists' })
  expect(second.json().portal_url).toMatch(`${stripe.url}/portal/`)
  const portal = await stack.fetch('/api/v1/billing/portal', { token, method: 'POST' })
  expect(portal.json().url).toMatch(`${stripe.url}/portal/`)
})

test('plans that are not sold cannot be bought', async () => {
  const { token } = await stack.createAccount()
  for (const json of [{ plan: 'starter' }, { plan: 'pro' }, { plan: 'free' }, {}, { plan: 'plus', interval: 'weekly' }])
    expect((await checkout(token, json)).status).toBe(400)
})

test('an unverified account is told to verify first', async () => {
  const browser = new FormBrowser(stack, '192.0.2.77')
  await browser.send('/signup', { email: 'buyer@example.test', password: 'correct horse battery' })
  const answer = await browser.api('/billing/checkout', { json: { plan: 'plus' } })
  expect(answer.status).toBe(403)
  expect(answer.json()).toMatchObject({ error: 'email_not_verified' })
})

describe('without Stripe keys', () => {
  test('everything else works, and what needs payments says so', async () => {
    const bare = await sharedStack()
    const account = await bare.createAccount('plus', { password: 'correct horse battery' })
    const { token } = account
    const site = await bare.publish(account, '<h1>works</h1>')
    expect((await bare.visit(site.slug)).status).toBe(200)
    expect((await bare.fetch('/api/v1/usage', { token })).json()).toMatchObject({ plan: 'plus', drops: { used: 1 } })
    expect((await bare.fetch('/api/v1/billing', { token })).json()).toMatchObject({ configured: false, status: null })
    for (const path of ['/api/v1/billing/checkout', '/api/v1/billing/portal']) {
      const answer = await bare.fetch(path, { token, json: { plan: 'plus' } })
      expect(answer.status).toBe(503)
      expect(answer.json()).toMatchObject({ error: 'payments_not_configured' })
    }
    expect((await bare.fetch('/stripe/webhook', { body: '{}' })).status).toBe(503)
    const setup = await bare.admin('stripe-setup')
    expect(setup.code).toBe(1)
    expect(setup.stderr).toMatch(/^STRIPE_SECRET_KEY is not set\./)

    const browser = new FormBrowser(bare, '192.0.2.78')
    await browser.send('/signin', { email: account.email, password: 'correct horse battery' })
    expect((await browser.open('/account/plan')).text()).toContain('Payments are not configured on this service.')
  })
})
