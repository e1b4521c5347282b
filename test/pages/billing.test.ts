/** The whole path of a customer, in one browser, against the stand-in for Stripe. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seriousViolations } from '../support/accessibility.ts'
import { launchBrowser } from '../support/browser.ts'
import { keepScreenshot, openVisitor, signUp, type Visitor } from '../support/dashboard-visitor.ts'
import { mailedLink, mailsOf } from '../support/mailbox.ts'
import { startStack, type OwnStack, type Published } from '../support/stack.ts'
import { startStripeStandIn, type StripeStandIn } from '../support/stripe-stand-in.ts'

let stripe: StripeStandIn
let stack: OwnStack
let browser: Browser
let visitor: Visitor
let page: Page
let email: string
let token: string
const drops: Published[] = []

beforeAll(async () => {
  stripe = await startStripeStandIn()
  stack = await startStack({ env: stripe.env, database: 'shared', operator: true })
  stripe.deliverTo(async ({ body, signature }) => {
    const headers = { 'content-type': 'application/json', 'stripe-signature': signature }
    return (await stack.fetch('/stripe/webhook', { body, headers })).status
  })
  expect((await stack.admin('stripe-setup')).code).toBe(0)
  browser = await launchBrowser()
  visitor = await openVisitor(browser, stack)
  page = visitor.page
})
afterAll(async () => {
  await browser?.close()
  stripe?.deliverTo(undefined)
  await stack?.stop()
  await stripe?.stop()
})

const statuses = () => Promise.all(drops.map(async ({ slug }) => (await stack.visit(slug)).status))
const patch = (json: unknown) => stack.fetch(`/api/v1/sites/${drops[0]!.id}`, { method: 'PATCH', token, json })

/** Stripe's events arrive when they do. */
async function planPageSays(text: string | RegExp): Promise<void> {
  await expect
    .poll(async () => {
      await visitor.goto('/account/plan')
      return page.locator('main').innerText()
    })
    .toMatch(text)
}

async function openPortal(): Promise<void> {
  await visitor.goto('/account/plan')
  await page.getByRole('button', { name: 'Open the billing portal' }).click()
  await page.getByRole('heading', { name: 'Billing portal' }).waitFor()
}

async function keepViews(name: string): Promise<void> {
  expect(await seriousViolations(page)).toEqual([])
  for (const [width, scheme] of [
    [1280, 'light'],
    [360, 'dark'],
  ] as const) {
    await page.setViewportSize({ width, height: 860 })
    // Colours fade from one scheme to the other; a picture in between shows neither.
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    await keepScreenshot(page, `plan-${name}-${width}-${scheme}`)
  }
  await page.setViewportSize({ width: 1280, height: 860 })
  await page.emulateMedia({ colorScheme: 'light' })
}

test('signed up, but not verified: the plans are shown and cannot be bought', async () => {
  email = await signUp(visitor)
  await visitor.goto('/account/plan')
  expect(await page.getByRole('button', { name: 'Plus: $12 a month' }).isDisabled()).toBe(true)
  expect(await page.locator('main').innerText()).toContain('Verify your e-mail address first')
})

test('verified and free: three drops with a badge, no more, no password', async () => {
  await visitor.goto(await mailedLink(stack, email, '/verify'))
  const confirm = page.getByRole('button', { name: /verify|confirm/i })
  if (await confirm.count()) await confirm.first().click()
  await visitor.goto('/account/tokens')
  await page.getByLabel('Name').fill('publishing')
  await page.getByLabel('What it may do').selectOption('manage')
  await page.getByRole('button', { name: 'Create token' }).click()
  token = await page.locator('#token').innerText()
  for (let count = 0; count < 3; count++) drops.push(await stack.publish({ token }, `<h1>Drop ${count}</h1>`))
  expect((await stack.visit(drops[0]!.slug)).text()).toContain('<dropway-badge')
  expect((await stack.fetch('/api/v1/sites', { token, json: {} })).json()).toMatchObject({ error: 'plan_limit' })
  expect((await patch({ password: 'open sesame' })).status).toBe(403)
  await visitor.goto('/account/plan')
  expect(await page.locator('main').innerText()).toContain('3 of 3')
  await keepViews('free')
})

test('upgraded at the hosted page: everything unlocks at the edge', async () => {
  await page.getByRole('button', { name: 'Plus: $12 a month' }).click()
  await page.getByRole('button', { name: 'Pay' }).click()
  await page.waitForURL(/\/account\/plan\?checkout=done/)
  expect(await page.getByRole('status').innerText()).toBe('Thank you. You are on Plus now.')
  expect(await page.locator('main').innerText()).toMatch(/Renews on \d+ \w+ \d{4}/)
  await keepViews('plus')

  expect((await stack.visit(drops[0]!.slug)).text()).not.toContain('<dropway-badge')
  expect((await patch({ password: 'open sesame' })).status).toBe(200)
  expect((await stack.visit(drops[0]!.slug)).status).toBe(401)
  expect((await patch({ password: null, analytics: { plausible: { domain: 'example.com' } } })).status).toBe(200)
  expect((await stack.visit(drops[0]!.slug)).text()).toContain('plausible.io')
  for (let count = 3; count < 5; count++) drops.push(await stack.publish({ token }, `<h1>Drop ${count}</h1>`))
  expect(await statuses()).toEqual([200, 200, 200, 200, 200])
})

test('deleting the account names the subscription that ends with it', async () => {
  await visitor.goto('/account/data')
  expect(await page.locator('main').innerText()).toMatch(/Plus subscription \(paid until .+\) ends at once/)
  await keepViews('delete')
})

test('a plan is changed in the portal, and a missing payment is told', async () => {
  await openPortal()
  await page.getByRole('button', { name: 'Change to dropway_business_monthly_usd' }).click()
  await planPageSays('Business')
  await openPortal()
  await page.getByRole('button', { name: 'Fail the payment' }).click()
  await planPageSays(/A payment is missing\.[\s\S]*stays until/)
  expect(await statuses()).toEqual([200, 200, 200, 200, 200])
  await keepViews('past-due')
  await openPortal()
  await page.getByRole('button', { name: 'Pay the invoice' }).click()
  await planPageSays(/Renews on/)
})

test('cancelled: nothing changes until the period ends; then the drops beyond three are paused', async () => {
  await openPortal()
  await page.getByRole('button', { name: 'Cancel plan' }).click()
  await page.getByRole('link', { name: 'Return to Dropway' }).click()
  await planPageSays(/Ends on \d+ \w+ \d{4}/)
  expect(await statuses()).toEqual([200, 200, 200, 200, 200])
  await keepViews('cancelled')

  await openPortal()
  await page.getByRole('button', { name: 'End the period' }).click()
  await planPageSays('2 drops are paused')
  expect(await statuses()).toEqual([503, 503, 200, 200, 200])
  expect((await stack.visit(drops[4]!.slug)).text()).toContain('<dropway-badge')
  await keepViews('paused')
})

test('subscribed again: everything is live again, and every payment had one receipt', async () => {
  // The page may have been drawn while the plan was just ending.
  await page.reload()
  await page.getByRole('button', { name: 'Business: $490 a year' }).click()
  await page.getByRole('button', { name: 'Pay' }).click()
  await page.waitForURL(/\/account\/plan\?checkout=done/)
  expect(await page.getByRole('status').innerText()).toBe('Thank you. You are on Business now.')
  expect(await statuses()).toEqual([200, 200, 200, 200, 200])
  expect((await stack.visit(drops[0]!.slug)).text()).toContain('plausible.io')
  await expect.poll(() => subjectsTo(email).filter((subject) => subject.startsWith('Receipt')).length).toBe(4)
  expect(subjectsTo(email)).toContain('Your payment did not go through')
  expect(stripe.undelivered).toEqual([])
  expect(visitor.problems).toEqual([])
})

const subjectsTo = (address: string): string[] => mailsOf(stack, address).map(({ subject }) => subject)
